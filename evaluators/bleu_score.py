"""BleuScore: n-grams of the answer that the expected answer has, with a penalty for short answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.contract import ColumnEvaluator
from evaluators.ngrams import NgramOptions, measure_ngrams

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


def measure_bleu(options: NgramOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the geometric mean of the precisions of 1- to 4-grams, times the brevity penalty."""
    from evaluators.text.scores import score_bleu, score_bleu_sdk

    formula = score_bleu_sdk if options.mode == "compat" else score_bleu
    return measure_ngrams(options, frame, formula, _FACTS[options.mode])


EVALUATOR = ColumnEvaluator(
    name="BleuScore",
    summary="BLEU-4 of the answer against the expected answer.",
    aliases=("bleu_score", "builtin.bleu_score"),
    needs=("response", "expected_response"),
    options=NgramOptions,
    metric="bleu",
    threshold=0.5,
    measure=measure_bleu,
)
