"""Levenshtein: how few characters have to change to turn the answer into the expected one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.contract import ColumnEvaluator
from evaluators.paired import SimilarityOptions, measure_similarity

if TYPE_CHECKING:
    import polars as pl


def measure_edits(options: SimilarityOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 - d / n, where d is the Levenshtein distance in code points and n the longer length."""
    from rapidfuzz.distance import Levenshtein

    return measure_similarity(options, frame, Levenshtein.normalized_similarity)


EVALUATOR = ColumnEvaluator(
    name="Levenshtein",
    summary="Share of characters that need no edit to turn the answer into the expected answer.",
    aliases=("levenshtein",),
    needs=("response", "expected_response"),
    options=SimilarityOptions,
    threshold=0.5,
    measure=measure_edits,
)
