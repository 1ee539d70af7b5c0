from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from assay.contracts.tables import ITEMS, SAMPLES, SCORES, conform
from transforms.summary import failed_rows, summarise, worst_items

THRESHOLD = 0.5


def scores(*values: float | str | None, evaluator: str = "E") -> pl.DataFrame:
    rows = [
        {
            "run_id": "r", "item_id": str(n), "turn": 0, "trial": 0, "level": "turn", "evaluator": evaluator,
            "options_sha": "o", "metric": evaluator, "evaluator_version": 1,
            "score": value if isinstance(value, float) else None,
            "passed": value >= THRESHOLD if isinstance(value, float) else None,
            "status": "ok" if isinstance(value, float) else value,
        }
        for n, value in enumerate(values)
    ]  # fmt: skip
    types = {"score": pl.Float64, "passed": pl.Boolean}
    return conform(pl.DataFrame(rows, schema_overrides=types), SCORES) if rows else SCORES.empty()


def items(*categories: str | None) -> pl.LazyFrame:
    rows: list[dict[str, Any]] = [
        {"item_id": str(n), "turn": 0, "turn_count": 1, "item_sha": "s", "source_file": "f", "tags": [],
         "item_json": "{}", "category": category}
        for n, category in enumerate(categories)
    ]  # fmt: skip
    return conform(pl.DataFrame(rows, schema_overrides={"category": pl.String}), ITEMS).lazy()


@pytest.mark.parametrize(  # field case F073
    ("values", "expected"),
    [
        ([1.0, 0.0], (0.5, 2, 2, 0, 1.0, 0.5)),
        ([1.0, "error"], (1.0, 1, 2, 1, 0.5, 0.5)),
        ([0.9, 0.8, 0.85, 0.8, "error"], (0.8375, 4, 5, 1, 0.8, 0.8)),
        (["error", "error"], (None, 0, 2, 2, 0.0, 0.0)),
        (["skipped"], (None, 0, 0, 0, None, None)),
        ([1.0, "skipped"], (1.0, 1, 1, 0, 1.0, 1.0)),
    ],
)
def test_errors_stay_in_the_denominator_and_out_of_the_mean(
    values: list[Any], expected: tuple[Any, ...]
) -> None:
    counted = summarise(scores(*values).lazy(), items(*[None] * len(values)), "r")
    columns = ["mean", "scored", "attempted", "errored", "coverage", "pass_rate"]
    assert counted.select(columns).row(0) == pytest.approx(expected)


def test_the_bounds_take_every_error_as_a_fail_and_as_a_pass() -> None:
    counted = summarise(scores(1.0, 0.0, "error", "error").lazy(), items(*[None] * 4), "r")
    assert counted.select("pass_rate_low", "pass_rate_high").row(0) == (0.25, 0.75)


def test_categories_are_counted_beside_the_whole() -> None:
    counted = summarise(scores(1.0, 0.0, 1.0).lazy(), items("a", "b", None), "r")
    assert counted.select("slice", "value", "passed", "failed").rows() == [
        ("all", None, 2, 1),
        ("category", "a", 1, 0),
        ("category", "b", 0, 1),
    ]


def test_no_scores_give_no_rows() -> None:
    assert summarise(scores().lazy(), items("a"), "r").height == 0


def samples(*texts: str | None) -> pl.LazyFrame:
    rows = [
        {"run_id": "r", "item_id": str(n), "turn": 0, "trial": 0, "output_text": text, "status": "ok",
         "attempts": 1, "from_ledger": False}
        for n, text in enumerate(texts)
    ]  # fmt: skip
    return conform(pl.DataFrame(rows), SAMPLES).lazy()


def test_the_worst_items_come_first_once_each() -> None:
    both = pl.concat(
        [scores(1.0, 0.0, 0.2, "error", evaluator="A"), scores(1.0, 0.4, 0.9, 1.0, evaluator="B")]
    )
    failed = failed_rows(both.lazy(), samples("w", "x", "y", "z"), items(*["c"] * 4))
    assert failed.collect().select("item_id", "evaluator").rows() == [
        ("3", "A"),
        ("1", "A"),
        ("1", "B"),
        ("2", "A"),
    ]
    worst = worst_items(failed, 2)
    assert worst.select("item_id", "verdicts", "actual", "category").rows() == [
        ("3", "A error", "z", "c"),
        ("1", "A 0, B 0.4", "x", "c"),
    ]
