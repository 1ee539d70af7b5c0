"""PartialMatch: how many tokens the answer and the expected answer share, as F1."""

from __future__ import annotations

from typing import Literal

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options
from evaluators.text import compose, count_overlap, fold_case, split_compat, split_words

_SIDES = ("response", "expected_response")


class PartialMatchOptions(Options):
    """Options of PartialMatch."""

    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")
    mode: Literal["unicode", "compat"] = Field(
        default="unicode",
        description="unicode: words of every script; compat: the numbers of builtin.f1_score, for English",
    )

    @property
    def keeps_blank(self) -> bool:
        """In `compat` a blank reference is text, which nothing matches."""
        return self.mode == "compat"


def measure_overlap(options: PartialMatchOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the multiset overlap of tokens: 2PR / (P + R).

    In `unicode` mode texts that are equal once normalised score 1.0 even when they hold no token; otherwise,
    and always in `compat` mode, a side without tokens scores 0.0.
    """
    texts = frame.select(_SIDES)
    if options.mode == "unicode":
        texts = compose(texts)
    if not options.case_sensitive:
        texts = (
            texts.with_columns(pl.all().str.to_lowercase()) if options.mode == "compat" else fold_case(texts)
        )
    tokens = split_compat(texts) if options.mode == "compat" else split_words(texts)
    response, expected = (pl.col(side).str.strip_chars() for side in _SIDES)
    same = texts.select((response == expected) & (options.mode == "unicode")).to_series()
    counts = tokens.select(
        pl.Series("shared", count_overlap(tokens, *_SIDES)),
        pl.Series("same", same),
        given=pl.col("response").list.len(),
        wanted=pl.col("expected_response").list.len(),
    )
    return _score_counts(counts, options.mode)


def _score_counts(counts: pl.DataFrame, mode: str) -> pl.DataFrame:
    shared, same = pl.col("shared"), pl.col("same")
    precision, recall = (
        pl.when(same).then(1.0).when(shared > 0).then(shared / pl.col(size)).otherwise(0.0)
        for size in ("given", "wanted")
    )
    score = pl.when(precision > 0).then(2 * precision * recall / (precision + recall)).otherwise(0.0)
    details = pl.struct(precision=precision, recall=recall, mode=pl.lit(mode)).struct.json_encode()
    return counts.select(score=score, details_json=details)


EVALUATOR = ColumnEvaluator(
    name="PartialMatch",
    summary="Token overlap (F1) of the answer and the expected answer.",
    aliases=("partial_match", "partialMatch"),
    needs=_SIDES,
    options=PartialMatchOptions,
    threshold=0.5,
    measure=measure_overlap,
)
