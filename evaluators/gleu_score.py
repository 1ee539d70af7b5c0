"""GleuScore: the share of 1- to 4-grams that answer and expected answer have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from evaluators.contract import ColumnEvaluator
from evaluators.f1_score import OverlapOptions

if TYPE_CHECKING:
    import polars as pl

_TOKENIZERS = {
    "compat": "nltk word_tokenize, NIST international where a text is not ASCII",
    "unicode": "UAX-29 words",
}


class GleuScoreOptions(OverlapOptions):
    """Options of GleuScore."""

    case_sensitive: bool = Field(
        default=False, description="whether upper and lower case differ in unicode mode; in compat they do"
    )


def measure_gleu(options: GleuScoreOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the smaller of precision and recall over all 1- to 4-grams.

    In `unicode` mode texts that are equal once normalised score 1.0.
    """
    from evaluators.text.counting import count_shared
    from evaluators.text.pairs import find_equal, split_sides, tell_scores
    from evaluators.text.scores import ORDERS, score_gleu

    compat = options.mode == "compat"
    response, expected = split_sides(frame, "sdk" if compat else "unicode", compat or options.case_sensitive)
    given, wanted = response.counts, expected.counts
    score = score_gleu(count_shared(response, expected, 1, ORDERS), given, wanted)
    empty = (given + wanted == 0) & (options.mode == "unicode")
    score[find_equal(frame, empty, options.case_sensitive)] = 1.0
    facts = {
        "mode": options.mode,
        "case_sensitive": compat or options.case_sensitive,
        "tokenizer": _TOKENIZERS[options.mode],
        "smoothing": "none",
        "equals": "nltk sentence_gleu",
    }
    return tell_scores(score, {"tokens": given, "expected_tokens": wanted}, facts)


EVALUATOR = ColumnEvaluator(
    name="GleuScore",
    summary="GLEU of the answer against the expected answer.",
    aliases=("gleu_score", "builtin.gleu_score"),
    needs=("response", "expected_response"),
    options=GleuScoreOptions,
    metric="gleu",
    threshold=0.5,
    measure=measure_gleu,
)
