"""Words as azure-ai-evaluation 1.18 finds them for BLEU, GLEU and METEOR.

An ASCII text is parted into sentences and words by English rules, any other by the international rules of
NIST. Both work on pieces between spaces, apart from what begins and ends a sentence, so the tokens of a
piece are found once and remembered.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from evaluators.text.nist import split_international
from evaluators.text.punkt import ends_alone, split_sentences
from evaluators.text.tokens import Tokens
from evaluators.text.treebank import CLOSERS, CONTRACTIONS, SPACES, split_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

V = TypeVar("V")

MAX_PIECES: Final = 100_000
MAX_LENGTH: Final = 64
"""Longer pieces are not remembered: they hardly come twice."""


_TAIL: Final = CLOSERS + SPACES
_CLOSERS: Final = frozenset(CLOSERS)
_QUOTES: Final = frozenset("\"'")
_MARKS: Final = frozenset(".?!")
_SEPARATOR: Final = re.compile(r"[\x1c-\x1f]")


def list_sdk(text: str) -> list[str]:
    """Return the tokens of one text, case kept."""
    return _words.split(text).split()


def split_sdk(texts: Sequence[str]) -> Tokens:
    """Return the tokens of many texts, numbered by Python's hash: alike in one process only.

    Args:
        texts: No nulls.
    """
    import numpy as np

    rows = [_numbers.split(text) for text in texts]
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) // 8 for row in rows], out=starts[1:])
    return Tokens(np.frombuffer(b"".join(rows), np.uint64), starts)


class _Pieces(dict[str, V]):
    """The tokens of pieces of text as one value, found when first asked for."""

    def __init__(self, find: Callable[[str], V]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, piece: str) -> V:
        value = self._find(piece)
        if len(piece) <= MAX_LENGTH:
            if len(self) >= MAX_PIECES:
                self.clear()
            self[piece] = value
        return value


class _Splitter(Generic[V]):
    """Splits texts, and makes of the tokens a value that can be joined.

    Args:
        encode: Makes the value of some tokens.
        join: Makes one value of many.
        unsure: A value that no tokens have; it stands for those of a piece whose neighbours matter.
    """

    def __init__(self, encode: Callable[[list[str]], V], join: Callable[[Iterable[V]], V], unsure: V) -> None:
        def remember(split: Callable[[str], list[str] | None]) -> _Pieces[V]:
            def find(piece: str) -> V:
                tokens = split(piece)
                return unsure if tokens is None else encode(tokens)

            return _Pieces(find)

        self._unsure, self._join = unsure, join
        self._foreign, self._easy, self._ending = map(
            remember, (split_international, _split_easy, _split_ending)
        )
        self._inner, self._last, self._whole = map(remember, (_split_inner, _split_last, split_sentence))
        self._first = remember(lambda piece: split_sentence(f"{piece} x")[:-1])

    def split(self, text: str) -> V:
        """Return the value of the tokens of a text."""
        pieces = text.split()
        if not text.isascii():
            return self._join(map(self._foreign.__getitem__, pieces))
        if pieces and (text.isprintable() or not _SEPARATOR.search(text)):
            ending = self._ending[pieces.pop()]
            found = list(map(self._easy.__getitem__, pieces))
            found.append(ending)
            if self._unsure not in found:
                return self._join(found)
        return self._join(map(self._split_sentence, split_sentences(text)))

    def _split_sentence(self, sentence: str) -> V:
        """Split a sentence into its first piece, inner pieces and the last one with what closes it."""
        pieces = sentence.split(" ")
        last = len(pieces) - 1
        while last and not pieces[last].strip(_TAIL):
            last -= 1
        quoted = sentence[:1] in _QUOTES
        if not last:
            return (self._whole if quoted else self._last)[sentence]
        head = (self._first if quoted else self._inner)[pieces[0]]
        found = map(self._inner.__getitem__, pieces[1:last])
        return self._join((head, *found, self._last[" ".join(pieces[last:])]))


def _split_inner(piece: str) -> list[str]:
    """Split a piece with a space and others on both sides."""
    if piece.isalnum() and piece.lower() not in CONTRACTIONS:
        return [piece]
    return split_sentence(f" {piece} x")[:-1]


def _split_last(piece: str) -> list[str]:
    """Split what a sentence ends with."""
    if piece[:-1].isalnum() and piece[-1] in _MARKS and piece[:-1].lower() not in CONTRACTIONS:
        return [piece[:-1], piece[-1]]
    return split_sentence(f" {piece}")


def _split_easy(piece: str) -> list[str] | None:
    """Split a piece before others, which may end a sentence; None where its neighbours matter."""
    if piece[0] in _CLOSERS or piece[-1] == "'" or not piece.strip(_TAIL):
        return None
    if _MARKS.isdisjoint(piece):
        return _split_inner(piece)
    if piece[-1] in _MARKS:
        return _split_last(piece) if ends_alone(piece) else None
    match split_sentences(f"{piece} x"):
        case [one, "x"] if one == piece:
            return _split_last(piece)
        case [_]:
            return _split_inner(piece)
        case _:
            return None


def _split_ending(piece: str) -> list[str] | None:
    """Split the last piece of a text; None where its neighbours matter."""
    alone = piece[0] not in _CLOSERS and piece.strip(_TAIL) and split_sentences(piece) == [piece]
    return _split_last(piece) if alone else None


def _number(tokens: list[str]) -> bytes:
    return b"".join(hash(token).to_bytes(8, "little", signed=True) for token in tokens)


_numbers: Final = _Splitter(_number, b"".join, b"?")
_words: Final = _Splitter(lambda tokens: "".join(f"{token} " for token in tokens), "".join, "?")
