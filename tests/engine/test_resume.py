"""Runs that go on: what was paid for is never paid for again."""

from __future__ import annotations

import fcntl
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import assay
from assay.errors import ConfigError, EndpointError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")

BUSY = {"status": 400, "body": {"error": {"message": "bad moment"}}}


def build_rows(count: int) -> list[dict[str, Any]]:
    return [{"id": f"r{n}", "query": f"question {n}", "ground_truth": "ok"} for n in range(count)]


@pytest.fixture
def ask_rows(run_rows: Callable[..., Run], loopback: Loopback) -> Callable[..., Run]:
    def ask(count: int = 6, **settings: Any) -> Run:
        asked = {"model": "m", "base_url": loopback.base_url, "evaluators": "ExactMatch", "batch_size": 3}
        return run_rows(*build_rows(count), **asked | settings)

    return ask


@pytest.fixture
def go_on(tmp_path: Path) -> Callable[..., Run]:
    def resume(reference: str = "latest", *datasets: Path, **settings: Any) -> Run:
        return assay.run(*datasets, resume=reference, store=tmp_path / "store", **settings)

    return resume


def test_a_resumed_run_asks_only_what_is_missing_and_keeps_its_id(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], loopback: Loopback
) -> None:
    loopback.script([], match=[("question 4", BUSY)])
    first = ask_rows()
    assert (first.exit_code, first.scores["status"].to_list().count("error")) == (3, 1)
    started = first.info["started_at"]
    loopback.requests.clear()
    loopback.script([])
    again = go_on()
    assert again.run_id == first.run_id
    assert [request["body"]["messages"][-1]["content"] for request in loopback.requests] == ["question 4"]
    assert again.exit_code == 0
    assert again.scores.select("item_id", "passed").sort("item_id").rows() == [
        (f"r{n}", True) for n in range(6)
    ]
    assert (again.info["started_at"], again.info["status"], again.info["samples"]) == (started, "complete", 6)
    assert again.samples["from_ledger"].to_list() == [False] * 3 + [True, False, True]


def test_resuming_a_complete_run_does_nothing(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], loopback: Loopback
) -> None:
    finished = ask_rows().info["finished_at"]
    loopback.requests.clear()
    again = go_on()
    assert loopback.requests == []
    assert (again.exit_code, again.info["finished_at"]) == (0, finished)
    assert "complete" in again.message


def test_failures_that_would_come_again_are_not_asked_again(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], loopback: Loopback
) -> None:
    filtered = {"status": 400, "body": {"error": {"code": "content_filter", "message": "filtered"}}}
    loopback.script([], match=[("question 1", filtered), ("question 2", BUSY)])
    assert ask_rows(3).samples["error_code"].to_list() == [None, "content_filter", "bad_request"]
    loopback.requests.clear()
    loopback.script([], match=[("question 1", filtered)])
    again = go_on()
    assert len(loopback.requests) == 1
    assert again.samples["error_code"].to_list() == [None, "content_filter", None]


def test_a_changed_dataset_is_refused_by_name(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], tmp_path: Path, loopback: Loopback
) -> None:
    loopback.script([], match=[("question 4", BUSY)])
    ask_rows()
    with (tmp_path / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id":"new","query":"one more","ground_truth":"x"}\n')
    loopback.requests.clear()
    with pytest.raises(ConfigError, match=r"rows\.jsonl has changed"):
        go_on()
    assert loopback.requests == []


def test_a_changed_configuration_is_refused_by_name(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], tmp_path: Path, loopback: Loopback
) -> None:
    loopback.script([], match=[("question 4", BUSY)])
    ask_rows()
    url = loopback.base_url
    with pytest.raises(ConfigError, match=r'target\.endpoint\.model is "m" in the run and "other" now'):
        go_on("latest", tmp_path / "rows.jsonl", model="other", base_url=url, evaluators="ExactMatch")
    loopback.script([])
    same = go_on("latest", tmp_path / "rows.jsonl", model="m", base_url=url, evaluators="ExactMatch")
    assert same.info["status"] == "complete"


