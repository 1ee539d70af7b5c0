from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.contracts.chat import ChatReply, ChatRequest, Usage, text_message
from assay.errors import ConfigError, StoreError
from evaluators.catalog import Evaluation
from evaluators.contract import (
    ColumnEvaluator,
    Evaluator,
    Fields,
    JudgeEvaluator,
    Options,
    RowEvaluator,
    Scale,
    Verdict,
)
from evaluators.panel import Judging
from evaluators.runner import run_evaluation

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.contracts.chat import Chat

FACTS: dict[str, Any] = {
    "summary": "For tests.",
    "needs": ("response",),
    "options": Options,
    "scale": Scale(-100.0, 100.0),
}


class CountingChat:
    """Answers each request with the number of messages so far."""

    def __init__(self) -> None:
        self.asked = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked += len(request.messages)
        return ChatReply(str(self.asked), f"judge-{self.asked}", usage=Usage(10, None))


def columns(measure: Callable[[pl.DataFrame], pl.DataFrame], **facts: Any) -> Evaluator:
    return ColumnEvaluator(name="Columns", **FACTS | facts, measure=lambda _options, frame: measure(frame))


def scores(values: list[float | None], **facts: Any) -> Evaluator:
    return columns(lambda _frame: pl.DataFrame({"score": values}, schema={"score": pl.Float64}), **facts)


def run(
    evaluator: Evaluator, responses: list[str | None], threshold: float | None = 3.0, chat: Chat | None = None
) -> pl.DataFrame:
    evaluation = Evaluation(evaluator, Options(), threshold, evaluator.name)
    judging = Judging((chat,), 2, lambda: None) if chat else None
    return asyncio.run(run_evaluation(evaluation, pl.DataFrame({"response": responses}), judging))


@pytest.mark.parametrize(("score", "high"), [(1.5, 1.0), (-0.5, None), (float("inf"), 1.0)])
def test_a_score_off_the_scale_is_an_error(score: float, high: float | None) -> None:
    result = run(scores([0.5, score], scale=Scale(0.0, high)), ["a", "b"], threshold=0.5)
    assert result["status"].to_list() == ["ok", "error"]
    assert result["score"].to_list() == [0.5, None]
    assert result["error_code"].to_list() == [None, "off_scale"]


@pytest.mark.parametrize(
    ("score", "threshold", "passed"),
    [
        (3.0, 3.0, True),
        (2.9999999, 3.0, False),
        (float("nan"), 3.0, None),
        (None, 3.0, None),
        (0.5, 0.5, True),
        (0.1 + 0.2, 0.3, True),
        (0.0, 0.0, True),
        (1.0, None, None),
    ],
)
def test_a_score_that_reaches_the_threshold_passes_and_no_number_gives_no_verdict(
    score: float | None, threshold: float | None, passed: bool | None
) -> None:
    result = run(scores([score]), ["r"], threshold)
    assert (result["passed"].item(), result["threshold"].item()) == (passed, threshold)
    assert result["score"].is_nan().sum() == 0
    assert result["status"].item() == "ok"


def test_a_low_score_passes_where_lower_is_better() -> None:
    result = run(scores([1.0, 3.0, 3.1, None], higher_is_better=False), ["r"] * 4)
    assert result["passed"].to_list() == [True, True, False, None]


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (pl.col("nothing").alias("score"), "ColumnNotFoundError: "),
        (pl.col("response").alias("label"), "ColumnNotFoundError: "),
        (pl.col("response").alias("score"), "InvalidOperationError: "),
        (pl.lit(1.0).alias("score"), "ShapeError: "),
    ],
)
def test_a_column_evaluator_that_fails_makes_its_rows_errors(measured: pl.Expr, message: str) -> None:
    result = run(columns(lambda frame: frame.select(measured)), ["a", None, "b"])
    assert result["status"].to_list() == ["error", "skipped", "error"]
    assert result["error_code"].to_list() == ["evaluator_error", None, "evaluator_error"]
    assert result["error_message"][0].startswith(message)
    assert result["score"].null_count() == 3


def test_a_row_evaluator_fails_for_its_row_alone() -> None:
    def judge(_options: Options, fields: Fields) -> Verdict:
        return Verdict(
            float(fields["response"] or ""), label="n", reason="why", details={"b": 1, "a": [True]}
        )

    result = run(RowEvaluator(name="Rows", **FACTS, judge=judge), ["4", "four", "2"])
    assert result["score"].to_list() == [4.0, None, 2.0]
    assert result["passed"].to_list() == [True, None, False]
    assert result["error_message"][1] == "ValueError: could not convert string to float: 'four'"
    assert result.row(0, named=True)["details_json"] == '{"b":1,"a":[true]}'
    assert result["latency_ms"].null_count() == 3


def test_details_that_are_no_json_are_an_error_of_the_row() -> None:
    def judge(_options: Options, _fields: Fields) -> Verdict:
        return Verdict(1.0, details={"share": float("nan")})

    result = run(RowEvaluator(name="Rows", **FACTS, judge=judge), ["x"])
    assert (result["status"].item(), result["score"].item()) == ("error", None)
    assert result["error_message"].item() == "NonFiniteError: nan is not JSON"


async def ask_twice(_options: Options, fields: Fields, chat: Chat) -> Verdict:
    request = ChatRequest((text_message("user", str(fields["response"])),))
    await chat.complete(request)
    await chat.complete(request)
    if fields["response"] == "bad":
        raise KeyError("verdict")
    return Verdict(4.0)


def test_usage_is_summed_over_the_replies_of_a_row_and_kept_when_it_fails() -> None:
    result = run(JudgeEvaluator(name="Judge", **FACTS, ask=ask_twice), ["x", "bad"], chat=CountingChat())
    assert result["input_tokens"].to_list() == [20, 20]
    assert result["output_tokens"].to_list() == [None, None]
    assert result["error_message"].to_list() == [None, "KeyError: 'verdict'"]
    assert result["latency_ms"].null_count() == 0


def test_each_row_that_is_asked_about_is_reported_done() -> None:
    done: list[None] = []
    evaluation = Evaluation(JudgeEvaluator(name="Judge", **FACTS, ask=ask_twice), Options(), 3.0, "Judge")
    judging = Judging((CountingChat(),), 2, lambda: done.append(None))
    rows = pl.DataFrame({"response": ["x", "bad", None, "y"], "error_code": [None, None, None, "timeout"]})
    result = asyncio.run(run_evaluation(evaluation, rows, judging))
    assert result["status"].to_list() == ["ok", "error", "skipped", "error"]
    assert len(done) == 2


def test_a_judge_without_a_model_is_a_fault_of_the_configuration() -> None:
    with pytest.raises(ConfigError, match=r"Judge needs a judge: --judge MODEL"):
        run(JudgeEvaluator(name="Judge", **FACTS, ask=ask_twice), ["x"])


def test_a_fault_of_the_store_is_not_a_row() -> None:
    async def ask(_options: Options, _fields: Fields, _chat: Chat) -> Verdict:
        raise StoreError("ledger not writable")

    with pytest.raises(StoreError):
        run(JudgeEvaluator(name="Judge", **FACTS, ask=ask), ["x"], chat=CountingChat())
