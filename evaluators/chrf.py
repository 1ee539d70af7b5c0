"""ChrF: n-grams of characters that the answer and the expected answer share."""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Literal

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options
from evaluators.normal_form import NORMAL_FORMS, NormalForm, normalise
from evaluators.text import fold_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from evaluators.text.tokens import Tokens

_ORDER = 6  # longest n-gram of characters
_WEIGHT = 4  # of recall, the square of beta = 2
_SPREAD = 0x9E3779B97F4A7C15  # an odd number, so that no two characters have one hash
_SLICE = 10_000  # rows whose characters are numbers at one time
_PUNCTUATION = frozenset(string.punctuation)


class ChrFOptions(Options):
    """Options of ChrF."""

    word_order: Literal[0, 1, 2] = Field(
        default=0, description="longest n-grams of words that count too; 2 is known as chrF++"
    )
    case_sensitive: bool = Field(default=True, description="whether upper and lower case differ")
    normalise: NormalForm = Field(default="none", description=NORMAL_FORMS)


def measure_chrf(options: ChrFOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score chrF2 of each row (Popovic 2015), between 0 and 1, as sacrebleu's sentence_score / 100.

    Precision and recall are means over the n-grams of one to six characters, white space dropped, and of
    words, as far as both texts have them. Equal texts score 1 whatever is in them. A corpus figure of
    sacrebleu pools the counts and differs from the mean of these.
    """
    texts = normalise(frame.select("response", "expected_response"), options.normalise)
    if not options.case_sensitive:
        texts = fold_case(texts)
    parts = [_score(part, options.word_order) for part in texts.iter_slices(_SLICE)]
    likeness = pl.Series([score for part in parts for score in part], dtype=pl.Float64)
    equal = pl.col("response") == pl.col("expected_response")
    return texts.select(score=pl.when(equal).then(1.0).otherwise(likeness))


def _score(texts: pl.DataFrame, word_order: int) -> list[float]:
    import numpy as np

    from evaluators.text.tokens import hash_tokens

    left, right = (column.to_list() for column in texts)
    counts = _count(_split_characters(left), _split_characters(right), _ORDER)
    if word_order:
        given, wanted = (hash_tokens(map(_split_words, side)) for side in (left, right))
        counts = np.concatenate((counts, _count(given, wanted, word_order)), axis=2)
    shared, *sides = counts
    both = (sides[0] > 0) & (sides[1] > 0)
    orders = np.maximum(both.sum(axis=1), 1)
    precision, recall = (
        np.where(both, shared / np.maximum(whole, 1), 0.0).sum(axis=1) / orders for whole in sides
    )
    weighted = _WEIGHT * precision + recall
    scores = (1 + _WEIGHT) * precision * recall / np.where(weighted > 0, weighted, 1.0)
    found: list[float] = np.minimum(scores, 1.0).tolist()
    return found


def _count(left: Tokens, right: Tokens, order: int) -> NDArray[np.int64]:
    """Count n-grams that are shared, given and wanted: three by rows by orders."""
    import numpy as np

    from evaluators.text.counting import count_shared
    from evaluators.text.scores import count_grams

    whole = (count_grams(side.counts, 1, order) for side in (left, right))
    return np.stack((count_shared(left, right, 1, order), *whole))


def _split_characters(texts: Sequence[str]) -> Tokens:
    import numpy as np

    from evaluators.text.tokens import Tokens

    dense = ["".join(text.split()) for text in texts]
    codes = np.frombuffer("".join(dense).encode("utf-32-le"), np.dtype("<u4"))
    ends = np.cumsum([len(text) for text in dense], dtype=np.int64)
    return Tokens(codes.astype(np.uint64) * np.uint64(_SPREAD), np.concatenate(([0], ends)))


def _split_words(text: str) -> list[str]:
    """Split at white space, and one ASCII punctuation mark off the end of a word, or else its beginning."""
    words: list[str] = []
    for word in text.split():
        if len(word) > 1 and word[-1] in _PUNCTUATION:
            words += [word[:-1], word[-1]]
        elif len(word) > 1 and word[0] in _PUNCTUATION:
            words += [word[0], word[1:]]
        else:
            words.append(word)
    return words


EVALUATOR = ColumnEvaluator(
    name="ChrF",
    summary="N-grams of characters shared by the answer and the expected answer, as F score.",
    aliases=("chrf", "chrF"),
    needs=("response", "expected_response"),
    options=ChrFOptions,
    threshold=0.5,
    measure=measure_chrf,
)
