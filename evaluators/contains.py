"""Contains: whether the answer holds a text, literally."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options
from evaluators.text import fold_case


class ContainsOptions(Options):
    """Options of Contains."""

    search_text: str | None = Field(
        default=None, description="what to look for in every row; without it the row's expected_response"
    )
    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")
    negated: bool = Field(default=False, description="pass where the text is absent")

    @property
    def extra_needs(self) -> tuple[str, ...]:
        """The reference, when no text to look for is given."""
        return ("expected_response",) if self.search_text is None else ()


def measure_containment(options: ContainsOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the text is found (or, negated, is not), else 0. An empty text is found everywhere."""
    needle = pl.col("expected_response") if options.search_text is None else pl.lit(options.search_text)
    texts = frame.select("response", needle=needle)
    if not options.case_sensitive:
        texts = fold_case(texts)
    found = pl.col("response").str.contains(pl.col("needle"), literal=True)
    return texts.select(score=(found != options.negated).cast(pl.Float64))


EVALUATOR = ColumnEvaluator(
    name="Contains",
    summary="Whether the answer contains a given text, or the expected answer.",
    aliases=("contains", "uipath-contains"),
    needs=("response",),
    wants=("expected_response",),
    options=ContainsOptions,
    measure=measure_containment,
)
