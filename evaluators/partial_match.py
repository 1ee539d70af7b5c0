"""PartialMatch: how many tokens the answer and the expected answer share, as F1."""

from __future__ import annotations

from pydantic import Field

from evaluators.contract import ColumnEvaluator
from evaluators.f1_score import Mode, OverlapOptions, measure_overlap


class PartialMatchOptions(OverlapOptions):
    """Options of PartialMatch."""

    mode: Mode = Field(
        default="unicode",
        description="unicode: words of every script; compat: the numbers of builtin.f1_score, for English",
    )


EVALUATOR = ColumnEvaluator(
    name="PartialMatch",
    summary="Token overlap (F1) of the answer and the expected answer.",
    aliases=("partial_match", "partialMatch"),
    needs=("response", "expected_response"),
    options=PartialMatchOptions,
    threshold=0.5,
    measure=measure_overlap,
)
