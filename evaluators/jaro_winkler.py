"""JaroWinkler: how alike two short texts are, with weight on the beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.contract import ColumnEvaluator
from evaluators.paired import SimilarityOptions, measure_similarity

if TYPE_CHECKING:
    import polars as pl


def measure_winkler(options: SimilarityOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the Jaro-Winkler similarity in code points: prefix weight 0.1, up to four characters."""
    from rapidfuzz.distance import JaroWinkler

    return measure_similarity(options, frame, JaroWinkler.similarity)


EVALUATOR = ColumnEvaluator(
    name="JaroWinkler",
    summary="Likeness of the answer and the expected answer as short names, the beginning counting most.",
    aliases=("jaro_winkler", "jaroWinkler"),
    needs=("response", "expected_response"),
    options=SimilarityOptions,
    threshold=0.5,
    measure=measure_winkler,
)
