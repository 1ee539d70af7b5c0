from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from assay.errors import ConfigError
from evaluators import document_retrieval, regex_match, task_navigation_efficiency
from evaluators.catalog import Catalog
from evaluators.runner import run_evaluation

GOLDEN = Path(__file__).parents[1] / "golden" / "golden-foundry.jsonl"
OWN = (document_retrieval, regex_match, task_navigation_efficiency)
CATALOG = Catalog([module.EVALUATOR for module in OWN])
NAMES = tuple(f"builtin.{module.__name__.rpartition('.')[2]}" for module in OWN)
LINES: list[dict[str, Any]] = [
    line
    for line in map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines())
    if line["evaluator"] in NAMES
]
FIELDS = {
    "builtin.document_retrieval": {
        "retrieved_documents": "retrieved_documents",
        "retrieval_ground_truth": "retrieval_ground_truth",
    },
    "builtin.task_navigation_efficiency": {"actions": "response", "expected_actions": "ground_truth"},
    "builtin.regex_match": {"response": "response", "expected_response": "ground_truth"},
}

# What the original says, to what is found here instead; an error of the original that is listed nowhere is an
# error here too, of the row or of the configuration.
TEXT_ONLY = "must be a list, got str"  # an assistant's plain text is no step: it is passed over
JSON_PARAMETERS = "must be a string (tool name), got list"  # names and parameters as JSON can hold them
NO_REFERENCE = (["{{ground_truth}}"], None)  # a row without the reference is skipped, not failed
DEVIATIONS = {TEXT_ONLY: 0.0, JSON_PARAMETERS: 1.0}
IN_THE_ROW = "ndcg@3_"  # threshold and verdict of the score stand in the row, not in its details


def evaluate(line: dict[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in line["options"].items() if name != "note"}
    typed = line["evaluator"] != "builtin.regex_match"
    given = {field: line["inputs"].get(name) for field, name in FIELDS[line["evaluator"]].items()}
    rows = pl.DataFrame({field: [json.dumps(value) if typed else value] for field, value in given.items()})
    evaluation = CATALOG.resolve(line["evaluator"], options)
    return asyncio.run(run_evaluation(evaluation, rows.cast(pl.String), None)).row(0, named=True)


def pick(*evaluators: str) -> list[dict[str, Any]]:
    names = {f"builtin.{name}" for name in evaluators}
    return [line for line in LINES if line["evaluator"] in names and "error" not in line]


@pytest.mark.parametrize("line", pick("document_retrieval", "task_navigation_efficiency"))
def test_every_figure_of_the_original_is_met(line: dict[str, Any]) -> None:
    name = line["evaluator"].removeprefix("builtin.")
    row, outputs = evaluate(line), line["outputs"]
    assert row["score"] == pytest.approx(outputs[f"{name}_score"], abs=1e-12)
    assert (row["passed"], row["threshold"]) == (outputs[f"{name}_passed"], outputs[f"{name}_threshold"])
    details = json.loads(row["details_json"])
    figures = {key: value for key, value in outputs[f"{name}_properties"].items() if IN_THE_ROW not in key}
    for key, value in figures.items():
        known = isinstance(value, str | bool)
        assert details[key] == (value if known else pytest.approx(value, abs=1e-12)), key
    assert row["metric"] == ("ndcg@3" if name == "document_retrieval" else "TaskNavigationEfficiency")


@pytest.mark.parametrize("line", pick("regex_match"))
def test_patterns_match_where_the_original_says_so(line: dict[str, Any]) -> None:
    row, outputs = evaluate(line), line["outputs"]
    if (line["options"]["patterns"], line["inputs"].get("ground_truth")) == NO_REFERENCE:
        assert (row["status"], row["reason"], row["score"]) == ("skipped", "no expected_response", None)
        return
    assert row["passed"] is outputs["regex_match"]
    told = {key: value for key, value in outputs.items() if not key.startswith("regex_match")}
    assert json.loads(row["details_json"]) == told


@pytest.mark.parametrize("line", [line for line in LINES if "error" in line])
def test_what_the_original_refuses_is_an_error_unless_listed(line: dict[str, Any]) -> None:
    message = line["error"]["message"]
    if "Invalid regular expression" in message:
        with pytest.raises(ConfigError, match=r"RegexMatch\.patterns\.0: got '\('.*missing \)"):
            evaluate(line)
        return
    row = evaluate(line)
    read = [score for text, score in DEVIATIONS.items() if text in message]
    wanted = ("ok", read[0]) if read else ("error", None)
    assert (row["status"], row["score"]) == wanted


def test_all_lines_are_there() -> None:
    assert len(LINES) == 63
    messages = [line["error"]["message"] for line in LINES if "error" in line]
    assert all(any(text in message for message in messages) for text in DEVIATIONS)
