from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from evaluators import document_retrieval
from evaluators.catalog import Catalog
from evaluators.runner import run_evaluation

CATALOG = Catalog([document_retrieval.EVALUATOR])
FIGURES = ["ndcg@3", "xdcg@3", "fidelity", "top1_relevance", "top3_max_relevance", "holes", "holes_ratio"]
LABELS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 4), min_size=1)
SCORES = st.lists(st.sampled_from("abcdefghxy"), unique=True, max_size=10)


def judge(retrieved: object, truth: object, **options: Any) -> dict[str, Any]:
    texts = {"retrieved_documents": retrieved, "retrieval_ground_truth": truth}
    rows = pl.DataFrame({name: [None if v is None else json.dumps(v)] for name, v in texts.items()})
    evaluation = CATALOG.resolve("builtin.document_retrieval", options)
    row = asyncio.run(run_evaluation(evaluation, rows.cast(pl.String), None)).row(0, named=True)
    return row | json.loads(row["details_json"] or "{}")


def truth(**labels: int) -> list[dict[str, Any]]:
    return [{"document_id": name, "query_relevance_label": label} for name, label in labels.items()]


def ranked(*names: str) -> list[dict[str, Any]]:
    """Documents in this order of relevance, stored the other way round."""
    return [{"document_id": name, "relevance_score": -place} for place, name in enumerate(names)][::-1]


def test_the_threshold_of_ndcg_is_that_of_the_evaluator_under_both_names() -> None:
    for name in ("threshold", "ndcg_threshold"):
        row = judge(ranked("b", "a"), truth(a=4, b=3), **{name: 0.9})
        assert (row["threshold"], row["passed"], row["metric"]) == (0.9, False, "ndcg@3")
        assert row["score"] == pytest.approx(0.8479354820336094)


def test_other_thresholds_decide_the_verdicts_in_the_details() -> None:
    row = judge(
        ranked("a", "x"), truth(a=4), top1_relevance_threshold=4, total_retrieved_documents_threshold=2
    )
    assert (row["top1_relevance_result"], row["total_retrieved_documents_passed"]) == ("pass", True)
    assert (row["holes_result"], row["holes_threshold"], row["holes_higher_is_better"]) == ("fail", 0, False)
    assert row["xdcg@3_threshold"] == 50.0
    open_ended = judge(ranked("a"), truth(a=4), xdcg_threshold=None)
    assert [open_ended[f"xdcg@3_{part}"] for part in ("threshold", "passed", "result")] == [None] * 3


def test_fidelity_without_a_relevant_document_is_null_and_has_no_verdict() -> None:
    row = judge(ranked("a"), truth(a=1), ground_truth_label_min=1, ground_truth_label_max=5)
    assert (row["fidelity"], row["fidelity_passed"], row["fidelity_result"]) == (None, None, None)
    assert row["score"] == 1.0


def test_labels_from_ten_are_weighed_by_their_number() -> None:
    row = judge(ranked("b"), truth(a=10, b=2), ground_truth_label_max=10)
    assert row["fidelity"] == pytest.approx(7 / (2047 + 7))


@pytest.mark.parametrize(
    ("retrieved", "known", "message"),
    [
        (ranked("a"), [], "holds no document"),
        (ranked("a"), truth(a=5), r"5 is not within 0\.\.4"),
        (ranked("a"), [{"document_id": "a", "query_relevance_label": 1.5}], "a whole label"),
        (ranked("a"), [{"query_relevance_label": 1}], "lacks document_id"),
        ([{"document_id": "a"}], truth(a=1), "lacks document_id or a relevance_score"),
        ([{"document_id": "a", "relevance_score": "9"}], truth(a=1), "in numbers"),
        (
            [{"document_id": ["a"], "relevance_score": 9}],
            truth(a=1),
            "a document_id of retrieved_documents is a list, expected text",
        ),
        ({"document_id": "a"}, truth(a=1), "retrieved_documents is an object, expected a list of objects"),
        ("[]", truth(a=1), "retrieved_documents is text, expected a list .* with --json-column"),
        (ranked("a"), "abc", "retrieval_ground_truth is text, expected a list .* with --json-column"),
        ([{"document_id": True, "relevance_score": 9}], truth(a=1), "a document_id .* is a boolean"),
        (["a"], truth(a=1), r"retrieved_documents\[0\] is text"),
        (ranked(*map(str, range(10_001))), truth(a=1), "at most 10000"),
    ],
)
def test_documents_that_cannot_be_judged_are_an_error_of_their_row(
    retrieved: object, known: object, message: str
) -> None:
    row = judge(retrieved, known)
    assert (row["status"], row["error_code"], row["score"]) == ("error", "bad_field", None)
    assert pl.Series([row["error_message"]]).str.contains(message).all()


def test_ids_are_compared_by_value_and_long_ones_stay_apart() -> None:
    known = [
        {"document_id": 1, "query_relevance_label": 4},
        {"document_id": 10**22, "query_relevance_label": 4},
    ]
    found = [{"document_id": id_, "relevance_score": 1} for id_ in (1.0, 10**22 + 1, "1")]
    assert judge(found, known)["holes"] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ground_truth_label_min": 4}, "ground_truth_label_min below ground_truth_label_max"),
        ({"ground_truth_label_min": -1}, "greater than or equal to 0"),
        ({"ground_truth_label_max": 4.5}, "ground_truth_label_max"),
        ({"ndcg_threshold": 2}, r"within 0\.\.1"),
        ({"ndcg_treshold": 0.5}, "ndcg_threshold"),
    ],
)
def test_options_out_of_range_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CATALOG.resolve("DocumentRetrieval", options)


def test_a_row_without_documents_is_skipped_by_name() -> None:
    assert judge(None, truth(a=1))["reason"] == "no retrieved_documents"
    assert judge(ranked("a"), None)["reason"] == "no retrieval_ground_truth"


@given(SCORES, LABELS)
def test_scores_lie_within_the_scale_and_the_best_order_scores_one(
    names: list[str], labels: dict[str, int]
) -> None:
    row = judge(ranked(*names), truth(**labels))
    assert row["status"] == "ok"
    assert 0.0 <= row["score"] <= 1.0
    assert all(math.isfinite(row[name]) for name in FIGURES if row[name] is not None)
    ideal = judge(ranked(*sorted(labels, key=lambda name: -labels[name])), truth(**labels))
    assert ideal["score"] == (1.0 if any(labels.values()) else 0.0)
    assert row["score"] <= ideal["score"]
    assert (ideal["holes"], ideal["fidelity"]) == (0, 1.0 if any(labels.values()) else 0.0)


@given(st.permutations(ranked("a", "b", "c", "x")))
def test_the_stored_order_never_matters(documents: list[dict[str, Any]]) -> None:
    assert judge(documents, truth(a=1, b=4, c=2)) == judge(ranked("a", "b", "c", "x"), truth(a=1, b=4, c=2))
