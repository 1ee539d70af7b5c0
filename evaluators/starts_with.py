"""StartsWith and EndsWith: whether the answer begins or ends with a text."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options
from evaluators.text import fold_case

_ROW_OPTIONS = {"search_text": pl.String()}


class AffixOptions(Options):
    """Options of StartsWith and EndsWith."""

    search_text: str | None = Field(
        default=None, description="what should stand there; without it the row's expected_response"
    )
    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")
    trim: bool = Field(
        default=True, description="whether white space at that end of the answer and the text is passed over"
    )
    negated: bool = Field(default=False, description="pass where something else stands there")

    @property
    def extra_needs(self) -> tuple[str, ...]:
        """The reference, when no text is given."""
        return ("expected_response",) if self.search_text is None else ()


def measure_beginning(options: AffixOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the answer begins with the text (or, negated, does not), else 0."""
    texts = _pick_texts(options, frame)
    if options.trim:
        texts = texts.select(pl.all().str.strip_chars_start())
    found = pl.col("response").str.starts_with(pl.col("affix"))
    return _fold(options, texts).select(score=(found != options.negated).cast(pl.Float64))


def measure_ending(options: AffixOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the answer ends with the text (or, negated, does not), else 0."""
    texts = _pick_texts(options, frame)
    if options.trim:
        texts = texts.select(pl.all().str.strip_chars_end())
    found = pl.col("response").str.ends_with(pl.col("affix"))
    return _fold(options, texts).select(score=(found != options.negated).cast(pl.Float64))


def _pick_texts(options: AffixOptions, frame: pl.DataFrame) -> pl.DataFrame:
    given = "expected_response" in options.extra_needs
    return frame.select("response", affix="expected_response" if given else "search_text")


def _fold(options: AffixOptions, texts: pl.DataFrame) -> pl.DataFrame:
    return texts if options.case_sensitive else fold_case(texts)


EVALUATOR = ColumnEvaluator(
    name="StartsWith",
    summary="Whether the answer begins with a given text, or the expected answer.",
    aliases=("starts_with", "startsWith"),
    needs=("response",),
    wants=("expected_response",),
    options=AffixOptions,
    row_options=_ROW_OPTIONS,
    measure=measure_beginning,
)
ENDS_WITH = ColumnEvaluator(
    name="EndsWith",
    summary="Whether the answer ends with a given text, or the expected answer.",
    aliases=("ends_with", "endsWith"),
    needs=("response",),
    wants=("expected_response",),
    options=AffixOptions,
    row_options=_ROW_OPTIONS,
    measure=measure_ending,
)
