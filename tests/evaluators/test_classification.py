from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import CallError
from evaluators.binary_classification import BinaryClassificationOptions
from evaluators.binary_classification import compare_classes as compare_binary
from evaluators.binary_classification import sum_up as sum_up_binary
from evaluators.confusion import Aggregator, count_classes, name_metric, rate
from evaluators.json_equals import JsonEqualsOptions
from evaluators.json_equals import sum_up as sum_up_equals
from evaluators.multiclass_classification import MulticlassClassificationOptions, compare_classes, sum_up

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASSES = ["a", "b", "c"]
PAIRS = st.lists(st.tuples(st.sampled_from("abcz"), st.sampled_from("abcz")))
BINARY = BinaryClassificationOptions(positive_class="Spam")
MANY = MulticlassClassificationOptions(classes=["Plan", "Pay"])


def make_scores(pairs: Sequence[tuple[str, str]], failed: int = 0) -> pl.DataFrame:
    details = [json.dumps({"expected_class": left, "actual_class": right}) for left, right in pairs]
    return pl.DataFrame(
        {"status": ["ok"] * len(pairs) + ["error"] * failed, "details_json": [*details, *[None] * failed]},
        schema={"status": pl.String, "details_json": pl.String},
    )


def test_labels_are_compared_without_case_and_white_space_around_them() -> None:
    fields = {"expected_response": "Spam", "response": " SPAM\n"}
    assert compare_binary(BINARY, fields).score == 1.0
    assert compare_binary(BINARY.model_copy(update={"compat": "uipath"}), fields).score == 0.0
    verdict = compare_classes(MANY, {"expected_response": "plan", "response": "pay"})
    assert (verdict.score, verdict.reason) == (0.0, "expected 'plan', got 'pay'")
    assert verdict.details == {"expected_class": "plan", "actual_class": "pay"}


def test_an_answer_that_is_no_class_is_wrong_and_an_expectation_that_is_none_an_error() -> None:
    assert compare_classes(MANY, {"expected_response": "plan", "response": "?"}).score == 0.0
    with pytest.raises(CallError, match="unknown_class: expected 'x' is none of"):
        compare_classes(MANY, {"expected_response": "x", "response": "plan"})


def test_figures_of_the_positive_class_stand_with_the_chosen_one_first() -> None:
    options = BinaryClassificationOptions(positive_class="A", metric_type="f-score", f_value=2)
    scores = make_scores([("a", "a"), ("a", "b"), ("b", "b"), ("b", "a"), ("c", "a"), ("a", "a")], failed=1)
    figures = sum_up_binary(options, scores)
    assert [(each.metric, each.value) for each in figures] == [
        ("f_score.fb2", pytest.approx(0.625)),
        ("precision", 0.5),
        ("recall", pytest.approx(2 / 3)),
    ]
    assert figures[0].details is not None
    assert figures[0].details["confusion_matrix"] == [[2, 2], [1, 1]]
    assert figures[0].details["n_scored"] == 6


def test_without_scored_rows_there_is_no_figure() -> None:
    none = make_scores([], failed=2)
    options = JsonEqualsOptions(aggregators=[Aggregator(type="recall", classes=CLASSES)])
    for figures in (sum_up_binary(BINARY, none), sum_up(MANY, none), sum_up_equals(options, none)):
        assert {each.value for each in figures} == {None}


def test_a_confusion_matrix_is_no_figure_but_its_details() -> None:
    options = JsonEqualsOptions(aggregators=[Aggregator(type="confusion_matrix", classes=CLASSES)])
    (matrix,) = sum_up_equals(options, make_scores([("a", "B"), ("a", "a"), ("z", "a")]))
    assert (matrix.metric, matrix.value) == ("confusion_matrix", None)
    assert matrix.details == {
        "classes": CLASSES,
        "confusion_matrix": [[1, 0, 0], [1, 0, 0], [0, 0, 0]],
        "n_total": 3,
        "n_scored": 2,
        "n_skipped": 1,
    }


def test_names_of_figures() -> None:
    assert name_metric("fscore", "macro") == name_metric("f-score", "macro") == "f_score.macro"
    assert name_metric("fscore", "micro", 0.5) == "f_score.micro.fb0.5"
    assert name_metric("recall", "micro", 2) == "recall.micro"


@given(PAIRS)
def test_counts_are_those_of_a_loop_over_pairs(pairs: list[tuple[str, str]]) -> None:
    confusion = count_classes(pairs, CLASSES)
    known = [(left, right) for left, right in pairs if left in CLASSES]
    assert (confusion.total, confusion.scored) == (len(pairs), len(known))
    for place, name in enumerate(CLASSES):
        assert confusion.count_class(place) == {
            "tp": sum(left == right == name for left, right in known),
            "tn": sum(name not in pair for pair in known),
            "fp": sum(left != name and right == name for left, right in known),
            "fn": sum(left == name and right != name for left, right in known),
            "support": sum(left == name for left, _ in known),
        }


@given(PAIRS)
def test_figures_lie_between_zero_and_one(pairs: list[tuple[str, str]]) -> None:
    confusion = count_classes(pairs, CLASSES)
    for averaging in ("macro", "micro"):
        assert all(0 <= value <= 1 for value in confusion.average(averaging, 2.0).values())


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_the_f_score_of_beta_one_is_the_harmonic_mean(hits: int, false: int, missed: int) -> None:
    figures = rate(hits, false, missed, 1.0)
    expected = 2 * hits / (2 * hits + false + missed) if hits else 0.0
    assert figures["f_score"] == pytest.approx(expected)
