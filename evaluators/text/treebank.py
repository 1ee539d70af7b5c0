"""English word rules in the manner of the Penn Treebank, as NLTK 3.10 applies them to one ASCII sentence.

White space of a pattern is that of the engine which NLTK uses: tab to carriage return, and the space. The
separators U+001C to U+001F part tokens, but no pattern sees a space in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

_Step: TypeAlias = tuple[Callable[..., str], str]

CLOSERS: Final = "])}>\"'"
"""What may stand between the last period of a sentence and its end."""

SPACES: Final = " \t\n\v\f\r"


def _step(pattern: str, replacement: str) -> _Step:
    return re.compile(pattern, re.ASCII).sub, replacement


_OPENING: Final = (
    _step(r"`+", r" \g<0> "),
    _step(r'^"', r"``"),
    _step(r"``", r" \g<0> "),
    _step(r"([ (\[{<])(?:\"|'')", r"\1 `` "),
    _step(r"(?i)(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", r"' "),
)
_INNER: Final = (
    _step(r"([:,])(\D)", r" \1 \2"),
    _step(r"[:,]\Z", r" \g<0> "),
    _step(r"\.{2,}|[;@#$%&]", r" \g<0> "),
    _step(r"[?!]", r" \g<0> "),
    _step(r"([^'])' ", r"\1 ' "),
    _step(r"[*\]\[(){}<>]|--", r" \g<0> "),
)
_CLOSING: Final = (
    _step(r"''|\"", r" '' "),
    _step(r"[ \t-\r]+", r" "),
    _step(r"([^' ])('[sS]|'[mM]|'[dD]|') ", r"\1 \2 "),
    _step(r"([^' ])('ll|'LL|'re|'RE|'ve|'VE|n't|N'T) ", r"\1 \2 "),
)
_PARTS: Final = (
    ("can", "not"),
    ("d", "'ye"),
    ("gim", "me"),
    ("gon", "na"),
    ("got", "ta"),
    ("lem", "me"),
    ("more", "'n"),
)
_CONTRACTED: Final = (
    *(_step(rf"(?i)\b({first})({second})\b", r" \1 \2 ") for first, second in _PARTS),
    _step(r"(?i)\b(wan)(na)(?=[ \t-\r\x1c-\x1f])", r" \1 \2 "),
    _step(r"(?i) ('t)(is)\b", r" \1 \2 "),
    _step(r"(?i) ('t)(was)\b", r" \1 \2 "),
)

CONTRACTIONS: Final = frozenset({"wanna", *map("".join, _PARTS)})
"""Lower-cased words that are parted though they hold letters only, and a few with an apostrophe."""


def split_sentence(sentence: str) -> list[str]:
    """Return the tokens of one ASCII sentence.

    The period that ends the sentence is a token, others stay with their word; contractions are parted, and
    double quotes become a pair of backticks or of apostrophes.
    """
    text = _part_period(_apply(_OPENING, sentence))
    text = _apply(_INNER, text)
    text = _apply(_CLOSING, f" {text} ")
    return _apply(_CONTRACTED, text).split()


def _apply(steps: tuple[_Step, ...], text: str) -> str:
    for replace, replacement in steps:
        text = replace(replacement, text)
    return text


def _part_period(text: str) -> str:
    """Part the last period from its word when only closing marks follow and no other period precedes it."""
    kept = text.rstrip(SPACES)
    head = kept.rstrip(CLOSERS + " ")
    if head[-1:] != "." or head[-2:] in {".", ".."}:
        return text
    return f"{head[:-1]} . {kept[len(head) :]} "
