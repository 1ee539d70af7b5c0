from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from assay.contracts.chat import ChatReply
from assay.contracts.json_text import parse_json
from assay.errors import ConfigError
from evaluators.catalog import BUILT_IN, Evaluation, find_evaluator, resolve_evaluation
from evaluators.contract import FIELDS, Evaluator, Scale
from evaluators.runner import RESULT, Judging, run_evaluation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.chat import ChatRequest

TEXTS = [
    "Paris",
    "paris [1]",
    '{"a": [1, 2.50]}',
    "\u6771\u4eac \U0001f44d",
    "x" * 500,
    "!?",
    "null",
    "\u0130\u00df",
]
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((each.name, {}) for each in BUILT_IN),
    ("ExactMatch", {"case_sensitive": True}),
    ("PartialMatch", {"mode": "compat"}),
    ("Contains", {"search_text": "p"}),
    ("Citations", {"count": "occurrences", "threshold": 2}),
    ("JsonEquals", {"case_sensitive": False, "negated": True}),
]


class LengthChat:
    """Grades by the length of the question, so that each row has its own grade in any order."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        grade = 1 + len(str(request.messages[1]["content"])) % 5
        return ChatReply(f'{{"reason": "length", "score": {grade}}}', "judge-1", input_tokens=grade)


def evaluate(evaluation: Evaluation, rows: pl.DataFrame) -> pl.DataFrame:
    judging = Judging(LengthChat(), 3, lambda: None)
    return asyncio.run(run_evaluation(evaluation, rows, judging)).drop("latency_ms")


def make_rows(responses: Sequence[str | None] = TEXTS) -> pl.DataFrame:
    count = len(responses)
    rows = pl.DataFrame({"response": responses, "expected_response": [*TEXTS[1:], TEXTS[0]][:count]})
    return rows.with_columns(
        *(pl.lit(f"some {name}").alias(name) for name in FIELDS if name not in rows.columns),
        error_code=pl.lit(None, pl.String),
        error_message=pl.lit(None, pl.String),
    )


def test_names_and_aliases_are_unique_and_lead_back() -> None:
    names = [name for each in BUILT_IN for name in (each.name, *each.aliases)]
    assert len(names) == len(set(names))
    assert all(find_evaluator(alias) is each for each in BUILT_IN for alias in (each.name, *each.aliases))
    assert [name for name in names if ":" in name] == []


@pytest.mark.parametrize("evaluator", BUILT_IN, ids=lambda each: each.name)
def test_a_description_is_sound(evaluator: Evaluator) -> None:
    assert evaluator.version >= 1
    assert evaluator.summary.endswith(".")
    assert evaluator.needs
    assert {*evaluator.needs, *evaluator.wants} <= set(FIELDS)
    assert evaluator.threshold is None or evaluator.threshold in (evaluator.thresholds or evaluator.scale)


@pytest.mark.parametrize("evaluator", BUILT_IN, ids=lambda each: each.name)
def test_unknown_options_are_refused_and_known_ones_explained(evaluator: Evaluator) -> None:
    with pytest.raises(ConfigError, match=rf"unknown option '{evaluator.name}\.bogus'"):
        resolve_evaluation(evaluator.name, {"bogus": 1})
    assert [name for name, option in evaluator.options.model_fields.items() if not option.description] == []


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_options_come_back_from_their_json(name: str, options: dict[str, Any]) -> None:
    evaluation = resolve_evaluation(name, options)
    again: Any = parse_json(evaluation.options_json)
    assert resolve_evaluation(name, again | {"threshold": evaluation.threshold}) == evaluation
    assert list(again) == sorted(type(evaluation.options).model_fields)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_scores_lie_on_the_scale_and_decide_the_pass(name: str, options: dict[str, Any]) -> None:
    evaluation = resolve_evaluation(name, options)
    result = evaluate(evaluation, make_rows())
    assert result.schema == pl.Schema({n: dtype for n, dtype in RESULT.items() if n != "latency_ms"})
    assert set(result["status"]) == {"ok"}
    assert all(score in evaluation.evaluator.scale for score in result["score"])
    assert result["passed"].to_list() == [score >= evaluation.threshold for score in result["score"]]
    assert set(result["metric"]) == {name}
    assert set(result["evaluator_version"]) == {evaluation.evaluator.version}


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_a_null_in_a_needed_field_skips_that_row_and_names_the_field(
    name: str, options: dict[str, Any]
) -> None:
    evaluation = resolve_evaluation(name, options)
    full = make_rows()
    for field in evaluation.needs:
        holes = full.with_columns(pl.when(pl.int_range(pl.len()) != 1).then(field).alias(field))
        result = evaluate(evaluation, holes)
        assert result["status"].to_list() == ["ok", "skipped", *["ok"] * (len(TEXTS) - 2)]
        assert (result["reason"][1], result["score"][1], result["passed"][1]) == (f"no {field}", None, None)
        absent = evaluate(evaluation, full.drop(field))
        assert set(absent["reason"]) == {f"no {field}"}


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_an_incoming_error_stays_an_error_and_is_never_scored(name: str, options: dict[str, Any]) -> None:
    code = pl.when(pl.int_range(pl.len()) == 1).then(pl.lit("timeout"))
    rows = make_rows([TEXTS[0], None, TEXTS[2]]).with_columns(
        error_code=code, error_message=code + " after 3 s"
    )
    result = evaluate(resolve_evaluation(name, options), rows)
    assert result["status"].to_list() == ["ok", "error", "ok"]
    assert result["error_code"].to_list() == [None, "timeout", None]
    assert result["error_message"].to_list() == [None, "timeout after 3 s", None]
    assert (result["score"][1], result["passed"][1], result["reason"][1]) == (None, None, None)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_neither_order_nor_batches_matter(name: str, options: dict[str, Any]) -> None:
    evaluation = resolve_evaluation(name, options)
    rows = make_rows([*TEXTS[:3], None, *TEXTS[4:]])
    whole = evaluate(evaluation, rows).drop("row")
    assert_frame_equal(evaluate(evaluation, rows.reverse()).drop("row").reverse(), whole)
    parts = pl.concat([evaluate(evaluation, part) for part in rows.iter_slices(3)])
    assert parts["row"].to_list() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert_frame_equal(parts.drop("row"), whole)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_no_rows_give_no_rows(name: str, options: dict[str, Any]) -> None:
    assert evaluate(resolve_evaluation(name, options), make_rows([])).height == 0


def test_a_scale_knows_its_ends() -> None:
    assert [score in Scale(0.0, 1.0) for score in (0, 1.0, -0.1, 1.1, float("nan"))] == [
        True,
        True,
        *[False] * 3,
    ]
    assert [score in Scale(1.0, None, whole=True) for score in (1, 2.0, 1.5, 0)] == [True, True, False, False]
    assert [str(scale) for scale in (Scale(1.0, 5.0), Scale(0.0, None))] == ["1..5", "0.."]
