"""TokenSet: how alike two texts are as sets of words, in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.contract import ColumnEvaluator
from evaluators.paired import SimilarityOptions, measure_similarity

if TYPE_CHECKING:
    import polars as pl


def measure_token_set(options: SimilarityOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the token set ratio of rapidfuzz, as a share of 100.

    Words are what white space separates. Words of both sides count once, whatever their order, and words of
    one side alone count only as far as they make it differ: a text beside a part of its own words is 1.
    """
    from rapidfuzz.fuzz import token_set_ratio

    return measure_similarity(options, frame, token_set_ratio, top=100.0)


EVALUATOR = ColumnEvaluator(
    name="TokenSet",
    summary="Likeness of the answer and the expected answer as sets of words.",
    aliases=("token_set", "tokenSet"),
    needs=("response", "expected_response"),
    options=SimilarityOptions,
    threshold=0.5,
    measure=measure_token_set,
)
