"""Marks: which rows can be evaluated, and which scores can be kept."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from evaluators.catalog import Evaluation

_BLANK_TEXT = r'^"(?:\s|\\[nrt])*"$'  # in JSON
_SLACK = 1e-9  # what sums of floats may be off a scale by


def refuse_scores(evaluation: Evaluation, measured: pl.DataFrame) -> pl.DataFrame:
    """Make errors of scores off the scale, and drop the scores of errors."""
    scale, score = evaluation.evaluator.scale, measured["score"]
    off = (score < scale.low - _SLACK) | (score > (math.inf if scale.high is None else scale.high) + _SLACK)
    off |= score.is_infinite()
    off &= score.is_not_nan() & measured["error_code"].is_null()
    if off.any():
        told = {
            "error_code": pl.lit("off_scale"),
            "error_message": pl.format("score {} is off the scale {}", "score", pl.lit(str(scale))),
        }
        measured = measured.with_columns(
            pl.when(off).then(value).otherwise(name).alias(name) for name, value in told.items()
        )
    failed = measured["error_code"].is_not_null()
    return measured.with_columns(score=pl.when(~failed).then("score")) if failed.any() else measured


def mark_rows(evaluation: Evaluation, rows: pl.DataFrame) -> pl.DataFrame:
    """Add absent fields, and say for each row whether it is an error, skipped or ok."""
    names = dict.fromkeys((*evaluation.fields, "error_code", "error_message"))
    absent = pl.lit(None)
    columns = [
        (pl.col(name) if name in rows.columns else absent).cast(pl.String).alias(name) for name in names
    ]
    missing = [pl.when(_is_missing(name, evaluation)).then(pl.lit(f"no {name}")) for name in evaluation.needs]
    error = pl.col("error_code").is_not_null()
    return (
        rows.with_columns(columns)
        .select("row", "use", *names)
        .with_columns(reason=pl.when(~error).then(pl.coalesce(missing or [pl.lit(None, pl.String)])))
        .with_columns(
            status=pl.when(error)
            .then(pl.lit("error"))
            .when(pl.col("reason").is_not_null())
            .then(pl.lit("skipped"))
            .otherwise(pl.lit("ok"))
        )
    )


def _is_missing(name: str, evaluation: Evaluation) -> pl.Expr:
    field = pl.col(name)
    if name != "expected_response" or evaluation.options.keeps_blank:
        return field.is_null()
    if name in evaluation.evaluator.json_fields:
        return field.is_null() | field.str.contains(_BLANK_TEXT)
    return field.is_null() | (field.str.strip_chars() == "")
