"""Failures of other tools around calls, by the number of their case."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.errors import EndpointError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")

GOOD = {"reply": '{"score": 4, "reason": "ok"}', "usage": {"prompt_tokens": 400, "completion_tokens": 30}}
THOUGHT = {
    "reply": "",
    "finish": "length",
    "usage": {
        "prompt_tokens": 400,
        "completion_tokens": 512,
        "completion_tokens_details": {"reasoning_tokens": 512},
    },
}
CUT = {"reply": '{"score": 4, "reason": "The answer names the right pol', "finish": "length"}
FILTERED = {
    "status": 400,
    "body": {
        "error": {
            "message": "The prompt was filtered.",
            "code": "content_filter",
            "innererror": {
                "code": "ResponsibleAIPolicyViolation",
                "content_filter_result": {
                    "jailbreak": {"filtered": True, "detected": True},
                    "violence": {"filtered": False, "severity": "safe"},
                },
            },
        }
    },
}
QUOTA = {"status": 429, "body": {"error": {"message": "used up", "code": "insufficient_quota"}}}


@pytest.fixture
def judge_rows(run_rows: Callable[..., Run], loopback: Loopback) -> Callable[..., Run]:
    def judge(count: int = 1, **settings: Any) -> Run:
        rows = [
            {"id": f"r{n}", "query": f"ROW-{n}", "response": "an answer", "ground_truth": "x"}
            for n in range(count)
        ]
        return run_rows(*rows, evaluators="Relevance", judge="judge", base_url=loopback.base_url, **settings)

    return judge


@pytest.mark.parametrize("cut", [THOUGHT, CUT])
def test_a_judge_that_met_its_limit_is_asked_once_more_with_more_room(
    judge_rows: Callable[..., Run], loopback: Loopback, cut: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:  # F048
    loopback.script([cut, GOOD])
    run = judge_rows()
    assert run.scores["score"].to_list() == [4.0]
    first, second = (request["body"]["max_tokens"] for request in loopback.requests)
    assert second > first
    spent = cut.get("usage", {"completion_tokens": 2})["completion_tokens"]
    assert run.scores["output_tokens"].to_list() == [spent + 30]
    assert "1 of 2 model calls hit the output limit" in caplog.text


def test_a_judge_that_never_ends_is_an_error_and_all_calls_count(
    judge_rows: Callable[..., Run], loopback: Loopback
) -> None:  # F048
    loopback.script([], after={"reply": 'thought\n{"score":', "finish": "length"})
    run = judge_rows()
    row = run.scores.row(0, named=True)
    assert (row["status"], row["score"], row["error_code"]) == ("error", None, "truncated")
    assert "finish_reason length" in row["error_message"]
    assert (len(loopback.requests), row["input_tokens"], row["output_tokens"]) == (2, 6, 4)


def test_a_filtered_judge_prompt_is_an_error_of_its_row_with_the_categories(
    judge_rows: Callable[..., Run], loopback: Loopback
) -> None:  # F050
    loopback.script([], after=GOOD, match=[("ROW-1", FILTERED)])
    run = judge_rows(3)
    assert run.scores.sort("item_id")["score"].to_list() == [4.0, None, 4.0]
    failed = run.scores.filter(pl.col("status") == "error").row(0, named=True)
    assert failed["error_code"] == "content_filter"
    assert "jailbreak" in failed["error_message"]
    assert "violence" not in failed["error_message"]
    assert (len(loopback.requests), run.exit_code) == (3, 3)
    overall = run.summary.filter(pl.col("slice") == "all")
    assert overall.select("mean", "scored", "errored").rows() == [(4.0, 2, 1)]


def test_an_answer_without_choices_is_an_error_of_its_row_alone(
    run_rows: Callable[..., Run], loopback: Loopback
) -> None:  # F055
    empty: dict[str, Any] = {
        "status": 200,
        "body": {"id": "y", "object": "chat.completion", "choices": [], "usage": None},
    }
    loopback.script([], match=[("2 + 2", empty)])
    run = run_rows(evaluators="ExactMatch", model="m", base_url=loopback.base_url)
    assert run.samples["error_code"].to_list() == ["no_choices", None, None]
    assert "no choices" in run.samples["error_message"][0]


def test_a_quota_that_is_used_up_ends_the_run_after_one_wave(
    run_rows: Callable[..., Run], loopback: Loopback, tmp_path: Path
) -> None:  # F057
    loopback.script([], after=QUOTA)
    rows = [{"id": str(n), "query": f"q{n}", "ground_truth": "x"} for n in range(50)]
    with pytest.raises(EndpointError, match=r"quota of the key in OPENAI_API_KEY is used up for model 'm'"):
        run_rows(*rows, evaluators="ExactMatch", model="m", base_url=loopback.base_url, concurrency=4)
    assert len(loopback.requests) <= 4
    assert not list((tmp_path / "store").rglob("run.parquet"))


def test_calls_under_way_never_exceed_the_ceiling_and_rows_keep_their_order(
    run_rows: Callable[..., Run], loopback: Loopback
) -> None:  # F059
    together = threading.Barrier(8, timeout=20)

    def meet(body: dict[str, Any]) -> dict[str, Any]:
        together.wait()
        return {"reply": body["messages"][-1]["content"]}

    loopback.script([meet] * 8, after=lambda body: {"reply": body["messages"][-1]["content"]})
    rows = [{"id": f"r{n}", "query": f"q{n}", "ground_truth": f"q{n}"} for n in range(100)]
    run = run_rows(
        *rows, evaluators="ExactMatch", model="m", base_url=loopback.base_url, concurrency=8, batch_size=20
    )
    assert loopback.most_in_flight == 8
    assert run.samples["output_text"].to_list() == [f"q{n}" for n in range(100)]
    assert run.info["passed"] == len(loopback.requests) == 100


def test_a_row_survives_a_reset_a_timeout_and_a_bad_gateway(
    run_rows: Callable[..., Run], loopback: Loopback
) -> None:  # F059
    late = {"delay": 1.0, "reply": "late"}
    loopback.script([{"close": True}, late, {"status": 502, "body": "<html>bad gateway</html>"}])
    row = {"id": "a", "query": "q", "ground_truth": "ok"}
    run = run_rows(row, evaluators="ExactMatch", model="m", base_url=loopback.base_url, timeout_s=0.3)
    assert run.samples.select("status", "output_text", "attempts").rows() == [("ok", "ok", 4)]
