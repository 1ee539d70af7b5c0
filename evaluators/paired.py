"""Paired figures: one number of rapidfuzz for the two texts of every row."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
from pydantic import Field

from evaluators.contract import Options
from evaluators.normal_form import NORMAL_FORMS, NormalForm, normalise

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from evaluators.text.tokens import Tokens

_SLICE = 50_000  # rows that are Python objects at one time


class SimilarityOptions(Options):
    """Options of a similarity of characters."""

    normalise: NormalForm = Field(default="none", description=NORMAL_FORMS)


def score_pairs(pairs: pl.DataFrame, scorer: Callable[..., float]) -> pl.Series:
    """Score the two columns of `pairs` row by row on all cores.

    Args:
        pairs: Two String columns without nulls.
        scorer: A scorer of rapidfuzz.

    Returns:
        Float64 of the same height, on the scorer's own scale.
    """
    left, right = (pairs.to_series(side) for side in range(2))
    scored = [
        _score_all(left.slice(first, _SLICE).to_list(), right.slice(first, _SLICE).to_list(), scorer)
        for first in range(0, pairs.height, _SLICE)
    ]
    return _join(scored)


def score_tokens(left: Tokens, right: Tokens, scorer: Callable[..., float]) -> pl.Series:
    """Score as `score_pairs` does, over the tokens of texts instead of their characters."""
    scored = [
        _score_all(_list_rows(left, first, first + _SLICE), _list_rows(right, first, first + _SLICE), scorer)
        for first in range(0, len(left), _SLICE)
    ]
    return _join(scored)


def _list_rows(tokens: Tokens, first: int, end: int) -> list[list[int]]:
    starts: list[int] = tokens.starts[first : end + 1].tolist()
    return [tokens.hashes[low:high].tolist() for low, high in pairwise(starts)]


def _score_all(
    left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]], scorer: Callable[..., float]
) -> pl.Series:
    from rapidfuzz.process import cpdist

    found = cpdist(left, right, scorer=scorer, dtype="float64", workers=pl.thread_pool_size())
    return pl.Series("score", found)


def _join(parts: list[pl.Series]) -> pl.Series:
    return pl.concat([pl.Series("score", [], pl.Float64), *parts])


def measure_ratio(texts: pl.DataFrame, scorer: Callable[..., float], top: float = 1.0) -> pl.DataFrame:
    """Score how alike `response` and `expected_response` are, as a share of `top`; equal texts are 1."""
    pairs = texts.select("response", "expected_response")
    likeness = (score_pairs(pairs, scorer) / top).clip(0.0, 1.0)
    equal = pl.col("response") == pl.col("expected_response")
    return pairs.select(score=pl.when(equal).then(1.0).otherwise(likeness))


def measure_similarity(
    options: SimilarityOptions, frame: pl.DataFrame, scorer: Callable[..., float], top: float = 1.0
) -> pl.DataFrame:
    """Score as `measure_ratio` does, in the normal form asked for."""
    texts = normalise(frame.select("response", "expected_response"), options.normalise)
    return measure_ratio(texts, scorer, top)
