"""GleuScore: the share of 1- to 4-grams that answer and expected answer have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.contract import ColumnEvaluator
from evaluators.ngrams import NgramOptions, measure_ngrams

if TYPE_CHECKING:
    import polars as pl

_TOKENIZERS = {
    "compat": "nltk word_tokenize, NIST international where a text is not ASCII",
    "unicode": "UAX-29 words",
}


def measure_gleu(options: NgramOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the smaller of precision and recall over all 1- to 4-grams."""
    from evaluators.text.scores import score_gleu

    facts = {"tokenizer": _TOKENIZERS[options.mode], "smoothing": "none", "equals": "nltk sentence_gleu"}
    return measure_ngrams(options, frame, score_gleu, facts)


EVALUATOR = ColumnEvaluator(
    name="GleuScore",
    summary="GLEU of the answer against the expected answer.",
    aliases=("gleu_score", "builtin.gleu_score"),
    needs=("response", "expected_response"),
    options=NgramOptions,
    metric="gleu",
    threshold=0.5,
    measure=measure_gleu,
)
