"""BleuScore: n-grams of the answer that the expected answer has, with a penalty for short answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from evaluators.contract import ColumnEvaluator
from evaluators.f1_score import OverlapOptions

if TYPE_CHECKING:
    import polars as pl

_FACTS = {
    "compat": {
        "tokenizer": "nltk word_tokenize, NIST international where a text is not ASCII",
        "smoothing": "method4",
        "equals": "nltk sentence_bleu",
    },
    "unicode": {
        "tokenizer": "UAX-29 words",
        "smoothing": "exp, effective order",
        "equals": "sacrebleu sentence_bleu / 100",
    },
}


class BleuScoreOptions(OverlapOptions):
    """Options of BleuScore."""

    case_sensitive: bool = Field(
        default=False, description="whether upper and lower case differ in unicode mode; in compat they do"
    )


def measure_bleu(options: BleuScoreOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the geometric mean of the precisions of 1- to 4-grams, times the brevity penalty.

    In `unicode` mode texts that are equal once normalised score 1.0.
    """
    from evaluators.text.counting import count_shared
    from evaluators.text.pairs import find_equal, split_sides, tell_scores
    from evaluators.text.scores import ORDERS, score_bleu, score_bleu_sdk

    compat = options.mode == "compat"
    response, expected = split_sides(frame, "sdk" if compat else "unicode", compat or options.case_sensitive)
    given, wanted = response.counts, expected.counts
    shared = count_shared(response, expected, 1, ORDERS)
    score = (score_bleu_sdk if compat else score_bleu)(shared, given, wanted)
    empty = (given + wanted == 0) & (options.mode == "unicode")
    score[find_equal(frame, empty, options.case_sensitive)] = 1.0
    facts = {"mode": options.mode, "case_sensitive": compat or options.case_sensitive, **_FACTS[options.mode]}
    return tell_scores(score, {"tokens": given, "expected_tokens": wanted}, facts)


EVALUATOR = ColumnEvaluator(
    name="BleuScore",
    summary="BLEU-4 of the answer against the expected answer.",
    aliases=("bleu_score", "builtin.bleu_score"),
    needs=("response", "expected_response"),
    options=BleuScoreOptions,
    metric="bleu",
    threshold=0.5,
    measure=measure_bleu,
)
