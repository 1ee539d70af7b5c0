"""MeteorScore: words shared by form, stem or meaning, and the order they come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

_COUNTS: tuple[str, ...] = ("tokens", "expected_tokens", "matches", "chunks")
_FACTS = {
    "compat": {
        "tokenizer": "nltk word_tokenize, NIST international where a text is not ASCII",
        "synonyms": "WordNet 3.0, of stems",
        "equals": "nltk meteor_score",
    },
    "unicode": {
        "tokenizer": "UAX-29 words",
        "synonyms": "WordNet 3.0, of words",
        "equals": "nothing: no penalty where one run holds all words",
    },
}


class MeteorScoreOptions(Options):
    """Options of MeteorScore."""

    alpha: float = Field(default=0.9, ge=0, le=1, description="share of recall in the mean")
    beta: float = Field(default=3.0, ge=0, description="exponent of the fragmentation")
    gamma: float = Field(default=0.5, ge=0, le=1, description="most that fragmentation takes away")
    mode: Literal["unicode", "compat"] = Field(
        default="compat",
        description="compat: the numbers of builtin.meteor_score, for English; unicode: every script",
    )

    @property
    def keeps_blank(self) -> bool:
        """In `compat` a blank reference is text, which nothing matches."""
        return self.mode == "compat"


def measure_meteor(options: MeteorScoreOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score the mean of precision and recall of paired words, less a penalty for the runs they come in.

    In `unicode` mode texts that are equal once normalised score 1.0.
    """
    import numpy as np

    from evaluators.text.meteor import Weights, score_compat, score_words
    from evaluators.text.pairs import find_equal, tell_scores

    compat = options.mode == "compat"
    weights = Weights(options.alpha, options.beta, options.gamma)
    align, split = (score_compat, _list_compat) if compat else (score_words, _list_words)
    found = [(len(left), len(right), align(left, right, weights)) for left, right in split(frame)]
    counts = np.array([(given, wanted, each.matches, each.chunks) for given, wanted, each in found], np.int64)
    parts = dict(zip(_COUNTS, counts.reshape(-1, len(_COUNTS)).T, strict=True))
    score = np.array([each.score for _, _, each in found], np.float64)
    empty = (parts["tokens"] + parts["expected_tokens"] == 0) & (not compat)
    score[find_equal(frame, empty, case_sensitive=False)] = 1.0
    return tell_scores(score, parts, {"mode": options.mode, **_FACTS[options.mode]})


def _list_compat(frame: pl.DataFrame) -> Iterable[tuple[list[str], list[str]]]:
    from evaluators.text.sdk_words import list_sdk

    for response, expected in frame.select("response", "expected_response").iter_rows():
        yield [word.lower() for word in list_sdk(response)], [word.lower() for word in list_sdk(expected)]


def _list_words(frame: pl.DataFrame) -> Iterable[tuple[list[str], list[str]]]:
    from evaluators.text.columns import compose, fold_case, split_words

    return split_words(fold_case(compose(frame.select("response", "expected_response")))).iter_rows()


EVALUATOR = ColumnEvaluator(
    name="MeteorScore",
    summary="METEOR of the answer against the expected answer.",
    aliases=("meteor_score", "builtin.meteor_score"),
    needs=("response", "expected_response"),
    options=MeteorScoreOptions,
    metric="meteor",
    threshold=0.5,
    measure=measure_meteor,
)
