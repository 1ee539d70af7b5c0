"""ExactMatch: whether the answer is the expected text."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options
from evaluators.normal_form import NORMAL_FORMS, NormalForm, normalise
from evaluators.text import fold_case

_SIDES = ("response", "expected_response")
_GLANCE = 16  # characters at either end that tell most unequal texts apart


class ExactMatchOptions(Options):
    """Options of ExactMatch."""

    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")
    normalise: NormalForm = Field(default="none", description=NORMAL_FORMS)


def measure_equality(options: ExactMatchOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the texts are equal without the white space around them, else 0.

    White space inside counts, and so does the Unicode form of characters unless `normalise` says otherwise:
    composed and decomposed accents differ.
    """
    texts = normalise(frame.select(_SIDES), options.normalise).select(pl.all().str.strip_chars())
    equal = texts.select(equal=_compare(*_SIDES)).to_series()
    if not options.case_sensitive:
        equal = _find_folded(texts, equal)
    return pl.DataFrame({"score": equal.cast(pl.Float64)})


def _compare(left: str, right: str) -> pl.Expr:
    return pl.col(left) == pl.col(right)


def _find_folded(texts: pl.DataFrame, equal: pl.Series) -> pl.Series:
    """Add the rows that are equal once case is folded, folding few texts in full.

    Each character folds by itself, so of equal texts the folded beginnings are equal as far as both reach,
    and the ends likewise. Lengths say nothing: folding changes them.
    """
    rows = texts.with_row_index("row").filter(~equal)
    for glance in (_glance_first, _glance_last):
        rows = rows.filter(glance(rows.select(_SIDES)))
    folded = fold_case(rows.select(_SIDES)).select(equal=_compare(*_SIDES)).to_series()
    return equal.scatter(rows["row"].filter(folded), values=True)


def _glance_first(texts: pl.DataFrame) -> pl.Series:
    ends = fold_case(texts.select(pl.all().str.head(_GLANCE)))
    left, right = map(pl.col, _SIDES)
    return ends.select(left.str.starts_with(right) | right.str.starts_with(left)).to_series()


def _glance_last(texts: pl.DataFrame) -> pl.Series:
    ends = fold_case(texts.select(pl.all().str.tail(_GLANCE)))
    left, right = map(pl.col, _SIDES)
    return ends.select(left.str.ends_with(right) | right.str.ends_with(left)).to_series()


EVALUATOR = ColumnEvaluator(
    name="ExactMatch",
    summary="Whether the answer equals the expected answer, white space around both aside.",
    aliases=("exact_match", "exactMatch"),
    needs=_SIDES,
    options=ExactMatchOptions,
    measure=measure_equality,
)
