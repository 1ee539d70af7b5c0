"""Column functions over text: case folding, composition, tokens, and the overlap of two bags of tokens.

Every function takes a frame of String columns without nulls and changes all of its columns alike, so both
sides of a comparison always go through the same steps.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

CASED = range(0x20000)  # no script with two cases stands above
UNCOMPOSED = (
    r"[[\p{M}\x{374}-\x{387}\x{958}-\x{11FF}\x{1F71}-\x{2001}\x{2126}-\x{212B}\x{2329}\x{232A}\x{2ADC}"
    r"\x{F900}-\x{FB4E}\x{1D15E}-\x{1D1C0}\x{2F800}-\x{2FA1F}]--[\x{FE00}-\x{FE0F}]]"
)
"""Matches every character that NFC may change or join with its neighbour, and a few that it leaves alone."""

_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_EXTEND = r"[\p{wb=Extend}\p{wb=Format}\p{wb=ZWJ}]*"
_LETTERS = rf"(?:[[\p{{wb=ALetter}}\p{{wb=Hebrew_Letter}}]--[{_SPACELESS}]]{_EXTEND})+"
_DIGITS = rf"(?:\p{{wb=Numeric}}{_EXTEND})+"
_RUN = (
    rf"(?:{_LETTERS}(?:[\p{{wb=MidLetter}}\p{{wb=MidNumLet}}']{_EXTEND}{_LETTERS})*"
    rf"|{_DIGITS}(?:[\p{{wb=MidNum}}\p{{wb=MidNumLet}}']{_EXTEND}{_DIGITS})*)"
)
_EMOJI = r"[\p{Extended_Pictographic}--\p{P}]\p{wb=Extend}*"
WORD = (
    rf"\p{{Pc}}*{_RUN}(?:{_RUN}|\p{{Pc}})*"
    rf"|[\p{{L}}\p{{N}}]{_EXTEND}"
    rf"|{_EMOJI}(?:\x{{200D}}{_EMOJI})*|\p{{Regional_Indicator}}{{1,2}}"
)
"""One token: a word or number by UAX-29, one character of a script without spaces, or one emoji."""

_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_ARTICLE = r"(?i)(^|[^\p{L}\p{N}_])(?:a|an|the)([^\p{L}\p{N}_]|$)"
_RARE_SPACE = r"[[\s\x1C-\x1F]--\x20]"


def fold_case(frame: pl.DataFrame) -> pl.DataFrame:
    """Fold case as `str.casefold` does."""
    ascii_only = frame.select((~pl.all().str.contains(r"[^\x00-\x7F]")).all()).row(0, named=True)
    return frame.with_columns(
        pl.col(name).str.to_lowercase() if plain else pl.col(name).str.replace_many(list_folds())
        for name, plain in ascii_only.items()
    )


@cache
def list_folds() -> dict[str, str]:
    """Return every character that case folding changes, and what it becomes."""
    return {char: char.casefold() for char in map(chr, CASED) if char.casefold() != char}


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


def split_compat(frame: pl.DataFrame) -> pl.DataFrame:
    r"""Split texts as the F1 metric of azure-ai-evaluation does.

    ASCII punctuation is deleted, English articles become spaces, and white space separates. The borders of
    an article and white space are those of Python's `\b` and `str.split`, spelled out because the regex
    engine here draws both elsewhere. An article needs its neighbours for its borders, so of two in a row
    only a second round finds the other.
    """
    text = pl.all().str.replace_all(_PUNCTUATION, "")
    for _ in range(2):
        text = text.str.replace_all(_ARTICLE, "$1 $2")
    spaced = _change(
        frame.with_columns(text), _RARE_SPACE, lambda rare: rare.str.replace_all(_RARE_SPACE, " ")
    )
    word = pl.element()
    return spaced.select(pl.all().str.split(" ").list.eval(word.filter(word != "")))


def count_overlap(tokens: pl.DataFrame, left: str, right: str) -> pl.Series:
    """Count, per row, the tokens that two lists share, each as often as both have it.

    Both lists of a row are sorted into one list of token hashes whose lowest bit says which side they come
    from. Within a run of equal tokens the sides cancel out; what is left over is not shared.

    Args:
        tokens: Frame with two columns of lists of String, no nulls.
        left: Name of one column.
        right: Name of the other.

    Returns:
        Int64 of the same height and order.
    """
    sides = [
        pl.col(name).list.eval(pl.element().hash() // 2 * 2 + bit) for bit, name in enumerate((left, right))
    ]
    token, row = pl.col("token"), pl.col("row")
    last = (token.ne_missing(token.shift(-1))) | row.ne_missing(row.shift(-1))
    surplus = (
        tokens.lazy()
        .select(key=pl.concat_list(sides).list.sort())
        .with_row_index("row")
        .explode("key")
        .select(
            "row", token=pl.col("key") // 2, balance=(1 - 2 * (pl.col("key") % 2).cast(pl.Int64)).cum_sum()
        )
        .filter(last)
        .with_columns(surplus=(pl.col("balance") - pl.col("balance").shift(1, fill_value=0)).abs())
        .group_by("row")
        .agg(pl.col("surplus").sum())
    )
    size = (pl.col(left).list.len() + pl.col(right).list.len()).cast(pl.Int64)
    counted = tokens.lazy().select(size=size).with_row_index("row").join(surplus, on="row", how="left")
    return (
        counted.sort("row")
        .select((pl.col("size") - pl.col("surplus").fill_null(0)) // 2)
        .collect()
        .to_series()
    )
