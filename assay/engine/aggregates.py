"""Aggregates: figures about all rows of a run that an evaluator defines itself, such as a macro F."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import dump_json
from assay.contracts.tables import ITEMS, PLAN, SCORES, SUMMARY
from assay.engine.planning import restore_evaluation
from assay.store.parts import scan_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.store.layout import RunFolder
    from evaluators.catalog import Catalog, Evaluation


def aggregate_scores(folder: RunFolder, summary: pl.DataFrame, catalog: Catalog) -> pl.DataFrame:
    """Return the aggregates of a run, per evaluator and slice.

    Args:
        folder: A run whose parts are all written.
        summary: SUMMARY of the run, whose slices and counts the aggregates share.
        catalog: The evaluators.

    Returns:
        SUMMARY rows: the figure is the `mean`, its name the metric; it has no verdict, so nothing passed
        or failed. Where a run used an evaluator with several options, their hash follows the name.

    Raises:
        StoreError: A part cannot be read.
    """
    labels = [name for name in summary["evaluator"].unique() if _aggregates(name, catalog)]
    if not labels:
        return SUMMARY.empty()
    keys = ["evaluator", "options_sha", "options_json", "threshold"]
    plan = scan_parts(folder, PLAN).filter(pl.col("evaluator").is_in(labels))
    uses = plan.select(keys).unique().sort(keys).collect()
    parts: list[pl.DataFrame] = []
    for use in uses.iter_rows(named=True):
        several = uses.filter(pl.col("evaluator") == use["evaluator"]).height > 1
        evaluation = restore_evaluation(use, catalog)
        scores = _read_scores(folder, use["evaluator"], use["options_sha"])
        suffix = f"@{use['options_sha']}" if several else ""
        rows = summary.filter(pl.col("evaluator") == use["evaluator"]).iter_rows(named=True)
        parts += [_aggregate(evaluation, scores, row, suffix) for row in rows]
    return pl.concat(parts) if parts else SUMMARY.empty()


def _aggregates(label: str, catalog: Catalog) -> bool:
    return catalog.find(label.partition(":")[0]).aggregate is not None


def _read_scores(folder: RunFolder, label: str, options_sha: str) -> pl.DataFrame:
    categories = scan_parts(folder, ITEMS).select("item_id", "turn", "category")
    own = (pl.col("evaluator") == label) & (pl.col("options_sha") == options_sha)
    scores = scan_parts(folder, SCORES).filter(own)
    return scores.join(categories, on=["item_id", "turn"], how="left", maintain_order="left").collect()


def _aggregate(
    evaluation: Evaluation, scores: pl.DataFrame, row: dict[str, object], suffix: str
) -> pl.DataFrame:
    """Aggregate the scores of the slice of one row of SUMMARY."""
    aggregate = evaluation.evaluator.aggregate
    inside = scores if row["slice"] == "all" else scores.filter(pl.col("category") == row["value"])
    columns = inside.select("score", "label", "passed", "status", "details_json")
    figures = aggregate(evaluation.options, columns) if aggregate is not None else ()

    def describe() -> Iterator[dict[str, object]]:
        for figure in figures:
            yield row | {
                "metric": f"{figure.metric}{suffix}",
                "mean": figure.value,
                "details_json": None if figure.details is None else dump_json(figure.details),
                "passed": 0,
                "failed": 0,
                **dict.fromkeys(("pass_rate", "pass_rate_low", "pass_rate_high")),
            }

    return pl.DataFrame(list(describe()), schema=dict(SUMMARY.columns))
