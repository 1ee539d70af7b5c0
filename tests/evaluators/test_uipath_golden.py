"""UiPath's evaluators: every vector of its SDK in `compat`, and what our own rules decide otherwise."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.datasets.uipath_evaluators import to_snake
from assay.datasets.uipath_templates import parse_target, value_at
from assay.errors import ConfigError
from evaluators import (
    binary_classification,
    csv_columns,
    json_equals,
    json_similarity,
    multiclass_classification,
    tool_call_args,
    tool_call_count,
    tool_call_order,
    tool_call_output,
    uipath_contains,
)
from evaluators.catalog import Evaluation
from evaluators.runner import run_evaluation

if TYPE_CHECKING:
    from evaluators.contract import Evaluator

GOLDEN = Path(__file__).parents[1] / "golden"
EVALUATORS: dict[str, Evaluator] = {
    "uipath-exact-match": json_equals.EVALUATOR,
    "legacy-exact-match": json_equals.EVALUATOR,
    "uipath-contains": uipath_contains.EVALUATOR,
    "uipath-json-similarity": json_similarity.EVALUATOR,
    "legacy-json-similarity": json_similarity.EVALUATOR,
    "legacy-csv-exact-match": csv_columns.EVALUATOR,
    "uipath-binary-classification": binary_classification.EVALUATOR,
    "uipath-multiclass-classification": multiclass_classification.EVALUATOR,
    "uipath-tool-call-order": tool_call_order.EVALUATOR,
    "uipath-tool-call-count": tool_call_count.EVALUATOR,
    "uipath-tool-call-args": tool_call_args.EVALUATOR,
    "uipath-tool-call-output": tool_call_output.EVALUATOR,
}
RENAMED = {"line_by_line_evaluator": "line_by_line", "line_by_line_evaluation": "line_by_line"}
LABELS = ("uipath-binary-classification", "uipath-multiclass-classification")


def read_lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / name).read_text(encoding="utf-8").splitlines()]


VECTORS = {vector["id"]: vector for vector in read_lines("golden-uipath.jsonl")}
AGGREGATES = read_lines("golden-uipath-aggregates.jsonl")


def build_options(vector: dict[str, Any], compat: bool) -> dict[str, Any]:
    legacy = vector["evaluator"].startswith("legacy")
    options = {to_snake(key): value for key, value in vector["config"].items()}
    options = {RENAMED.get(key, key): value for key, value in options.items()}
    if vector["evaluator"] == "uipath-exact-match":
        options.setdefault("case_sensitive", False)
    if vector["evaluator"] in LABELS:
        del options["target_output_key"]
    if "target_sub_output_key" in options:
        options["columns"] = options.pop("target_sub_output_key").split(",")
    options |= {key: value for key, value in vector["criteria"].items() if key.startswith("tool")}
    if compat:
        options["compat"] = "uipath-legacy" if legacy else "uipath"
    return options


def build_fields(vector: dict[str, Any]) -> dict[str, str | None]:
    got, criteria = vector["actual"], vector["criteria"]
    if vector["evaluator"] in LABELS:
        label = value_at(got, parse_target(vector["config"]["targetOutputKey"]))
        return {"response": str(label), "expected_response": criteria["expectedClass"]}
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for place, span in enumerate(vector["trace"]):
        if span.get("tool.synthesized"):
            continue
        call = {"type": "tool_call", "tool_call_id": f"c{place}", "name": span["tool.name"]}
        calls.append(call | {"tool_id": span.get("tool.id"), "arguments": span.get("input.value")})
        if "output.value" in span:
            item = {"type": "tool_result", "tool_result": span["output.value"]}
            results.append({"role": "tool", "tool_call_id": f"c{place}", "content": [item]})
    expected = (
        criteria["searchText"] if "searchText" in criteria else json.dumps(criteria.get("expectedOutput"))
    )
    fields = {"response": json.dumps(got), "expected_response": expected}
    return fields | {"tool_calls": json.dumps(calls), "output_items": json.dumps(results)}


def run(evaluator: Evaluator, options: dict[str, Any], rows: list[dict[str, str | None]]) -> pl.DataFrame:
    checked = evaluator.options.model_validate(options)
    checked.check_setup()
    evaluation = Evaluation(evaluator, checked, evaluator.threshold, evaluator.name)
    return asyncio.run(run_evaluation(evaluation, pl.DataFrame(rows), None))


def replay(vector: dict[str, Any], compat: bool = True) -> dict[str, Any]:
    evaluator = EVALUATORS[vector["evaluator"]]
    return run(evaluator, build_options(vector, compat), [build_fields(vector)]).row(0, named=True)


@pytest.mark.parametrize("key", VECTORS)
def test_compat_scores_as_uipath_does(key: str) -> None:
    vector = VECTORS[key]
    result = replay(vector)
    if vector["score_type"] == "ERROR":
        assert (result["status"], result["score"]) == ("error", None)
        return
    by_line = any("ine" in name and vector["config"][name] is True for name in vector["config"])
    percent = vector["evaluator"].startswith("legacy") and not by_line
    wanted = vector["reported_score"] / (100 if percent else 1)
    assert (result["status"], result["error_message"]) == ("ok", None)
    assert result["score"] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize(
    "key", [key for key, vector in VECTORS.items() if isinstance(vector["details"], dict)]
)
def test_compat_tells_the_same_details(key: str) -> None:
    wanted = VECTORS[key]["details"]
    got = json.loads(replay(VECTORS[key])["details_json"] or "{}")
    for name in {"matched_leaves", "total_leaves", "lcs"} & wanted.keys():
        assert got.get(name, []) == pytest.approx(wanted[name])  # without any calls nothing is in order
    lines = wanted.get("line_by_line_results", [])
    assert [
        (line["line"], line["got"], line["expected"], line["score"]) for line in got.get("lines", [])
    ] == [(line["line_number"], line["actual"], line["expected"], float(line["score"])) for line in lines]


def make_rows(vector: dict[str, Any]) -> list[dict[str, str | None]]:
    return [
        {"response": actual, "expected_response": expected}
        for expected, actual in vector["pairs_expected_actual"]
    ]


SPELT = {
    "f_score": "fScore",
    "f_value": "fValue",
    "confusion_matrix": "confusionMatrix",
    "per_class": "perClass",
    "n_total": "nTotal",
    "n_scored": "nScored",
    "n_skipped": "nSkipped",
}


def spell(value: Any) -> Any:
    """Write names of figures as UiPath does."""
    return json.loads(
        json.dumps(value), object_pairs_hook=lambda pairs: {SPELT.get(k, k): v for k, v in pairs}
    )


@pytest.mark.parametrize(
    "vector", AGGREGATES, ids=lambda each: f"{each['kind']}-{each.get('spec', each.get('config'))}"
)
def test_aggregates_are_those_of_uipath(vector: dict[str, Any]) -> None:
    if "spec" in vector:
        evaluator = json_equals.EVALUATOR
        options: dict[str, Any] = {
            "case_sensitive": False,
            "aggregators": [vector["spec"] | {"classes": vector["classes"]}],
        }
    else:
        evaluator = EVALUATORS[vector["kind"]]
        options = {to_snake(key): value for key, value in vector["config"].items()}
    options["compat"] = "uipath"
    rows = run(evaluator, options, make_rows(vector))
    assert evaluator.aggregate is not None
    first = evaluator.aggregate(evaluator.options.model_validate(options), rows)[0]
    assert first.value == pytest.approx(vector["score"], abs=1e-12)
    told = {"metric": vector.get("spec", {}).get("type")} | spell(first.details)
    assert {key: told[key] for key in vector.get("details", {})} == vector.get("details", {})


# What our own rules decide otherwise: None is no score, an error or a skip.
DIFFERENT: dict[str, tuple[float | None, float | None]] = {
    "uip-001": (1.0, 0.0),  # a boolean is no number
    "uip-002": (0.0, 1.0),  # case does not matter inside objects either
    "uip-007": (0.0, 1.0),  # the text 8 is the number 8
    "uip-022": (0.0, None),  # a blank text is nothing to compare with
    "uip-027": (1.0, None),  # nothing to look for
    "uip-028": (0.0, 1.0),  # an object is searched as JSON
    "uip-029": (1.0, 0.0),  # and not as Python
    "uip-031": (1.0, 0.0),  # 8 is not 8.0 as text
    "uip-051": (1.0, 0.5),  # an empty object that is missing is missing
    "uip-056": (0.0, 1.0),  # a text that holds JSON is JSON
    "uip-066": (0.0, 1.0),  # a call is known by its name as well as by the id of its tool
    "uip-072": (0.0, 1.0),  # a tool that is not to be called was not called
    "uip-075": (1.0, 0.0),  # further arguments count, unless subset
    "uip-082": (1.0, 0.0),  # arguments that cannot be read are not empty
    "uip-086": (1.0, 0.0),  # an object without content is not empty
    "uip-088": (0.0, 1.0),  # strict asks for all outputs, not for their order
    "uip-090": (0.0, 1.0),  # the output 0 is 0
    "uip-093": (None, 0.0),  # an answer that is no class is wrong
    "uip-096": (1.0, None),  # a key that is not there is no pass
    "uip-100": (1.0, None),
    "uip-103": (0.0, 1.0),  # names of calls are brought into one form
    "uip-106": (0.0, 1.0),
    "uip-107": (0.5, 1.0),  # the best assignment counts
    "uip-117": (1.0, 0.0),  # integers are exact
    "uip-119": (1.0, 0.0),  # null is not the text None
}
REFUSED = {
    "uip-074",
    "uip-120",
}  # before anything is evaluated: an unknown comparison; lines of several parts


@pytest.mark.parametrize("key", [key for key in VECTORS if key not in REFUSED])
def test_without_compat_scores_are_the_same_but_for_the_known_differences(key: str) -> None:
    scores = replay(VECTORS[key])["score"], replay(VECTORS[key], compat=False)["score"]
    if key in DIFFERENT:
        assert scores == DIFFERENT[key]
    else:
        assert scores[1] == pytest.approx(scores[0])


@pytest.mark.parametrize("key", sorted(REFUSED))
def test_what_has_no_sense_is_refused_before_the_first_row(key: str) -> None:
    with pytest.raises(ConfigError):
        replay(VECTORS[key], compat=False)


def test_a_micro_average_counts_answers_that_are_no_class_as_misses() -> None:
    vector = next(each for each in AGGREGATES if each["kind"] == "uipath-multiclass-classification")
    options = {"classes": ["a", "b", "c"], "metric_type": "recall", "averaging": "micro"}
    rows = run(multiclass_classification.EVALUATOR, options, make_rows(vector))
    checked = multiclass_classification.MulticlassClassificationOptions.model_validate(options)
    figures = multiclass_classification.sum_up(checked, rows)
    assert [(each.metric, each.value) for each in figures] == [
        ("recall.micro", pytest.approx(4 / 7)),
        ("precision.micro", pytest.approx(4 / 6)),
        ("f_score.micro", pytest.approx(8 / 13)),
    ]
    assert rows["status"].to_list() == ["ok"] * 6 + ["error", "ok"]
