"""Length: whether the answer is as long as it should be."""

from __future__ import annotations

from typing import Literal, Self

import polars as pl
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import ColumnEvaluator, Options
from evaluators.text.columns import WORD


class LengthOptions(Options):
    """Options of Length."""

    unit: Literal["chars", "words", "lines"] = Field(
        default="words",
        description="chars: code points; words: those of every script, and each character where a script has "
        "no spaces; lines: a line break at the end begins no line",
    )
    min: int | None = Field(default=None, ge=0, le=2**62, description="fewest that pass")
    max: int | None = Field(default=None, ge=0, le=2**62, description="most that pass")

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.min is None and self.max is None:
            raise PydanticCustomError("no_bounds", "min, max or both")
        if self.min is not None and self.max is not None and self.min > self.max:
            raise PydanticCustomError("bounds", "a min that is not above max")
        return self


def measure_length(options: LengthOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the length lies within the bounds, both included, else 0 with the length as reason."""
    counted = frame.select("min", "max", length=_count(options.unit).cast(pl.Int64))
    length, low, high = (pl.col(name) for name in ("length", "min", "max"))
    short, long = ((length < low).fill_null(value=False), (length > high).fill_null(value=False))
    unit = pl.lit(f" {options.unit}, ")
    reason = (
        pl.when(short)
        .then(pl.concat_str(length, unit, pl.lit("at least "), low))
        .when(long)
        .then(pl.concat_str(length, unit, pl.lit("at most "), high))
    )
    details = pl.struct(length=length, unit=pl.lit(options.unit)).struct.json_encode()
    return counted.select(score=(~(short | long)).cast(pl.Float64), reason=reason, details_json=details)


def _count(unit: Literal["chars", "words", "lines"]) -> pl.Expr:
    text = pl.col("response")
    match unit:
        case "chars":
            return text.str.len_chars()
        case "words":
            return text.str.count_matches(WORD)
        case "lines":
            return text.str.count_matches(r"\r\n|[^\r\n]+(?:\r\n|\r|\n)?|[\r\n]")


EVALUATOR = ColumnEvaluator(
    name="Length",
    summary="Whether the answer has so many characters, words or lines.",
    aliases=("length",),
    needs=("response",),
    options=LengthOptions,
    row_options={"min": pl.Int64(), "max": pl.Int64()},
    measure=measure_length,
)
