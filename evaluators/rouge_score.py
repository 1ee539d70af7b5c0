"""RougeScore: n-grams or the longest common subsequence that answer and expected answer share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from evaluators.contract import ColumnEvaluator
from evaluators.f1_score import OverlapOptions

if TYPE_CHECKING:
    import polars as pl

_HALF = 0.5


class RougeScoreOptions(OverlapOptions):
    """Options of RougeScore; `threshold` is the one of F1."""

    rouge_type: Literal["rouge1", "rouge2", "rouge3", "rouge4", "rouge5", "rougeL"] = Field(
        default="rouge1", description="length of the n-grams, or L for the longest common subsequence"
    )
    precision_threshold: float = Field(
        default=_HALF, ge=0, le=1, description="precision that passes, told in the details"
    )
    recall_threshold: float = Field(
        default=_HALF, ge=0, le=1, description="recall that passes, told in the details"
    )


def measure_rouge(options: RougeScoreOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score shared n-grams or the longest common subsequence: precision, recall and F1, the score.

    `compat` knows only runs of ASCII letters and digits, as the rouge_score package (Lin 2004). In `unicode`
    mode equal texts that are too short for an n-gram score 1.0.
    """
    from evaluators.text.counting import count_common, count_shared
    from evaluators.text.pairs import find_equal, split_sides, tell_scores
    from evaluators.text.scores import count_grams, score_overlap

    kind = "rouge" if options.mode == "compat" else "unicode"
    response, expected = split_sides(frame, kind, options.case_sensitive)
    if options.rouge_type == "rougeL":
        size, shared = 1, count_common(response, expected)
    else:
        size = int(options.rouge_type[-1])
        shared = count_shared(response, expected, size, size)[:, 0]
    given, wanted = (count_grams(side.counts, size, size)[:, 0] for side in (response, expected))
    empty = (given + wanted == 0) & (options.mode == "unicode")
    equal = find_equal(frame, empty, options.case_sensitive)
    precision, recall, f1 = score_overlap(shared, given, wanted, equal)
    parts = {
        "precision": precision,
        "recall": recall,
        "f1_score": f1,
        "precision_passed": precision >= options.precision_threshold,
        "recall_passed": recall >= options.recall_threshold,
    }
    return tell_scores(f1, parts, {"rouge_type": options.rouge_type, "mode": options.mode})


EVALUATOR = ColumnEvaluator(
    name="RougeScore",
    summary="Shared n-grams (ROUGE-1 to ROUGE-5) or longest common subsequence (ROUGE-L), as F1.",
    aliases=("rouge_score", "builtin.rouge_score"),
    needs=("response", "expected_response"),
    options=RougeScoreOptions,
    metric="rouge",
    threshold=_HALF,
    threshold_names=("threshold", "f1_score_threshold"),
    measure=measure_rouge,
)
