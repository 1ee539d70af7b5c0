from __future__ import annotations

import asyncio
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from evaluators.catalog import resolve_evaluation
from evaluators.runner import run_evaluations

ROWS = pl.DataFrame(
    {
        "response": ["Paris, 7", "a b c", "Stra\u00dfe 10", None, "", "x9"],
        "expected_response": ["Paris 7", "C", "STRASSE 10.5", "x", "1", "9"],
        "latency_ms": ["10", "20", "30", None, "x", "0"],
        "cost_usd": ["0.1", "0.2", None, "0.3", "0.4", "0"],
    }
)
USES: list[tuple[str, list[dict[str, Any]]]] = [
    (
        "Contains",
        [{"search_text": "par"}, {"search_texts": ["a", "z"]}, {"search_texts": ["STRASSE", "1"]}, {}],
    ),
    ("NotContains", [{"search_text": "par"}, {"search_texts": ["a", "z"]}, {}, {"search_texts": ["e"]}]),
    ("Regex", [{"pattern": "^P"}, {"pattern": "^P"}, {"pattern": r"\d"}, {"pattern": "x"}]),
    ("StartsWith", [{"search_text": "P"}, {}, {"search_text": "stra"}, {"search_text": ""}]),
    ("EndsWith", [{"search_text": "7"}, {}, {"search_text": "10"}, {"search_text": ""}]),
    ("NumericMatch", [{"absolute": 1}, {}, {"relative": 0.05}, {"absolute": 0.1, "relative": 0.1}]),
    ("Length", [{"min": 1}, {"max": 2}, {"min": 1, "max": 9}, {"min": 5, "max": 5}]),
    (
        "ForbiddenTerms",
        [{"terms": ["paris"]}, {"terms": []}, {"terms": ["strasse", "9"]}, {"terms": [" ", "x"]}],
    ),
    ("LatencyBelow", [{"max_ms": 10}, {"max_ms": 10.5}, {"max_ms": 20}, {"max_ms": 1}]),
    ("CostBelow", [{"max_usd": 0.1}, {"max_usd": 0.15}, {"max_usd": 0}, {"max_usd": 1}]),
]


def run(name: str, options: list[dict[str, Any]], rows: pl.DataFrame, first: int = 0) -> pl.DataFrame:
    """Use the options in turn, from the `first` row of the whole on."""
    evaluations = [resolve_evaluation(name, each) for each in options]
    use = pl.int_range(first, first + pl.len(), dtype=pl.UInt32) % len(options)
    found = asyncio.run(run_evaluations(evaluations, rows.with_columns(use=use), None))
    return found.drop("row", "latency_ms")


@pytest.mark.parametrize(("name", "options"), USES)
def test_rows_with_options_of_their_own_score_as_alone(name: str, options: list[dict[str, Any]]) -> None:
    rows = pl.concat([ROWS] * 4).head(23)
    whole = run(name, options, rows)
    single = [run(name, options, rows[n : n + 1], n) for n in range(rows.height)]
    assert_frame_equal(whole, pl.concat(single))
    assert whole["score"].n_unique() > 1
