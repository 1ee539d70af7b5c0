from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from assay.contracts.chat import ChatReply, Usage
from assay.contracts.json_text import parse_json
from assay.errors import ConfigError
from evaluators.built_in import BUILT_IN
from evaluators.catalog import Evaluation, find_evaluator, resolve_evaluation
from evaluators.contract import FIELDS, Evaluator, Scale
from evaluators.panel import Judging
from evaluators.runner import RESULT, run_evaluation, run_evaluations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
CALLS = [{"tool": {"plugin_name": "p", "function_name": "f"}}]
REQUIRED: dict[str, dict[str, Any]] = {
    "RetrievalQuery": {"selector": "a"},
    "RetrievalResult": {"min_expected_count": 1},
    "ToolCallSelection": {"calls": CALLS},
    "ToolCallExecution": {"calls": CALLS},
    "RegexMatch": {"patterns": ["P"]},
    "Regex": {"pattern": "P"},
    "StringCheck": {"operation": "like"},
    "TextSimilarity": {"evaluation_metric": "fuzzy_match", "threshold": 0.5},
    "PythonGrader": {
        "source": "def grade(sample, item):\n    return len(sample['output_text']) / 500",
        "threshold": 0.5,
    },
    "LabelModel": {
        "input": [{"role": "user", "content": "Is {{sample.output_text}} what {{item.a}} asks for?"}],
        "labels": ["yes", "no"],
        "passing_labels": ["yes"],
    },
    "ScoreModel": {
        "input": [{"role": "user", "content": "How good is {{sample.output_text}}?"}],
        "threshold": 0.5,
    },
    "MultiGrader": {
        "graders": {
            "part": {
                "type": "string_check",
                "input": "{{sample.output_text}}",
                "reference": "P",
                "operation": "like",
            }
        },
        "calculate_output": "part",
        "threshold": 0.5,
    },
    "BinaryClassification": {"positive_class": "Paris"},
    "MulticlassClassification": {"classes": TEXTS},
    "ToolCallOrder": {"tool_calls_order": ["a"]},
    "ToolCallCount": {"tool_calls_count": {"a": ["=", 1]}},
    "ToolCallArgs": {"tool_calls": [{"name": "a", "args": {"x": 1.5}}]},
    "ToolCallOutput": {"tool_outputs": []},
    "ForbiddenTerms": {"terms": ["paris"]},
    "Length": {"max": 10},
    "StartsWith": {},
    "JsonSchema": {"schema": {"type": "object"}},
    "RubricGrader": {
        "dimensions": [
            {"dimension_id": "tone", "description": "polite", "weight": 2, "always_applicable": True},
            {"dimension_id": "facts", "description": "true", "weight": 0.5},
        ]
    },
    "LatencyBelow": {"max_ms": 100},
    "CostBelow": {"max_usd": 1},
}
JSON = {
    "messages": "[]",
    "tool_calls": '[{"name":"a","arguments":{}}]',
    "tool_definitions": "[]",
    "output_items": '[{"role":"tool","content":"sunny"},{"role":"assistant","content":"It is."}]',
    "retrieval": "[]",
    "actions": "[]",
    "expected_actions": '["a"]',
    "tool_evidence": '{"selected_functions":[],"executions":[]}',
    "retrieved_documents": '[{"document_id":"a","relevance_score":1}]',
    "retrieval_ground_truth": '[{"document_id":"a","query_relevance_label":2}]',
    "latency_ms": "12.5",
    "cost_usd": "0.5",
    "item": '{"a":1}',
}
SKIPPING = {"conversation_incomplete"}  # flags that leave nothing to judge in a row
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    *((each.name, REQUIRED.get(each.name, {})) for each in BUILT_IN),
    ("JsonSimilarity", {"line_by_line": True, "tolerance": 0.1}),
    ("UiPathContains", {"compat": "uipath", "line_by_line": True}),
    *(
        (name, {"mode": mode})
        for name in ("F1Score", "BleuScore", "GleuScore", "RougeScore", "MeteorScore")
        for mode in ("unicode", "compat")
    ),
    ("ExactMatch", {"case_sensitive": True}),
    ("PartialMatch", {"mode": "compat"}),
    ("Contains", {"search_text": "p"}),
    (
        "RetrievalResult",
        {"expected_items": [{"retrievalExtract_contains": "update"}], "match": "entailment"},
    ),
    ("TextSimilarity", {"evaluation_metric": "cosine", "threshold": 0.5}),
    ("Citations", {"count": "occurrences", "threshold": 2}),
    ("JsonEquals", {"case_sensitive": False, "negated": True}),
]


