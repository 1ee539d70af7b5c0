"""Numbers: those that a text names, read by the habits of a country."""

from __future__ import annotations

import sys
from functools import cache
from typing import Literal, TypeAlias

import polars as pl

Locale: TypeAlias = Literal["en", "de", "auto"]
Which: TypeAlias = Literal["last", "first", "only"]

_SIGNS = {
    **dict.fromkeys("\u2212\u2013\ufe63\uff0d", "-"),
    **dict.fromkeys("\ufe62\uff0b", "+"),
    **dict.fromkeys("\u066a\ufe6a\uff05", "%"),
    **dict.fromkeys("\u2019\u00a0\u2009\u202f\u066c", "'"),
    "\u066b": ".",
    "\uff0e": ".",
    "\uff0c": ",",
}
"""Further ways to write signs, decimal points and what parts thousands; spaces there do not break lines."""

# Digits are ASCII by then; the engine's \d has some that Python, and so the table of digits, does not know.
_RUN = r"(?:[0-9]+(?:[.,'][0-9]+)*|[.,][0-9]+)"
_EXPONENT = r"[eE][-+]?[0-9]+"
_WRITTEN = rf"[-+]?(?:\p{{Sc}}\s?)?{_RUN}(?:{_EXPONENT})?(?:\s?%)?"
_PLAIN = rf"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:{_EXPONENT})?%?"
_BEHIND_WORD = r"([0-9][eE][-+][0-9]+)|([\p{L}\p{N})])[-+]"
_FITS = r"^(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[1-9][0-9]{0,2}(?:'[0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?$"
_EXACT = 2.0**53  # from here on not every integer is a float


def read_numbers(texts: pl.Series, locale: Locale, which: Which, *, fractions: bool) -> pl.DataFrame:
    """Find the numbers in each text and pick one.

    A number has digits of any script, a sign unless a letter, digit or bracket stands right before that
    (`3-5` is 3 and 5), thousands parted by apostrophes or narrow spaces or as the locale does, decimals, an
    exponent and a percent sign. What fits no such form, as a date does, is several numbers. `auto` reads
    `1,234.5` and `1.234,5` alike, and where both habits fit, as in `1,234`, the English one.

    Args:
        texts: String, no nulls.
        locale: `en` for 1,234.56, `de` for 1.234,56, or `auto`.
        which: Which number of several.
        fractions: Whether 50% is 0.5; if not, it is 50.

    Returns:
        Per text `count` Int64, how many numbers there are, `value` Float64, null where there is none,
        `written` String, the number in English without thousands, and `digits` String, which tells numbers
        apart that are the same as a float (from 2**53 on, infinite, or 0): digits without zeros at
        the ends and the power of ten, equal exactly where the values are; else null.
    """
    rows = pl.DataFrame({"text": _write_ascii(texts)}).with_row_index("row")
    spaced = pl.col("text").str.replace_all(_BEHIND_WORD, "$1$2 ")
    written = rows.select("row", raw=spaced.str.extract_all(_WRITTEN)).explode("raw", empty_as_null=False)
    plain = written.select("row", raw=_rewrite(pl.col("raw"), locale).str.extract_all(_PLAIN))
    numbers = plain.explode("raw", empty_as_null=False).select("row", *_parse(pl.col("raw"), fractions))
    found = pl.col("value", "written", "digits")
    picked = numbers.group_by("row", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("count"), found.first() if which == "first" else found.last()
    )
    joined = rows.select("row").join(picked, on="row", how="left", maintain_order="left")
    return joined.select(pl.col("count").fill_null(0), "value", "written", "digits")


def _write_ascii(texts: pl.Series) -> pl.Series:
    """Write digits and signs of every script in ASCII."""
    if not texts.str.contains(r"[^\x00-\x7F]").any():
        return texts
    return texts.str.replace_many(_SIGNS | _list_digits())


@cache
def _list_digits() -> dict[str, str]:
    """Return the decimal digits beyond ASCII, and those they stand for."""
    beyond = (char for char in map(chr, range(0x80, sys.maxunicode + 1)) if char.isdecimal())
    return {char: str(int(char)) for char in beyond}


def _rewrite(raw: pl.Expr, locale: Locale) -> pl.Expr:
    """Rewrite a number as English without thousands; what is none by the locale, as its parts."""
    run = raw.str.extract(f"({_RUN})")
    swapped = run.str.replace_many([".", ","], [",", "."])
    match locale:
        case "en":
            form = run
        case "de":
            form = swapped
        case "auto":
            form = pl.when(run.str.contains(_FITS)).then(run).otherwise(swapped)
    sign = pl.when(raw.str.starts_with("-")).then(pl.lit("-")).otherwise(pl.lit(""))
    percent = pl.when(raw.str.ends_with("%")).then(pl.lit("%")).otherwise(pl.lit(""))
    exponent = raw.str.extract(f"({_EXPONENT})").fill_null("")
    whole = pl.concat_str(sign, form.str.replace_all("[,']", ""), exponent, percent)
    return pl.when(form.str.contains(_FITS)).then(whole).otherwise(raw.str.replace_all("[.,']", " "))


def _parse(raw: pl.Expr, fractions: bool) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Return value, spelling and digits of plain numbers."""
    number = raw.str.strip_chars_end("%")
    value = number.cast(pl.Float64)
    shifted = raw.str.ends_with("%") & pl.lit(fractions)
    if fractions:  # a shifted point instead of a division, which rounds once more
        shift = number.str.contains("[eE]")
        hundredth = (
            pl.when(shift).then(value / 100).otherwise((number + "e-2").cast(pl.Float64, strict=False))
        )
        value = pl.when(shifted).then(hundredth).otherwise(value)
    vague = (value.abs() >= _EXACT) | (value == 0)
    digits = pl.when(vague).then(_write_digits(number, shifted))
    return value.alias("value"), raw.str.strip_prefix("+").alias("written"), digits.alias("digits")


def _write_digits(number: pl.Expr, shifted: pl.Expr) -> pl.Expr:
    """Write plain numbers, a hundredth of them where `shifted`, in the one form their value has."""
    mantissa = number.str.extract(r"^[-+]?([0-9.]+)")
    decimals = mantissa.str.extract(r"\.([0-9]+)").str.len_chars().fill_null(0).cast(pl.Int64)
    whole = mantissa.str.replace(".", "", literal=True).str.strip_chars_start("0")
    digits = whole.str.strip_chars_end("0")
    zeros = (whole.str.len_chars() - digits.str.len_chars()).cast(pl.Int64)
    power = number.str.extract(r"[eE]([-+]?[0-9]+)").fill_null("0").str.strip_prefix("+")
    shift = zeros - decimals - pl.when(shifted).then(2).otherwise(0)
    exponent = (power.cast(pl.Int64, strict=False) + shift).cast(pl.String)
    sign = pl.when(number.str.starts_with("-")).then(pl.lit("-")).otherwise(pl.lit(""))
    form = pl.concat_str(sign, digits, pl.lit("e"), pl.coalesce(exponent, power))  # or too vast to add up
    return pl.when(digits == "").then(pl.lit("0")).otherwise(form)
