"""The formulas of the token metrics over whole columns of counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]
    Scores = NDArray[np.float64]

ORDERS = 4  # longest n-gram of BLEU and GLEU
_K = 5  # of smoothing method 4


class Overlap(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: Scores
    recall: Scores
    f1: Scores


def score_overlap(shared: Counts, given: Counts, wanted: Counts, equal: NDArray[np.bool_]) -> Overlap:
    """Score what is shared of what was given and what was wanted: 2PR / (P + R); nothing shared is 0.

    Args:
        shared: Common tokens or n-grams.
        given: Those of the answer.
        wanted: Those of the reference.
        equal: Rows that score 1 although they hold none.
    """
    precision, recall = (np.where(equal, 1.0, _divide(shared, whole)) for whole in (given, wanted))
    return Overlap(precision, recall, _divide(2 * precision * recall, precision + recall))


def count_grams(tokens: Counts, low: int, high: int) -> Counts:
    """Count the n-grams of texts of so many tokens, rows by low <= n <= high."""
    return np.maximum(tokens[:, None] - np.arange(low, high + 1) + 1, 0)


def score_gleu(shared: Counts, given: Counts, wanted: Counts) -> Scores:
    """Score all n-grams at once: the smaller of precision and recall (Wu et al. 2016)."""
    whole = np.maximum(*(count_grams(side, 1, ORDERS).sum(1) for side in (given, wanted)))
    return _divide(shared.sum(1), whole)


def score_bleu_sdk(shared: Counts, given: Counts, wanted: Counts) -> Scores:
    """Score BLEU-4 as azure-ai-evaluation does: smoothing method 4 of Chen and Cherry 2014.

    The n-th zero precision of a text of h > 1 tokens becomes ln(h) / (5 * 2^n) of its n-grams; a precision
    that stays 0 is left out of the geometric mean.
    """
    zero = shared == 0
    length = np.log(np.maximum(given, 1))[:, None]
    smoothed = length / (np.exp2(np.cumsum(zero, 1)) * _K)
    precisions = np.where(zero, smoothed, shared) / np.maximum(count_grams(given, 1, ORDERS), 1)
    logs = np.log(precisions, out=np.zeros_like(precisions), where=precisions > 0)
    score = _find_brevity(given, wanted) * np.exp(logs.sum(1) / ORDERS)
    return np.where(zero[:, 0], 0.0, score)


def score_bleu(shared: Counts, given: Counts, wanted: Counts) -> Scores:
    """Score BLEU-4 of sentences as sacrebleu does, but within 0..1: exponential smoothing, effective order.

    The n-th zero precision becomes 1 / 2^n of an n-gram; orders that the answer is too short for are left
    out.
    """
    zero, whole = shared == 0, count_grams(given, 1, ORDERS)
    there = whole > 0
    smoothed = np.exp2(-np.cumsum(zero, 1))
    precisions = np.divide(np.where(zero, smoothed, shared), whole, out=np.ones(whole.shape), where=there)
    logs = np.log(precisions).sum(1) / np.maximum(there.sum(1), 1)
    return np.where(zero.all(1), 0.0, _find_brevity(given, wanted) * np.exp(logs))


def _find_brevity(given: Counts, wanted: Counts) -> Scores:
    missing = np.maximum(wanted / np.maximum(given, 1) - 1, 0)
    return np.exp(-missing)


def _divide(part: Counts | Scores, whole: Counts | Scores) -> Scores:
    """Divide; by nothing gives 0."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)
