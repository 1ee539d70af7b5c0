"""Columns of text to tokens, once for all metrics that ask for the same."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from assay.contracts.arrow import view_text
from evaluators.text import plain
from evaluators.text.compiling import SMALL, run_blocks
from evaluators.text.tables import COMPOSE, load_words, make_rules
from evaluators.text.tokens import Tokens

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evaluators.text.tables import Kind

Way: TypeAlias = "Kind | Literal['sdk']"

_KEPT = 8  # both sides of four ways to split
_MOST_TOKENS = 1 << 24  # that are kept, 128 MB
_LOOK = 4  # rows compared before whole columns are
_SIGMA = "\u03a3"  # its lower case depends on its neighbours


@dataclass(frozen=True, slots=True)
class _Split:
    texts: pl.Series
    kind: Way
    case_sensitive: bool
    tokens: Tokens

    def answers(self, texts: pl.Series, kind: Way, case_sensitive: bool) -> bool:
        asked = (kind, case_sensitive, len(texts))
        if asked != (self.kind, self.case_sensitive, len(self.texts)):
            return False
        return self.texts.head(_LOOK).equals(texts.head(_LOOK)) and self.texts.equals(texts)


_recent: deque[_Split] = deque(maxlen=_KEPT)
_lock = Lock()


def split_tokens(texts: pl.Series, kind: Way, case_sensitive: bool = False) -> Tokens:
    """Split a column of texts into tokens.

    Metrics of one batch ask for the same columns one after the other, so the last few answers are kept;
    comparing a column is much cheaper than splitting it.

    Args:
        texts: String column; a null has no tokens.
        kind: unicode: words of every script after NFC and case folding. f1: as azure-ai-evaluation's F1.
            rouge: runs of ASCII letters and digits. sdk: as azure-ai-evaluation's BLEU, GLEU and METEOR,
            which keep case.
        case_sensitive: Whether upper and lower case differ.

    Returns:
        Tokens, comparable with those of any other column of the same height in this process.
    """
    texts = texts.alias("text")
    with _lock:
        recent = list(_recent)
    for split in recent:
        if split.answers(texts, kind, case_sensitive):
            return split.tokens
    if kind == "sdk":
        from evaluators.text.sdk_words import split_sdk

        tokens = split_sdk(texts.fill_null("").to_list())
    else:
        tokens = _split(texts, kind, case_sensitive)
    _remember(_Split(texts, kind, case_sensitive, tokens))
    return tokens


def _remember(split: _Split) -> None:
    if len(split.tokens.hashes) > _MOST_TOKENS // 2:
        return
    with _lock:
        _recent.append(split)
        while sum(len(each.tokens.hashes) for each in _recent) > _MOST_TOKENS:
            _recent.popleft()


def _split(texts: pl.Series, kind: Kind, case_sensitive: bool) -> Tokens:
    if len(texts) < SMALL:
        return plain.split_texts(texts.fill_null(""), kind, case_sensitive)
    from evaluators.text.kernels import split_rows

    data, offsets = _prepare(texts, kind, case_sensitive)
    rules = make_rules(kind, case_sensitive)
    counts = np.empty(len(texts), np.int64)

    def split_block(first: int, end: int) -> NDArray[np.uint64]:
        # A token of one byte has another byte between it and the next, and one place is for scribbling.
        found = np.empty((offsets[end] - offsets[first] + end - first) // 2 + 1, np.uint64)
        used = split_rows(data, offsets[first : end + 1], rules, found, counts[first:end])
        return found[:used]

    parts = run_blocks(split_block, len(texts))
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return Tokens(np.concatenate(parts), starts)


def _prepare(
    texts: pl.Series, kind: Kind, case_sensitive: bool
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return bytes and offsets of texts in which no character's meaning hangs on its neighbours."""
    offsets, data = view_text(texts)
    if kind == "unicode":
        rows = _find_loose(data, offsets)
        changed = texts.gather(rows).str.normalize("NFC")
    elif kind == "f1" and not case_sensitive:
        rows = texts.fill_null("").str.contains(_SIGMA, literal=True).arg_true().to_numpy()
        changed = pl.Series([text.lower() for text in texts.gather(rows)], dtype=pl.String)
    else:
        return data, offsets
    if len(rows):
        offsets, data = view_text(texts.scatter(rows, changed))
    return data, offsets


def _find_loose(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows that NFC may change."""
    from evaluators.text.kernels import find_rows

    found = np.empty(len(offsets) - 1, np.bool_)

    def find_block(first: int, end: int) -> None:
        find_rows(data, offsets[first : end + 1], load_words(), COMPOSE, found[first:end])

    run_blocks(find_block, len(found))
    return np.flatnonzero(found)
