"""F1Score: how many tokens the answer and the expected answer share, as azure-ai-evaluation counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options

if TYPE_CHECKING:
    import polars as pl

Mode = Literal["compat", "unicode"]


class OverlapOptions(Options):
    """Options of the metrics that compare tokens; a subclass says which mode is the default."""

    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")
    mode: Mode = Field(
        default="compat",
        description="compat: the numbers of azure-ai-evaluation, for English; unicode: words of every script",
    )

    @property
    def keeps_blank(self) -> bool:
        """In `compat` a blank reference is text, which nothing matches."""
        return self.mode == "compat"


def measure_overlap(options: OverlapOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the multiset overlap of tokens: 2PR / (P + R).

    In `unicode` mode texts that are equal once normalised score 1.0 even when they hold no token; otherwise,
    and always in `compat` mode, a side without tokens scores 0.0.
    """
    from evaluators.text.counting import count_shared
    from evaluators.text.pairs import find_equal, split_sides, tell_scores
    from evaluators.text.scores import score_overlap

    kind = "f1" if options.mode == "compat" else "unicode"
    response, expected = split_sides(frame, kind, options.case_sensitive)
    given, wanted = response.counts, expected.counts
    empty = (given + wanted == 0) & (options.mode == "unicode")
    equal = find_equal(frame, empty, options.case_sensitive)
    overlap = score_overlap(count_shared(response, expected)[:, 0], given, wanted, equal)
    parts = {"precision": overlap.precision, "recall": overlap.recall}
    return tell_scores(overlap.f1, parts, {"mode": options.mode})


EVALUATOR = ColumnEvaluator(
    name="F1Score",
    summary="Token overlap (F1) as azure-ai-evaluation computes it.",
    aliases=("f1_score", "builtin.f1_score"),
    needs=("response", "expected_response"),
    options=OverlapOptions,
    metric="f1_score",
    threshold=0.5,
    measure=measure_overlap,
)
