"""Tokens and what they have in common, in Python: for a few rows, and the measure of the compiled loops."""

from __future__ import annotations

import re
import string
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evaluators.text.columns import compose, fold_case, split_words
from evaluators.text.tokens import hash_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from evaluators.text.tables import Kind
    from evaluators.text.tokens import Tokens

_ARTICLE = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_RUN = re.compile(r"[A-Za-z0-9]+")


def split_texts(texts: pl.Series, kind: Kind, case_sensitive: bool) -> Tokens:
    """Split texts as `kind` says; tokens are numbered by Python's hash."""
    return hash_tokens(list_tokens(texts, kind, case_sensitive))


def list_tokens(texts: pl.Series, kind: Kind, case_sensitive: bool) -> list[list[str]]:
    """Split texts into their tokens as texts.

    unicode: words of every script (`columns.WORD`) after NFC and case folding. f1: as the F1 metric of
    azure-ai-evaluation. rouge: runs of ASCII letters and digits, as the rouge_score package.
    """
    if kind == "unicode":
        frame = compose(pl.DataFrame({"text": texts.alias("text")}))
        words: list[list[str]] = split_words(frame if case_sensitive else fold_case(frame))["text"].to_list()
        return words
    rows: list[str] = texts.to_list()
    if not case_sensitive:
        rows = [row.lower() for row in rows]
    return [_split_f1(row) if kind == "f1" else _RUN.findall(row) for row in rows]


def _split_f1(text: str) -> list[str]:
    return _ARTICLE.sub(" ", text.translate(_PUNCTUATION)).split()


def share_rows(left: Tokens, right: Tokens, low: int, high: int) -> NDArray[np.int64]:
    """Count the n-grams two texts share, each as often as both have it, for low <= n <= high."""
    pairs = zip(_list_rows(left), _list_rows(right), strict=True)
    orders = range(low, high + 1)
    shared = [[(_count_grams(a, n) & _count_grams(b, n)).total() for n in orders] for a, b in pairs]
    return np.array(shared, np.int64).reshape(len(left), len(orders))


def align_rows(left: Tokens, right: Tokens) -> NDArray[np.int64]:
    """Return the length of the longest common subsequence of each row."""
    pairs = zip(_list_rows(left), _list_rows(right), strict=True)
    return np.array([_align(a, b) for a, b in pairs], np.int64)


def _list_rows(tokens: Tokens) -> list[list[int]]:
    hashes: list[int] = tokens.hashes.tolist()
    starts: list[int] = tokens.starts.tolist()
    return [hashes[first:end] for first, end in pairwise(starts)]


def _count_grams(tokens: Sequence[int], n: int) -> Counter[tuple[int, ...]]:
    return Counter(zip(*(tokens[shift:] for shift in range(n)), strict=False))


def _align(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """Keep, as bits of one number, the places of `ours` at which a longer subsequence may begin."""
    places: dict[int, int] = {}
    for at, token in enumerate(ours):
        places[token] = places.get(token, 0) | 1 << at
    every = (1 << len(ours)) - 1
    open_places = every
    for token in theirs:
        matched = open_places & places.get(token, 0)
        open_places = ((open_places + matched) | (open_places - matched)) & every
    return len(ours) - open_places.bit_count()
