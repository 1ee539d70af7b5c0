"""Settling: evaluations that are not due, because another one's outcome settled their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.tables import NOT_DUE, Status

if TYPE_CHECKING:
    from evaluators.catalog import Catalog


def skip_rows(uses: pl.DataFrame, rows: pl.DataFrame, catalog: Catalog) -> pl.DataFrame:
    """Return the columns of SCORES, but for whose they are, of rows whose evaluation is not due.

    Args:
        uses: PLAN rows of one evaluator.
        rows: Columns `use`, the row of `uses`, and `reason`.
        catalog: The evaluators.
    """
    evaluator = catalog.find(str(uses["evaluator"][0]).partition(":")[0])
    return rows.select(
        "reason",
        metric=pl.lit(evaluator.metric or evaluator.name),
        evaluator_version=pl.lit(evaluator.version, pl.Int32),
        threshold=uses["threshold"].gather(rows["use"]),
        status=pl.lit("skipped", Status),
        error_code=pl.lit(NOT_DUE),
    )
