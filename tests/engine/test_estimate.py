"""Estimates: what they count is what a run then does, and they call nothing."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, cast

import polars as pl
import pytest

import assay
from assay.contracts.json_text import dump_json
from assay.engine.estimate import Estimate, estimate_rest, estimate_run
from assay.errors import ConfigError
from assay.settings import make_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from assay.settings import Settings
    from tests.conftest import Loopback

VERDICT = json.dumps({"reason": "to the point", "score": 4})
CONVERSATION = {"testId": "t", "turns": [{"prompt": "one"}, {"prompt": "two"}]}


def answer(body: dict[str, Any]) -> dict[str, Any]:
    if body["model"] == "gpt-4o":
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        return {"reply": VERDICT, "usage": usage}
    size = len(dump_json(body).encode())
    usage = {"prompt_tokens": size, "completion_tokens": 40, "total_tokens": size + 40}
    return {"reply": "Paris " * 40, "usage": usage}


@pytest.fixture
def asked(loopback: Loopback) -> dict[str, Any]:
    loopback.script([], after=answer)
    return {
        "model": "gpt-4o-mini",
        "judge": "gpt-4o",
        "base_url": loopback.base_url,
        "evaluators": "ExactMatch,Relevance",
    }


@pytest.fixture
def plan_rows(tmp_path: Path, write_rows: Callable[..., Path]) -> Callable[..., Estimate]:
    """Estimate without any key in the environment."""

    def plan(*rows: dict[str, Any], **settings: Any) -> Estimate:
        assert not os.environ.get("OPENAI_API_KEY")
        path = str(write_rows(*rows))
        flat = cast("Settings", {"store": tmp_path / "store", **settings})
        return estimate_run(make_config([path], flat))

    return plan


@pytest.fixture
def run_once(
    run_rows: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any]
) -> Callable[..., Run]:
    """Run with a key that is gone afterwards."""

    def run(*rows: dict[str, Any], **settings: Any) -> Run:
        with monkeypatch.context() as patch:
            patch.setenv("OPENAI_API_KEY", "k")
            return run_rows(*rows, **asked | settings)

    return run


def stage(estimate: Estimate, name: str) -> dict[str, Any]:
    return estimate.stages.row(by_predicate=pl.col("stage") == name, named=True)


def told(estimate: Estimate) -> str:
    return "\n".join(estimate.notes)


def test_an_estimate_calls_nothing_and_leaves_nothing(
    plan_rows: Callable[..., Estimate], asked: dict[str, Any], loopback: Loopback, tmp_path: Path
) -> None:
    estimate = plan_rows(**asked, trials=2)
    assert estimate.stages.select("stage", "rows", "hits", "calls").rows() == [
        ("target gpt-4o-mini", 6, 0, 6),
        ("judge Relevance", 6, 0, 6),
        ("evaluators without a model", 6, 0, 0),
        ("total", 18, 0, 12),
    ]
    assert loopback.requests == []
    assert not (tmp_path / "store").exists()
    assert "OPENAI_API_KEY" not in os.environ


def test_the_requests_that_are_counted_are_those_that_the_run_sends(
    plan_rows: Callable[..., Estimate],
    run_once: Callable[..., Run],
    asked: dict[str, Any],
    loopback: Loopback,
) -> None:
    planned = plan_rows(**asked)
    run_once()
    bodies = [request["body"] for request in loopback.requests]
    sent = [len(dump_json(body).encode()) for body in bodies if body["model"] == "gpt-4o-mini"]
    assert stage(planned, "total")["calls"] == len(bodies) == 6
    assert stage(planned, "target gpt-4o-mini")["tokens_in"] == round(sum(sent) / 4)


def test_a_judge_of_stored_answers_is_counted_by_its_very_requests(
    plan_rows: Callable[..., Estimate],
    run_once: Callable[..., Run],
    asked: dict[str, Any],
    loopback: Loopback,
) -> None:
    settings = {key: value for key, value in asked.items() if key != "model"}
    planned = stage(plan_rows(**settings), "judge Relevance")
    run_once(model=None)
    sent = [len(dump_json(request["body"]).encode()) for request in loopback.requests]
    assert (planned["calls"], planned["tokens_in"]) == (3, round(sum(sent) / 4))


def test_what_earlier_runs_answered_is_a_hit_and_costs_nothing(
    plan_rows: Callable[..., Estimate], run_once: Callable[..., Run], asked: dict[str, Any]
) -> None:
    run_once()
    known = plan_rows(**asked, reuse="all")
    assert known.stages.select("hits", "calls", "usd_high", "minutes").rows() == [
        (3, 0, 0.0, 0.0),
        (3, 0, 0.0, 0.0),
        (0, 0, 0.0, 0.0),
        (6, 0, 0.0, 0.0),
    ]
    assert stage(plan_rows(**asked), "total")["hits"] == 0
    fresh = {"id": "new", "query": "Who?", "response": "x", "ground_truth": "x"}
    assert stage(plan_rows(fresh, **asked, reuse="all"), "total")["calls"] == 2


def test_figures_come_from_earlier_calls_of_the_same_target_and_judge(
    plan_rows: Callable[..., Estimate], run_once: Callable[..., Run], asked: dict[str, Any]
) -> None:
    before = plan_rows(**asked)
    run_once()
    after = plan_rows(**asked)
    target, judge = stage(after, "target gpt-4o-mini"), stage(after, "judge Relevance")
    assert (target["tokens_out"], judge["tokens_out"]) == (3 * 40, 3 * 10)
    assert target["tokens_in"] == pytest.approx(4 * stage(before, "target gpt-4o-mini")["tokens_in"], abs=4)
    assert target["usd_low"] == target["usd"] == target["usd_high"]
    assert target["minutes"] < stage(before, "target gpt-4o-mini")["minutes"]
    assert "target gpt-4o-mini: as in 3 earlier calls" in told(after)
    assert "1.00 tokens per byte" in told(after)
    other = plan_rows(**asked | {"model": "gpt-4.1", "judge": "gpt-4.1"})
    assert stage(other, "target gpt-4.1")["tokens_out"] == 3 * 250
    assert "target gpt-4.1, judge Relevance: assumed" in told(other)


def test_money_is_tokens_times_prices_from_low_to_high(
    plan_rows: Callable[..., Estimate], asked: dict[str, Any]
) -> None:
    row = stage(plan_rows(**asked), "judge Relevance")
    given = row["tokens_in"] * 2.5e-6
    for name, output in (("usd_low", 50), ("usd", 250), ("usd_high", 800)):
        assert row[name] == pytest.approx(given + 3 * output * 10e-6, abs=2e-6)
    capped = stage(plan_rows(**asked, max_output_tokens=20), "target gpt-4o-mini")
    assert capped["tokens_out"] == 60


def test_a_model_without_a_price_costs_an_unknown_sum_and_never_nothing(
    plan_rows: Callable[..., Estimate], asked: dict[str, Any]
) -> None:
    some = plan_rows(**asked | {"model": "mine"})
    assert stage(some, "target mine")["usd"] is None
    assert stage(some, "total")["usd"] == stage(some, "judge Relevance")["usd"]
    assert "no price is known of mine" in told(some)
    none = plan_rows(**asked | {"model": "mine", "judge": "mine", "evaluators": "Relevance"})
    assert stage(none, "total")["usd"] is None


def test_a_rate_bounds_the_minutes_from_below(
    plan_rows: Callable[..., Estimate], asked: dict[str, Any]
) -> None:
    assert stage(plan_rows(**asked, rpm=0.5), "judge Relevance")["minutes"] == pytest.approx(6.0)
    judge = stage(plan_rows(**asked, tpm=100.0), "judge Relevance")
    assert judge["minutes"] == pytest.approx((judge["tokens_in"] + judge["tokens_out"]) / 100, rel=0.01)
    one, many = (stage(plan_rows(**asked, concurrency=n), "total")["minutes"] for n in (1, 100))
    assert (one, many) == (pytest.approx(12 / 60), pytest.approx(4 / 60))


@pytest.mark.parametrize(
    ("limit", "option"),
    [({"max_cost": 0.001}, "--max-cost 0.001"), ({"max_tokens_total": 9}, "--max-tokens-total 9")],
)
def test_a_budget_that_ends_the_run_is_foreseen(
    plan_rows: Callable[..., Estimate], asked: dict[str, Any], limit: dict[str, Any], option: str
) -> None:
    assert f"{option} ends the run after about" in told(plan_rows(**asked, **limit))
    assert "ends the run" not in told(plan_rows(**asked, max_cost=100.0))


def test_a_turn_after_a_turn_is_counted_with_an_answer_in_between(
    tmp_path: Path, asked: dict[str, Any]
) -> None:
    path = tmp_path / "thread.json"
    path.write_text(json.dumps([CONVERSATION]), encoding="utf-8")
    settings = cast("Settings", {**asked, "evaluators": "Citations", "store": tmp_path / "store"})
    row = stage(estimate_run(make_config([str(path)], settings)), "target gpt-4o-mini")
    assert row["calls"] == 2
    assert row["tokens_in"] > 250


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"evaluators": "Nonsense"}, "Nonsense"),
        ({"model": "mine", "max_cost": 1.0}, "'mine'"),
        ({"base_url": "http://127.0.0.1:0/v1"}, "127.0.0.1:0"),
        ({"where": "nowhere = 1"}, "nowhere"),
        ({"reuse": "none-such"}, "none-such|no such folder"),
    ],
)
def test_what_a_run_would_refuse_is_refused(
    plan_rows: Callable[..., Estimate], asked: dict[str, Any], settings: dict[str, Any], error: str
) -> None:
    with pytest.raises(ConfigError, match=error):
        plan_rows(**asked | settings)


def test_what_is_left_of_a_run_is_what_it_did_not_get(
    run_once: Callable[..., Run], loopback: Loopback, tmp_path: Path
) -> None:
    busy = {"status": 400, "body": {"error": {"message": "bad moment"}}}
    loopback.script([], after=answer, match=[("Capital", busy)])
    run = run_once(batch_size=1)
    request = tmp_path / "store" / "runs" / f"run_id={run.run_id}" / "request.json"
    before, count = request.read_bytes(), len(loopback.requests)
    rest = estimate_rest("latest", str(tmp_path / "store"), {"rpm": 0.5})
    assert stage(rest, "target gpt-4o-mini")["hits"] == 2
    assert stage(rest, "target gpt-4o-mini")["calls"] == 1
    assert stage(rest, "judge Relevance")["calls"] == 1
    assert stage(rest, "total")["minutes"] >= 4
    assert (request.read_bytes(), len(loopback.requests)) == (before, count)
    assert assay.get_run("latest", store=tmp_path / "store").run_id == run.run_id