class LengthChat:
    """Grades by the length of the question, so that each row has its own grade in any order."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        size = len(str(request.messages[1]["content"]))
        reply = json.dumps(fill_schema(request.json_schema or {}, size))
        return ChatReply(reply, "judge-1", usage=Usage(size))


def fill_schema(schema: Mapping[str, Any], size: int) -> Any:
    """Return a value of a schema that depends on nothing but `size`."""
    if "enum" in schema:
        return schema["enum"][size % len(schema["enum"])]
    if schema.get("type") == "object":
        return {
            name: name not in SKIPPING and fill_schema(each, size)
            for name, each in schema["properties"].items()
        }
    if schema.get("type") == "array":
        return [fill_schema(schema["items"], size)]
    return {"number": 1, "integer": 1, "boolean": size % 2 == 0}.get(schema.get("type", ""), "length")


async def embed(texts: Sequence[str]) -> Any:
    """Return vectors that depend on nothing but the text."""
    return np.array([[len(text), ord(text[0]), 1.0] for text in texts], np.float32)


def evaluate(evaluation: Evaluation, rows: pl.DataFrame) -> pl.DataFrame:
    judging = Judging((LengthChat(),), 3, lambda: None, embed=embed)
    return asyncio.run(run_evaluation(evaluation, rows, judging)).drop("latency_ms")


def make_rows(name: str, responses: Sequence[str | None] = TEXTS) -> pl.DataFrame:
    count = len(responses)
    rows = pl.DataFrame({"response": responses, "expected_response": [*TEXTS[1:], TEXTS[0]][:count]})
    if name == "NumericMatch":  # a reference without a number is an error
        rows = rows.with_columns(pl.all() + " 7")
    return rows.with_columns(
        pl.col("response").alias("part.response"),
        pl.col("expected_response").alias("part.expected_response"),
        *(pl.lit(JSON.get(name, f"some {name}")).alias(name) for name in FIELDS if name not in rows.columns),
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
    assert evaluator.needs or evaluator.wants
    assert {*evaluator.needs, *evaluator.wants} <= set(FIELDS)
    assert evaluator.threshold is None or evaluator.threshold in (evaluator.thresholds or evaluator.scale)


@pytest.mark.parametrize("evaluator", BUILT_IN, ids=lambda each: each.name)
def test_unknown_options_are_refused_and_known_ones_explained(evaluator: Evaluator) -> None:
    with pytest.raises(ConfigError, match=rf"unknown option '{evaluator.name}\.bogus'"):
        resolve_evaluation(evaluator.name, REQUIRED.get(evaluator.name, {}) | {"bogus": 1})
    assert [name for name, option in evaluator.options.model_fields.items() if not option.description] == []


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_options_come_back_from_their_json(name: str, options: dict[str, Any]) -> None:
    evaluation = resolve_evaluation(name, options)
    again: Any = parse_json(evaluation.options_json)
    threshold = {} if evaluation.threshold is None else {"threshold": evaluation.threshold}
    again_resolved = resolve_evaluation(name, again | threshold)
    assert (again_resolved.options, again_resolved.threshold) == (evaluation.options, evaluation.threshold)
    assert list(again) == sorted(type(evaluation.options).model_fields)


def decide(evaluation: Evaluation, score: float) -> bool | None:
    threshold = evaluation.threshold
    if threshold is None:
        return None
    return score >= threshold if evaluation.evaluator.higher_is_better else score <= threshold


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_scores_lie_on_the_scale_and_decide_the_pass(name: str, options: dict[str, Any]) -> None:
    evaluation = resolve_evaluation(name, options)
    result = evaluate(evaluation, make_rows(name))
    assert result.schema == pl.Schema({n: dtype for n, dtype in RESULT.items() if n != "latency_ms"})
    assert set(result["status"]) == {"ok"}
    assert all(score in evaluation.evaluator.scale for score in result["score"])
    assert result["passed"].to_list() == [decide(evaluation, score) for score in result["score"]]
    assert set(result["metric"]) == {evaluation.evaluator.metric or name}
    assert set(result["evaluator_version"]) == {evaluation.evaluator.version}


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_a_null_in_a_needed_field_skips_that_row_and_names_the_field(
    name: str, options: dict[str, Any]
) -> None:
    evaluation = resolve_evaluation(name, options)
    full = make_rows(name)
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
    rows = make_rows(name, [TEXTS[0], None, TEXTS[2]]).with_columns(
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
    rows = make_rows(name, [*TEXTS[:3], None, *TEXTS[4:]])
    whole = evaluate(evaluation, rows).drop("row")
    assert_frame_equal(evaluate(evaluation, rows.reverse()).drop("row").reverse(), whole)
    parts = pl.concat([evaluate(evaluation, part) for part in rows.iter_slices(3)])
    assert parts["row"].to_list() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert_frame_equal(parts.drop("row"), whole)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_rows_of_several_uses_score_as_if_each_use_stood_alone(name: str, options: dict[str, Any]) -> None:
    first, rows = resolve_evaluation(name, options), make_rows(name)
    second = replace(first, threshold=first.evaluator.scale.low)
    judging = Judging((LengthChat(),), 3, lambda: None, embed=embed)
    mixed = rows.with_columns(use=pl.int_range(pl.len(), dtype=pl.UInt32) % 2)
    together = asyncio.run(run_evaluations([first, second], mixed, judging)).drop("latency_ms")
    alone = [evaluate(each, rows) for each in (first, second)]
    expected = pl.concat([alone[row % 2][row] for row in range(rows.height)])
    assert_frame_equal(together, expected)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_no_rows_give_no_rows(name: str, options: dict[str, Any]) -> None:
    assert evaluate(resolve_evaluation(name, options), make_rows(name, [])).height == 0


def test_a_scale_knows_its_ends() -> None:
    assert [score in Scale(0.0, 1.0) for score in (0, 1.0, -0.1, 1.1, float("nan"))] == [
        True,
        True,
        *[False] * 3,
    ]
    assert [score in Scale(1.0, None, whole=True) for score in (1, 2.0, 1.5, 0)] == [True, True, False, False]
    assert [str(scale) for scale in (Scale(1.0, 5.0), Scale(0.0, None))] == ["1..5", "0.."]
