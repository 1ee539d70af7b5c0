from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.api import Run

ANSWERS = [("spam", "spam", "a"), ("ham", "spam", "a"), ("spam", "ham", "b"), ("ham", "ham", "b")]


def make_rows() -> list[dict[str, Any]]:
    return [
        {"id": str(n), "response": got, "ground_truth": wanted, "category": category}
        for n, (got, wanted, category) in enumerate([*ANSWERS, ("spam", "spam", "a")])
    ]


def read_figures(run: Run, slice_: str = "all") -> dict[str, float | None]:
    rows = run.summary.filter((pl.col("slice") == slice_) & (pl.col("metric") != "BinaryClassification"))
    return dict(rows.select("metric", "mean").rows())


def test_a_figure_over_all_rows_stands_in_the_summary_beside_mean_and_pass_rate(
    run_rows: Callable[..., Run],
) -> None:
    run = run_rows(
        *make_rows(),
        evaluators="BinaryClassification",
        options={"BinaryClassification": {"positive_class": "spam", "metric_type": "precision"}},
    )
    assert read_figures(run)["precision"] == pytest.approx(2 / 3)
    whole = run.summary.filter((pl.col("slice") == "all") & (pl.col("metric") == "BinaryClassification"))
    assert whole.select("mean", "passed", "failed").row(0) == (pytest.approx(0.6), 3, 2)
    figure = run.summary.filter(pl.col("metric") == "precision").row(0, named=True)
    assert (figure["pass_rate"], figure["passed"], figure["scored"], figure["attempted"]) == (None, 0, 5, 5)


def test_each_category_has_its_own_figures(run_rows: Callable[..., Run]) -> None:
    options = {"BinaryClassification": {"positive_class": "spam", "metric_type": "recall"}}
    run = run_rows(*make_rows(), evaluators="BinaryClassification", options=options)
    rows = run.summary.filter((pl.col("metric") == "recall") & (pl.col("slice") == "category"))
    assert dict(rows.select("value", "mean").rows()) == {"a": pytest.approx(2 / 3), "b": 0.0}


def test_a_confusion_matrix_stands_in_the_details(run_rows: Callable[..., Run]) -> None:
    options = {
        "JsonEquals": {
            "case_sensitive": False,
            "aggregators": [{"type": "confusion_matrix", "classes": ["spam", "ham"]}],
        }
    }
    run = run_rows(*make_rows(), evaluators="JsonEquals", options=options)
    found = run.summary.filter((pl.col("metric") == "confusion_matrix") & (pl.col("slice") == "all"))
    details = json.loads(found["details_json"].item())
    assert details["confusion_matrix"] == [[2, 1], [1, 1]]  # a row per answer, a column per expected class
    assert found["mean"].item() is None


def test_errors_and_skipped_rows_are_in_no_figure(run_rows: Callable[..., Run]) -> None:
    rows = [*make_rows(), {"id": "x", "response": "spam"}, {"id": "y", "ground_truth": "spam"}]
    options = {"BinaryClassification": {"positive_class": "spam", "metric_type": "precision"}}
    run = run_rows(*rows, evaluators="BinaryClassification", options=options, max_errors=1)
    figure = run.summary.filter((pl.col("metric") == "precision") & (pl.col("slice") == "all"))
    told = ("mean", "scored", "errored", "skipped")
    assert figure.select(told).row(0) == (pytest.approx(2 / 3), 5, 1, 1)
