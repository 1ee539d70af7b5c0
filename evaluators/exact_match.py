"""ExactMatch: whether the answer is the expected text."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options
from evaluators.text import fold_case

_SIDES = ("response", "expected_response")


class ExactMatchOptions(Options):
    """Options of ExactMatch."""

    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")


def measure_equality(options: ExactMatchOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the texts are equal without the white space around them, else 0.

    White space inside and the Unicode form of characters count: composed and decomposed accents differ.
    """
    texts = frame.select(pl.col(_SIDES).str.strip_chars())
    if not options.case_sensitive:
        texts = fold_case(texts)
    return texts.select(score=(pl.col("response") == pl.col("expected_response")).cast(pl.Float64))


EVALUATOR = ColumnEvaluator(
    name="ExactMatch",
    summary="Whether the answer equals the expected answer, white space around both aside.",
    aliases=("exact_match", "exactMatch"),
    needs=_SIDES,
    options=ExactMatchOptions,
    measure=measure_equality,
)
