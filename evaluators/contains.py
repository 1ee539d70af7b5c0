"""Contains and NotContains: whether the answer holds one text or several, literally."""

from __future__ import annotations

from typing import Literal, Self

import polars as pl
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import ColumnEvaluator, Options
from evaluators.needles import find_needles, list_needles
from evaluators.text import fold_case

_ROW_OPTIONS = {"search_text": pl.String(), "search_texts": pl.List(pl.String())}


class NotContainsOptions(Options):
    """Options of NotContains."""

    search_text: str | None = Field(
        default=None, description="what to look for; without it and search_texts the row's expected_response"
    )
    search_texts: list[str] | None = Field(
        default=None, min_length=1, description="several texts to look for, see match"
    )
    match: Literal["any", "all"] | None = Field(
        default=None,
        description="how many of search_texts have to be found to count as found; by default all, and any "
        "one where the texts should be absent",
    )
    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")

    @property
    def extra_needs(self) -> tuple[str, ...]:
        """The reference, when no text to look for is given."""
        given = self.search_text is not None or self.search_texts is not None
        return () if given else ("expected_response",)

    @model_validator(mode="after")
    def _check_texts(self) -> Self:
        if self.search_text is not None and self.search_texts is not None:
            raise PydanticCustomError("two_searches", "search_text or search_texts, not both")
        return self


class ContainsOptions(NotContainsOptions):
    """Options of Contains."""

    negated: bool = Field(default=False, description="pass where the texts are absent")


def measure_containment(options: ContainsOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the texts are found (or, negated, are not), else 0. An empty text is found everywhere."""
    return _measure(options, frame, negated=options.negated)


def measure_absence(options: NotContainsOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 0 where the texts are found, else 1. An empty text is found everywhere."""
    return _measure(options, frame, negated=True)


def _measure(options: NotContainsOptions, frame: pl.DataFrame, *, negated: bool) -> pl.DataFrame:
    """Measure rows with one text and rows with a list apart, and put them back in order."""
    needle = pl.coalesce("search_text", "expected_response")
    rows = frame.with_columns(search_text=needle).with_row_index("row")
    several = pl.col("search_texts").is_not_null()
    match = options.match or ("any" if negated else "all")
    parts = [
        _measure_one(rows.filter(~several), case_sensitive=options.case_sensitive),
        _measure_list(rows.filter(several), match=match, case_sensitive=options.case_sensitive),
    ]
    found = pl.concat(parts, how="diagonal").sort("row")
    return found.select("details_json", score=(pl.col("found") != negated).cast(pl.Float64))


def _measure_one(rows: pl.DataFrame, *, case_sensitive: bool) -> pl.DataFrame:
    texts = rows.select("response", "search_text")
    if not case_sensitive:
        texts = fold_case(texts)
    found = texts.select(found=pl.col("response").str.contains(pl.col("search_text"), literal=True))
    return rows.select("row").hstack(found)


def _measure_list(rows: pl.DataFrame, *, match: str, case_sensitive: bool) -> pl.DataFrame:
    """Say for each row which of its texts are there."""
    needles = rows["search_texts"]
    hits = find_needles(rows["response"], needles, case_sensitive=case_sensitive)
    found, missing = (list_needles(needles, hits, wanted=wanted) for wanted in (True, False))
    details = pl.struct(found=found, missing=missing).struct.json_encode()
    together = hits.list.all() if match == "all" else hits.list.any()
    return rows.select("row", found=together, details_json=details)


EVALUATOR = ColumnEvaluator(
    name="Contains",
    summary="Whether the answer contains given texts, or the expected answer.",
    aliases=("contains",),
    needs=("response",),
    wants=("expected_response",),
    options=ContainsOptions,
    row_options=_ROW_OPTIONS,
    measure=measure_containment,
)
NOT_CONTAINS = ColumnEvaluator(
    name="NotContains",
    summary="Whether the answer is free of given texts, or of the expected answer.",
    aliases=("not_contains", "notContains"),
    needs=("response",),
    wants=("expected_response",),
    options=NotContainsOptions,
    row_options=_ROW_OPTIONS,
    measure=measure_absence,
)
