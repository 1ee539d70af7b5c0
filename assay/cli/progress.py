"""Progress on standard error: a bar on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from assay.engine.prepare import Preparation
from assay.engine.tools import Silent

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.console import RenderableType

    from assay.chat.traffic import Traffic
    from assay.engine.prepare import Prepared
    from assay.engine.request import RunRequest
    from assay.engine.tools import Monitor

LINE_EVERY_S = 10.0
POLL_EVERY_S = 0.5
LOOKS_A_SECOND = 5
RECENT_S = 20.0  # what rates are taken over
BAR_WIDTH = 20
MINUTE_S, HOUR_S = 60, 3_600


class _Look(NamedTuple):
    at: float
    done: int
    calls: int


class Tally:
    """Counts the work of a run as it ends, and says how far it is when asked.

    Attributes:
        total: Pieces of work; None: not known yet.
        done: Those that ended.
        errors: Those of them that ended in an error.
    """

    def __init__(self, total: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.total, self.done, self.errors = total, 0, 0
        self._clock = clock
        self._traffic: Traffic | None = None
        self._began = _Look(clock(), 0, 0)
        self._looks = deque([self._began])

    def advance(self, done: int, errors: int) -> None:
        """Count."""
        self.done += done
        self.errors += errors

    def watch(self, traffic: Traffic) -> None:
        """Remember where the calls are counted; rates begin with them."""
        self._began = _Look(self._clock(), self.done, traffic.meter.calls)
        self._looks = deque([self._began])
        self._traffic = traffic

    def describe(self) -> tuple[str, str]:
        """Return how far the work is, and what the calls come to; the second is empty without calls."""
        calls = self._traffic.meter.calls if self._traffic else 0
        now = _Look(self._clock(), self.done, calls)
        looks = self._looks
        looks.append(now)
        while looks[1].at <= now.at - RECENT_S:
            looks.popleft()
        since = looks[0]
        seconds = max(now.at - since.at, 1e-6)
        called = self._describe_calls((now.calls - since.calls) / seconds)
        rate = (now.done - since.done) / seconds
        pace = [] if called else [f"{rate:,.1f}/s"]
        of = "" if self.total is None else f"/{self.total}"
        errors = f"{self.errors} error{'' if self.errors == 1 else 's'}"
        work = [f"{self.done}{of} done", *pace, errors, self._describe_rest(rate, now)]
        return ", ".join(work), called

    def _describe_rest(self, rate: float, now: _Look) -> str:
        """Foresee the end by the recent rate, or by that of the whole run where there is none."""
        began = self._began
        rate = rate or (now.done - began.done) / max(now.at - began.at, 1e-6)
        known = self.total is not None and rate
        return f"{_write_time(((self.total or 0) - now.done) / rate)} left" if known else "time left unknown"

    def _describe_calls(self, rate: float) -> str:
        traffic = self._traffic
        if traffic is None or not (traffic.meter.requests or traffic.meter.hits):
            return ""
        meter, gates = traffic.meter, traffic.gates
        limit, in_flight = sum(gate.limit for gate in gates), sum(gate.in_flight for gate in gates)
        pause = max((gate.paused_s for gate in gates), default=0.0)
        spent = meter.before.plus(meter.usage)
        tokens = f"{_write_count(spent.input_tokens or 0)} tokens in"
        parts: dict[str, object] = {
            f"{rate:,.1f} calls/s": True,
            f"{in_flight}/{limit} in flight": True,
            f"{_write_count(meter.refused)} refused (429)": meter.refused,
            f"{_write_count(meter.hits)} reused": meter.hits,
            f"{tokens}, {_write_count(spent.output_tokens or 0)} out": spent.total,
            _write_money(spent.cost_usd or 0.0, partly=meter.unpriced > 0): spent.cost_usd,
            f"paused {_write_time(pause)}": pause > 0,
            "ending": traffic.halt.reason,
        }
        return ", ".join(part for part, applies in parts.items() if applies)


def _write_count(count: int) -> str:
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if count >= size:
            return f"{count / (1_000 if unit == 'k' else size):.3g}{unit}"
    return f"{count:,}"


def _write_time(seconds: float) -> str:
    if seconds < 2 * MINUTE_S:
        return f"{seconds:.0f} s"
    return f"{seconds / MINUTE_S:.0f} min" if seconds < 2 * HOUR_S else f"{seconds / HOUR_S:.1f} h"


def _write_money(dollars: float, *, partly: bool) -> str:
    """Write US dollars; as a lower bound where the price of some answers is not known."""
    return f"{'≥ ' if partly else ''}${dollars:,.{2 if dollars >= 1 else 4}f}"


def draw_bar(tally: Tally) -> RenderableType:
    """Return the bar with what the tally says, the calls on a line of their own."""
    from rich.console import Group  # only a terminal needs it, and it takes long to import
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    work, calls = tally.describe()
    first = Table.grid(padding=(0, 1))
    bar = ProgressBar(total=tally.total, completed=tally.done, width=BAR_WIDTH)
    first.add_row("evaluating", bar, Text(work, no_wrap=True, overflow="ellipsis"))
    return Group(first, Text(calls, no_wrap=True, overflow="ellipsis")) if calls else first


def write_line(tally: Tally) -> str:
    """Return what the tally says as one line."""
    work, calls = tally.describe()
    return f"{work}, {calls}" if calls else work


@contextmanager
def watch_reading(*, quiet: bool) -> Generator[Callable[[int], None]]:
    """Say every `LINE_EVERY_S` how many rows were read; a short input is read before the first time."""
    said = time.monotonic()

    def on_rows(rows: int) -> None:
        nonlocal said
        if not quiet and time.monotonic() - said >= LINE_EVERY_S:
            said = time.monotonic()
            sys.stderr.write(f"{rows:,} rows read\n")

    yield on_rows


@contextmanager
def watch_run(prepared: Prepared | Preparation, *, quiet: bool, poll: bool) -> Generator[Monitor]:
    """Show how far a run is.

    Args:
        prepared: The run.
        quiet: Show nothing.
        poll: The work is done elsewhere; look at the parts in the store.
    """
    if quiet:
        yield Silent()
        return
    tally = Tally(None if isinstance(prepared, Preparation) else count_work(prepared.request, poll=poll))
    with _polling(prepared, tally, poll=poll), _showing(tally):
        yield tally


def count_work(request: RunRequest, *, poll: bool) -> int:
    """Return how many pieces of work a run has: parts where one polls, else answers and evaluations."""
    config = request.config
    answers = request.turns * config.trials if config.target.kind != "stored" else 0
    return request.batches if poll else request.evaluations + answers


@contextmanager
def _showing(tally: Tally) -> Generator[None]:
    if not sys.stderr.isatty():
        with _repeating(LINE_EVERY_S, lambda: sys.stderr.write(f"{write_line(tally)}\n")):
            yield
        return
    from rich.console import Console
    from rich.live import Live

    with Live(
        console=Console(stderr=True),
        get_renderable=lambda: draw_bar(tally),
        refresh_per_second=LOOKS_A_SECOND,
        transient=True,
    ):
        yield


@contextmanager
def _polling(prepared: Prepared | Preparation, tally: Tally, *, poll: bool) -> Generator[None]:
    if not poll:
        yield
        return

    def look() -> None:
        there = len(list((prepared.folder.path / "scores").glob("part-*.parquet")))
        tally.advance(there - tally.done, 0)

    with _repeating(POLL_EVERY_S, look):
        yield


@contextmanager
def _repeating(seconds: float, act: Callable[[], object]) -> Generator[None]:
    """Do something again and again beside the work; that standard error is gone is no reason to end it."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.wait(seconds):
            with suppress(OSError):
                act()

    watcher = threading.Thread(target=repeat, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
