"""Metrics over n-grams of tokens: their options, and the steps that BLEU and GLEU share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from evaluators.f1_score import OverlapOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from evaluators.text.scores import Counts, Scores


class NgramOptions(OverlapOptions):
    """Options of a metric over n-grams."""

    case_sensitive: bool = Field(
        default=False, description="whether upper and lower case differ in unicode mode; in compat they do"
    )


class Formula(Protocol):
    """From shared n-grams (rows by order) and the tokens of answers and references to scores."""

    def __call__(self, shared: Counts, given: Counts, wanted: Counts) -> Scores:
        """Score every row."""
        ...


def measure_ngrams(
    options: NgramOptions, frame: pl.DataFrame, formula: Formula, facts: Mapping[str, str]
) -> pl.DataFrame:
    """Score shared n-grams up to the fourth order; in `unicode` mode texts that are equal score 1.

    Args:
        options: Mode and case.
        frame: Answers and references.
        formula: Makes the score.
        facts: What stands in the details of every row, beside mode and case.
    """
    from evaluators.text.counting import count_shared
    from evaluators.text.pairs import find_equal, split_sides, tell_scores
    from evaluators.text.scores import ORDERS

    compat = options.mode == "compat"
    exact = compat or options.case_sensitive
    response, expected = split_sides(frame, "sdk" if compat else "unicode", exact)
    given, wanted = response.counts, expected.counts
    score = formula(count_shared(response, expected, 1, ORDERS), given, wanted)
    empty = (given + wanted == 0) & (not compat)
    score[find_equal(frame, empty, options.case_sensitive)] = 1.0
    told = {"mode": options.mode, "case_sensitive": exact, **facts}
    return tell_scores(score, {"tokens": given, "expected_tokens": wanted}, told)
