"""Evaluators of your own: `assay run data.jsonl --evaluator docs/examples/own.py:ends_politely`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options

if TYPE_CHECKING:
    from collections.abc import Mapping


def ends_politely(response: str, closing: str = "thank you") -> Mapping[str, object]:
    """Whether the last line of the answer holds a closing formula.

    A parameter named like a field gets the field, any other is an option:
    `--option ends_politely.closing=regards`.
    """
    lines = response.strip().splitlines()
    polite = bool(lines) and closing.casefold() in lines[-1].casefold()
    return {"score": polite, "reason": None if polite else f"no {closing!r} in the last line"}


class MaxWordsOptions(Options):
    """Options of MaxWords."""

    words: int = Field(default=50, ge=1, description="words an answer may have")


def measure_words(_options: MaxWordsOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where an answer keeps to its number of words, for a whole column at once."""
    words = pl.col("response").str.count_matches(r"\S+")
    return frame.select(score=(words <= pl.col("words")).cast(pl.Float64))


max_words = ColumnEvaluator(
    name="MaxWords",
    summary="Whether the answer keeps to a number of words.",
    needs=("response",),
    options=MaxWordsOptions,
    row_options={"words": pl.Int64()},  # items may differ in it and are still measured together
    measure=measure_words,
)
