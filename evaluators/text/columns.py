"""Column functions over text: case folding, composition, and words by a regular expression.

Every function takes a frame of String columns without nulls and changes all of its columns alike, so both
sides of a comparison always go through the same steps.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

CASED = range(0x20000)  # no script with two cases stands above
SURROGATES = range(0xD800, 0xE000)
UNCOMPOSED = (
    r"[[\p{M}\x{374}-\x{387}\x{958}-\x{11FF}\x{1F71}-\x{2001}\x{2126}-\x{212B}\x{2329}\x{232A}\x{2ADC}"
    r"\x{F900}-\x{FB4E}\x{1D15E}-\x{1D1C0}\x{2F800}-\x{2FA1F}]--[\x{FE00}-\x{FE0F}]]"
)
"""Matches every character that NFC may change or join with its neighbour, and a few that it leaves alone."""

_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
CLASSES = {
    "L": rf"[[\p{{wb=ALetter}}\p{{wb=Hebrew_Letter}}]--[{_SPACELESS}]]",
    "D": r"\p{wb=Numeric}",
    "F": r"[\p{wb=Extend}\p{wb=Format}\p{wb=ZWJ}]",
    "X": r"\p{wb=Extend}",
    "M": r"[\p{wb=MidLetter}\p{wb=MidNumLet}']",
    "m": r"[\p{wb=MidNum}\p{wb=MidNumLet}']",
    "_": r"\p{Pc}",
    "N": r"[\p{L}\p{N}]",
    "E": r"[\p{Extended_Pictographic}--\p{P}]",
    "R": r"\p{Regional_Indicator}",
    "Z": r"\x{200D}",
}
"""What words are made of: letters, digits, what extends both, what extends emoji, what joins letters, what
joins digits, connectors, letters and numbers of any kind, emoji, regional indicators, the joiner."""

_LETTERS = "(?:{L}{F}*)+".format_map(CLASSES)
_DIGITS = "(?:{D}{F}*)+".format_map(CLASSES)
_PARTS = CLASSES | {"letters": _LETTERS, "digits": _DIGITS}
_RUN = "(?:{letters}(?:{M}{F}*{letters})*|{digits}(?:{m}{F}*{digits})*)".format_map(_PARTS)
_EMOJI = "{E}{X}*".format_map(CLASSES)
WORD = "{_}*{run}(?:{run}|{_})*|{N}{F}*|{emoji}(?:{Z}{emoji})*|{R}{R}?".format_map(
    CLASSES | {"run": _RUN, "emoji": _EMOJI}
)
"""One token: a word or number by UAX-29, one character of a script without spaces, or one emoji."""


def fold_case(frame: pl.DataFrame) -> pl.DataFrame:
    """Fold case as `str.casefold` does: lower case, and more where characters ask for it."""
    special = frame.select(pl.all().str.contains(_match_special()))
    lowered = frame.with_columns(pl.all().str.to_lowercase())
    for name in frame.columns:
        rows = special[name].arg_true()
        if len(rows):
            texts = frame[name].gather(rows).alias("text").str.replace_many(list_changes(str.casefold))
            lowered = lowered.with_columns(lowered[name].scatter(rows, texts))
    return lowered


@cache
def _match_special() -> str:
    """Match the characters whose lower case is not their folded form, or hangs on their neighbours."""
    chars = pl.Series("char", [chr(code) for code in CASED if code not in SURROGATES])
    pairs = zip(chars, chars.str.to_lowercase(), strict=True)
    return f"[\u03a3{''.join(re.escape(char) for char, lower in pairs if char.casefold() != lower)}]"


@cache
def list_changes(change: Callable[[str], str]) -> dict[str, str]:
    """Return every character that a change of case changes, and what it becomes."""
    return {char: new for char in map(chr, CASED) if (new := change(char)) != char}


def compose(frame: pl.DataFrame) -> pl.DataFrame:
    """Bring texts to Unicode form NFC."""
    return _change(frame, UNCOMPOSED, lambda text: text.str.normalize("NFC"))


def _change(frame: pl.DataFrame, pattern: str, change: Callable[[pl.Expr], pl.Expr]) -> pl.DataFrame:
    """Change the columns in which `pattern` occurs at all: looking is much cheaper than changing."""
    found = frame.select(pl.all().str.contains(pattern).any()).row(0, named=True)
    return frame.with_columns(change(pl.col(name)) for name, hit in found.items() if hit)


def split_words(frame: pl.DataFrame) -> pl.DataFrame:
    """Split texts into the tokens of `WORD`; punctuation, symbols and spaces are dropped."""
    return frame.select(pl.all().str.extract_all(WORD))
