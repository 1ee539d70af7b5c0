from __future__ import annotations

import io
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from assay.chat.failures import Failure
from assay.chat.traffic import Traffic
from assay.cli import progress
from assay.cli.progress import Tally, draw_bar, write_line
from assay.config import RunConfig
from assay.contracts.chat import Usage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Loopback


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def traffic() -> Traffic:
    return Traffic(RunConfig(datasets=(), concurrency=64))


def answer(traffic: Traffic, count: int, *, cost: float | None = 0.01, tokens: int = 100) -> None:
    for _ in range(count):
        traffic.meter.requests += 1
        traffic.meter.note_answer(Usage(tokens, tokens // 2, cost_usd=cost))


def test_without_calls_the_line_tells_work_rate_errors_and_time_left(clock: Clock) -> None:
    tally = Tally(100, clock)
    assert write_line(tally) == "0/100 done, 0.0/s, 0 errors, time left unknown"
    clock.now = 10
    tally.advance(40, 1)
    assert write_line(tally) == "40/100 done, 4.0/s, 1 error, 15 s left"
    assert write_line(Tally(None, clock)) == "0 done, 0.0/s, 0 errors, time left unknown"


def test_calls_are_told_with_rate_flight_limit_tokens_and_money(clock: Clock, traffic: Traffic) -> None:
    tally = Tally(100, clock)
    tally.watch(traffic)
    gate = traffic.open_gate("here", 128)
    gate.in_flight = 3
    clock.now = 10
    answer(traffic, 50)
    tally.advance(50, 0)
    assert write_line(tally) == (
        "50/100 done, 0 errors, 10 s left, 5.0 calls/s, 3/32 in flight, 5,000 tokens in, 2,500 out, $0.5000"
    )


def test_refusals_reused_answers_and_unknown_prices_are_told_when_there_are_any(
    clock: Clock, traffic: Traffic
) -> None:
    tally = Tally(9, clock)
    tally.watch(traffic)
    answer(traffic, 2, cost=2.5, tokens=600_000)
    answer(traffic, 1, cost=None, tokens=34_567)
    traffic.meter.refused, traffic.meter.hits = 17, 12_345
    traffic.halt.stop("budget", "it is spent")
    assert write_line(tally).endswith(
        "0/0 in flight, 17 refused (429), 12.3k reused, 1.23M tokens in, 617k out, ≥ $5.00, ending"
    )


def test_rates_are_recent_and_the_rest_is_foreseen_by_them(clock: Clock, traffic: Traffic) -> None:
    tally = Tally(1_000, clock)
    tally.watch(traffic)
    for second in range(1, 121):
        clock.now = second
        count = 5 if second <= 60 else 1
        answer(traffic, count)
        tally.advance(count, 0)
        tally.describe()
    assert "1.0 calls/s" in write_line(tally)
    assert "11 min left" in write_line(tally)
    clock.now = 200
    assert "0.0 calls/s" in write_line(tally)
    assert "356 s left" not in write_line(tally)
    assert "6 min left" in write_line(tally)


def test_rates_begin_with_the_calls(clock: Clock, traffic: Traffic) -> None:
    tally = Tally(100, clock)
    clock.now = 8
    tally.watch(traffic)
    clock.now = 10
    answer(traffic, 20)
    tally.advance(20, 0)
    assert write_line(tally).startswith("20/100 done, 0 errors, 8 s left, 10.0 calls/s")


async def test_a_pause_is_told_with_its_rest(clock: Clock, traffic: Traffic) -> None:
    tally = Tally(9, clock)
    tally.watch(traffic)
    gate = traffic.open_gate("here", 8)
    answer(traffic, 1)
    await gate.enter()
    gate.leave(Failure("rate_limited", "come later", status=429, wait_s=12.0))
    assert re.search(r", paused 1[12] s$", write_line(tally))


def test_the_bar_tells_the_same_on_two_lines(clock: Clock, traffic: Traffic) -> None:
    tally = Tally(100, clock)
    tally.watch(traffic)
    clock.now = 5
    answer(traffic, 50)
    tally.advance(50, 2)
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    console.print(draw_bar(tally))
    assert isinstance(console.file, io.StringIO)
    first, second, _ = console.file.getvalue().split("\n")
    assert first.startswith("evaluating ━━━━━━━━━━")
    assert first.rstrip().endswith("50/100 done, 2 errors, 5 s left")
    assert second.startswith("10.0 calls/s, 0/0 in flight")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    lines = [f'{{"id":"{n}","query":"q{n}","ground_truth":"x","response":"x"}}' for n in range(4)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.mark.usefixtures("api_key")
def test_a_run_tells_its_calls_while_they_are_made(
    call: Callable[..., tuple[int, str, str]], rows: Path, loopback: Loopback, monkeypatch: Any
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.02)
    loopback.script([{"reply": "x"}], after={"reply": "x", "delay": 0.15})
    tokens = ["--evaluators", "ExactMatch", "--model", "m", "--base-url", loopback.base_url]
    code, _, err = call("run", rows, *tokens, "--concurrency", "2", "--trials", "2")
    assert code == 0
    told = [line for line in err.splitlines() if "calls/s" in line]
    assert any("/16 done, 0 errors" in line and "2/2 in flight" in line for line in told), told


def test_a_quiet_run_tells_nothing(
    call: Callable[..., tuple[int, str, str]], rows: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.001)
    threads = threading.active_count()
    assert call("run", rows, "--evaluators", "ExactMatch", "--quiet") == (0, "", "")
    assert threading.active_count() == threads
