from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.api import Run

DOCUMENTS = {
    "query": "refunds?",
    "retrieval_ground_truth": [{"document_id": "1", "query_relevance_label": 4}],
    "retrieved_documents": [{"document_id": "1", "relevance_score": 9.5}],
}
STEPS = {"query": "book it", "actions": [{"type": "tool_call", "name": "a"}], "expected_actions": ["a"]}


def read(run: Run) -> list[tuple[Any, ...]]:
    return run.scores.sort("item_id").select("status", "score", "reason").rows()


@pytest.mark.parametrize(
    ("row", "evaluator"),
    [(DOCUMENTS, "builtin.document_retrieval"), (STEPS, "builtin.task_navigation_efficiency")],
)
def test_what_reads_no_answer_needs_none(
    row: dict[str, Any], evaluator: str, run_rows: Callable[..., Run]
) -> None:
    assert [found[:2] for found in read(run_rows(row, evaluators=evaluator))] == [("ok", 1.0)]


def test_an_agent_that_said_nothing_is_an_error_where_its_answer_counts(run_rows: Callable[..., Run]) -> None:
    rows = [
        {"id": "a", "query": "q", "response": "x", "ground_truth": "x"},
        {"id": "b", "query": "q", "ground_truth": "x"},
    ]
    run = run_rows(*rows, evaluators="ExactMatch", max_errors=1)
    assert [found[0] for found in read(run)] == ["ok", "error"]


@pytest.mark.parametrize("evaluator", ["JsonEquals", "JsonSimilarity", "ExactMatch"])
def test_a_mapped_null_is_missing_for_texts_and_values_alike(
    evaluator: str, run_rows: Callable[..., Run]
) -> None:
    rows = [{"id": "a", "response": "1", "gold": 1}, {"id": "b", "response": "null", "gold": None}]
    run = run_rows(*rows, evaluators=evaluator, mapping={"expected_response": "gold"})
    assert read(run) == [("ok", 1.0, None), ("skipped", None, "no expected_response")]


def test_values_keep_their_type(run_rows: Callable[..., Run]) -> None:
    row = {
        "response": "8",
        "gold": {"a": [1, 2.50, True, None, "8"]},
        "got": {"a": [1.0, 2.5, True, None, "8"]},
    }
    mapping = {"expected_response": "gold", "response": "got"}
    assert read(run_rows(row, evaluators="JsonEquals", mapping=mapping)) == [("ok", 1.0, None)]