def test_how_a_run_goes_may_change_when_it_is_resumed(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], loopback: Loopback, tmp_path: Path
) -> None:
    loopback.script([], match=[("question 4", BUSY)])
    ask_rows()
    prices = tmp_path / "prices.json"
    prices.write_text('{"models": {}}', encoding="utf-8")
    times = {"deadline_s": "5m", "timeout_s": "2m", "max_wait_s": "90s"}
    again = go_on(concurrency=1, max_errors="50%", rpm=6000, prices=prices, **times)
    assert again.exit_code == 0
    config = json.loads(str(again.info["config_json"]))
    assert (config["limits"]["deadline_s"], config["timeout_s"], config["limits"]["max_wait_s"]) == (
        300,
        120,
        90,
    )
    assert (config["concurrency"], config["limits"]["rpm"], config["max_errors"]) == (1, 6000, "50%")


def test_an_unknown_run_cannot_be_resumed(ask_rows: Callable[..., Run], go_on: Callable[..., Run]) -> None:
    ask_rows(1)
    with pytest.raises(ConfigError, match="no such run"):
        go_on("20200101-000000-abcdef")


def test_a_run_that_another_process_works_on_is_not_resumed(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], tmp_path: Path, loopback: Loopback
) -> None:
    loopback.script([], match=[("question 4", BUSY)])
    run = ask_rows()
    folder = tmp_path / "store/runs" / f"run_id={run.run_id}"
    before = (folder / "request.json").read_bytes()
    with (folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another process"):
            go_on(max_errors=77)
    assert (folder / "request.json").read_bytes() == before


def test_identical_answers_of_earlier_runs_are_taken_and_cost_nothing(
    ask_rows: Callable[..., Run], loopback: Loopback, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"models": {"m": {"input": 1000, "output": 1000}}}', encoding="utf-8")
    first = ask_rows(prices=str(prices))
    assert first.samples["cost_usd"].to_list() == [pytest.approx(0.005)] * 6
    loopback.requests.clear()
    second = ask_rows(7, reuse="all", prices=str(prices))
    assert [request["body"]["messages"][-1]["content"] for request in loopback.requests] == ["question 6"]
    assert second.samples["from_ledger"].to_list() == [True] * 6 + [False]
    assert second.samples["cost_usd"].to_list() == [0.0] * 6 + [pytest.approx(0.005)]
    assert second.samples["output_text"].to_list() == ["ok"] * 7
    assert second.info["cost_usd"] == pytest.approx(0.005)


@pytest.mark.parametrize("reuse", ["latest", "90d", "all"])
def test_runs_to_reuse_are_named_by_run_age_or_all(
    ask_rows: Callable[..., Run], loopback: Loopback, reuse: str
) -> None:
    ask_rows(2)
    loopback.requests.clear()
    ask_rows(2, reuse=reuse)
    assert loopback.requests == []


def test_an_unknown_run_cannot_be_reused(ask_rows: Callable[..., Run]) -> None:
    ask_rows(1)
    with pytest.raises(ConfigError, match=r"--reuse: .*or an age such as 90d"):
        ask_rows(1, reuse="yesterday")


def test_repeats_and_equal_rows_never_share_an_answer(
    run_rows: Callable[..., Run], loopback: Loopback
) -> None:
    rows = [{"id": f"r{n}", "query": "the same", "ground_truth": "ok"} for n in range(2)]
    asked: dict[str, Any] = {"model": "m", "base_url": loopback.base_url, "evaluators": "ExactMatch"}
    run = run_rows(*rows, trials=2, **asked)
    assert len(loopback.requests) == run.samples.height == run.scores.height == 4
    again = run_rows(*rows, trials=3, reuse="all", **asked)
    assert len(loopback.requests) == 6
    assert again.samples["from_ledger"].sum() == 4


def test_a_judge_is_not_asked_twice_for_the_same_verdict(
    ask_rows: Callable[..., Run], loopback: Loopback
) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return {"reply": '{"score": 4, "reason": "good"}' if body["model"] == "judge" else "ok"}

    loopback.script([], after=answer)
    first = ask_rows(2, evaluators="Relevance", judge="judge")
    assert len(loopback.requests) == 4
    second = ask_rows(2, evaluators="Relevance", judge="judge", reuse=first.run_id)
    assert len(loopback.requests) == 4
    assert second.scores["score"].to_list() == [4.0, 4.0]


def test_a_budget_of_tokens_ends_the_run_in_order_and_a_larger_one_goes_on(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], loopback: Loopback
) -> None:
    run = ask_rows(12, max_tokens_total=25, concurrency=1)
    assert (run.exit_code, run.info["status"]) == (3, "partial")
    assert "another call would pass --max-tokens-total 25; 25 are spent" in run.message
    assert len(loopback.requests) == 5
    assert run.samples["status"].to_list().count("ok") == 5
    unasked = run.samples.filter(pl.col("status") == "skipped")
    assert set(unasked["error_code"]) == {"budget"}
    assert run.info["errored"] == 0
    assert "larger budget" in go_on().message
    assert len(loopback.requests) == 5
    whole = go_on(max_tokens_total=1000)
    assert (whole.exit_code, whole.info["status"], whole.info["passed"]) == (0, "complete", 12)
    assert len(loopback.requests) == 12


