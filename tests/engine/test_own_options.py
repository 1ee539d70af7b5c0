from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.testing import assert_frame_equal

import assay

if TYPE_CHECKING:
    from pathlib import Path

    from assay.api import Run

COUNT = 120


def make_items(uses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "prompt": f"question {n}",
            "response": f"answer {n} of {COUNT}",
            "expected_response": "answer",
            "evaluators": use,
            "evaluators_mode": "replace",
        }
        for n, use in enumerate(uses)
    ]


def run_items(folder: Path, items: list[dict[str, Any]], name: str, **settings: Any) -> Run:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"schemaVersion": "1.8.0", "items": items}), encoding="utf-8")
    return assay.run(path, store=folder / "store", **settings)


def make_uses() -> list[dict[str, Any]]:
    """Give every item options and a threshold of its own, some of them of another kind."""
    return [
        {
            "Contains": {"search_text": f"answer {n}", "case_sensitive": n % 3 == 0},
            "PartialMatch": {"threshold": (n + 1) / (COUNT + 1)},
            **({"Length": {"max": n}} if n % 2 else {}),
        }
        for n in range(COUNT)
    ]


def test_items_with_options_of_their_own_score_as_if_each_stood_alone(tmp_path: Path) -> None:
    uses = make_uses()
    items = make_items(uses)
    together = run_items(tmp_path, items, "together").scores
    assert together.height == sum(map(len, uses))
    assert together["options_sha"].n_unique() > COUNT
    told = ["evaluator", "options_sha", "score", "passed", "threshold", "details_json", "status"]
    for n in (0, 1, 7, COUNT - 1):
        alone = run_items(tmp_path, [items[n]], f"alone{n}").scores
        same = together.join(alone.select("evaluator", "options_sha"), on=["evaluator", "options_sha"])
        same = same.filter(pl.col("item_id") == alone["item_id"][0])
        assert_frame_equal(
            same.select(told).sort("evaluator"), alone.select(told).sort("evaluator"), check_row_order=True
        )


def test_batches_of_any_size_give_the_same_scores_for_items_with_options_of_their_own(tmp_path: Path) -> None:
    items = make_items(make_uses())
    key = ["item_id", "evaluator"]
    whole = run_items(tmp_path, items, "whole").scores.drop("run_id").sort(key)
    parts = run_items(tmp_path, items, "parts", batch_size=7).scores.drop("run_id").sort(key)
    assert_frame_equal(whole, parts)
    assert whole.filter(pl.col("evaluator") == "PartialMatch")["threshold"].n_unique() == COUNT
