"""Regex: whether a regular expression matches the answer."""

from __future__ import annotations

from functools import lru_cache
from typing import Self

import polars as pl
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import ColumnEvaluator, Options


class RegexOptions(Options):
    """Options of Regex."""

    pattern: str = Field(
        min_length=1,
        description="regular expression in the syntax of the Rust crate regex: Unicode classes, matching in "
        "linear time, neither look-around nor back references",
    )
    flags: str = Field(
        default="",
        pattern=r"^[imsx]*$",
        description="letters: i any case, m ^ and $ at every line, s dot takes line breaks, x free spacing",
    )
    full_match: bool = Field(default=False, description="whether the whole answer has to match")
    negated: bool = Field(default=False, description="pass where nothing matches")

    @property
    def borders(self) -> tuple[str, str]:
        """What stands before and after a pattern when it is matched."""
        flags = f"(?{self.flags})" if self.flags else ""
        if not self.full_match:
            return flags, ""
        last = "\n" if "x" in self.flags else ""  # ends a comment
        return rf"{flags}\A(?:", rf"{last})\z"

    @model_validator(mode="after")
    def _check_pattern(self) -> Self:
        start, end = self.borders
        flags = f"(?{self.flags})" if self.flags else ""
        fault = _find_fault(flags + self.pattern) or _find_fault(f"{start}{self.pattern}{end}")
        if fault:
            raise PydanticCustomError("pattern", "a regular expression; {fault}", {"fault": fault})
        return self


@lru_cache(maxsize=10_000)
def _find_fault(pattern: str) -> str:
    """Say what is wrong with a pattern, empty when nothing is."""
    try:
        pl.Series([""]).str.contains(pattern)
    except pl.exceptions.ComputeError as error:
        lines = str(error).splitlines()
        return next((line for line in lines if line.startswith("error: ")), lines[0])
    return ""


def measure_pattern(options: RegexOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the row's pattern matches somewhere in the answer (or, negated, nowhere), else 0."""
    start, end = map(pl.lit, options.borders)
    pattern = pl.concat_str(start, "pattern", end)
    found = pl.col("response").str.contains(pattern)
    return frame.select(score=(found != options.negated).cast(pl.Float64))


EVALUATOR = ColumnEvaluator(
    name="Regex",
    summary="Whether a regular expression matches the answer.",
    aliases=("regex",),
    needs=("response",),
    options=RegexOptions,
    row_options={"pattern": pl.String()},
    measure=measure_pattern,
)