def test_an_endpoint_that_goes_away_ends_the_run_in_order(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], loopback: Loopback
) -> None:
    revoked = {"status": 401, "body": {"error": {"message": "revoked"}}}
    loopback.script([{"reply": "ok"}] * 6, after=revoked)
    run = ask_rows(60, concurrency=2)
    assert (run.exit_code, run.info["status"]) == (3, "partial")
    assert "refused the key" in run.message
    assert f"assay run --resume {run.run_id}" in run.message
    assert len(loopback.requests) < 20
    loopback.script([])
    assert go_on().info["passed"] == 60


def test_a_deadline_ends_the_run_in_order(ask_rows: Callable[..., Run], loopback: Loopback) -> None:
    loopback.script([], after={"reply": "ok", "delay": 0.1})
    run = ask_rows(12, concurrency=1, deadline_s=0.35)
    assert (run.exit_code, run.info["status"]) == (3, "partial")
    assert "the deadline of 0.35 s is over" in run.message
    assert 1 <= run.samples["status"].to_list().count("ok") < 12
    assert set(run.samples["error_code"].drop_nulls()) <= {"deadline"}


def test_reused_answers_are_there_for_the_next_run_too(
    ask_rows: Callable[..., Run], loopback: Loopback
) -> None:
    ask_rows(2)
    second = ask_rows(2, reuse="latest")
    third = ask_rows(2, reuse=second.run_id, max_tokens_total=5)
    assert len(loopback.requests) == 2
    assert (third.exit_code, third.samples["from_ledger"].to_list()) == (0, [True, True])


def test_a_batch_that_was_redone_half_way_is_redone_again(
    ask_rows: Callable[..., Run], go_on: Callable[..., Run], loopback: Loopback, tmp_path: Path
) -> None:
    ask_rows(3, max_tokens_total=5, concurrency=1)
    folder = next((tmp_path / "store").glob("runs/*"))
    stale = (folder / "samples/part-00000.parquet").read_bytes()
    go_on(max_tokens_total=500)
    (folder / "samples/part-00000.parquet").write_bytes(stale)  # the scores were written, then it died
    again = go_on(max_tokens_total=500)
    assert again.samples["status"].to_list() == ["ok"] * 3
    assert len(loopback.requests) == 3


def test_answers_under_way_are_kept_when_the_judge_proves_wrong(
    ask_rows: Callable[..., Run], loopback: Loopback
) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if body["model"] == "judge":
            return {"status": 401, "body": {"error": {"message": "no"}}}
        return {"reply": "ok", "delay": 0.1}

    loopback.script([], after=answer)
    asked = {"evaluators": "Relevance", "judge": "judge", "concurrency": 2}
    with pytest.raises(EndpointError, match=r"kept: go on with: assay run --resume \S+.* with --reuse"):
        ask_rows(30, **asked)
    paid = sum(request["body"]["model"] == "m" for request in loopback.requests)
    loopback.requests.clear()
    verdict = {"reply": '{"score": 4, "reason": "x"}'}
    loopback.script([], after=lambda body: verdict if body["model"] == "judge" else {"reply": "ok"})
    run = ask_rows(30, reuse="all", **asked)
    assert run.exit_code == 0
    assert sum(request["body"]["model"] == "m" for request in loopback.requests) == 30 - paid
