"""LatencyBelow: whether the answer came in time."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options


class LatencyBelowOptions(Options):
    """Options of LatencyBelow."""

    max_ms: float = Field(gt=0, allow_inf_nan=False, description="most milliseconds that pass")


def measure_latency(_options: LatencyBelowOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the answer took at most `max_ms` milliseconds, else 0."""
    return measure_limit(frame, "latency_ms", "max_ms")


def measure_limit(frame: pl.DataFrame, field: str, limit: str) -> pl.DataFrame:
    """Score 1 where the number in `field` is at most that in `limit`, else 0 with both as reason.

    A field that holds no finite number makes its row an error.
    """
    number = pl.col(field).str.strip_chars().cast(pl.Float64, strict=False)
    finite = pl.when(number.is_finite()).then(number)
    rows = frame.select(pl.col(field).alias("text"), pl.col(limit).alias("limit"), number=finite)
    within, failed = pl.col("number") <= pl.col("limit"), pl.when(pl.col("number").is_null())
    facts = pl.struct(pl.col("number").alias(field), pl.col("limit").alias(limit))
    return rows.select(
        score=within.cast(pl.Float64),
        reason=pl.when(~within).then(pl.format("{} is more than {}", "number", "limit")),
        details_json=facts.struct.json_encode(),
        error_code=failed.then(pl.lit("no_number")),
        error_message=failed.then(pl.format(f"{field} is no number: {{}}", "text")),
    )


EVALUATOR = ColumnEvaluator(
    name="LatencyBelow",
    summary="Whether the answer came within a time limit.",
    aliases=("latency_below", "latencyBelow"),
    needs=("latency_ms",),
    options=LatencyBelowOptions,
    row_options={"max_ms": pl.Float64()},
    measure=measure_latency,
)
