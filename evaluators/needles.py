"""Needles: which of several literal texts occur in each of many texts."""

from __future__ import annotations

import polars as pl

from evaluators.text import fold_case

_WORD = r"[\p{L}\p{M}\p{N}_]+"
_SHARED_LENGTH = 256  # characters; to look for all needles at once takes the square of the longest
_MARKS = range(0xF0000, 0x10FFFE)  # characters for private use, which stand in no word


def find_needles(
    texts: pl.Series, needles: pl.Series, *, case_sensitive: bool, whole_words: bool = False
) -> pl.Series:
    """Look for each row's needles in that row's text, literally.

    Args:
        texts: String, no nulls.
        needles: List of String, one list per row, without nulls; an empty needle is found everywhere.
        case_sensitive: Whether upper and lower case differ; if not, both are folded as `str.casefold` does.
        whole_words: Count a needle only where no letter, mark, digit or underscore adjoins its own.

    Returns:
        List of Boolean of the same height, each as long as the list of needles.
    """
    rows = pl.DataFrame({"text": texts, "needle": needles}).with_row_index("row")
    absent = pl.col("needle").list.eval(pl.element().is_null())
    found = _search(rows, case_sensitive=case_sensitive, whole_words=whole_words)
    lists = found.group_by("row", maintain_order=True).agg("found")
    joined = rows.join(lists, on="row", how="left", maintain_order="left")
    return joined.select(found=pl.coalesce("found", absent)).to_series()


def list_needles(needles: pl.Series, found: pl.Series, *, wanted: bool) -> pl.Series:
    """Return, per row, the needles that were found, or those that were not."""
    rows = pl.DataFrame({"needle": needles, "found": found}).with_row_index("row")
    pairs = rows.explode("needle", "found", empty_as_null=False).filter(pl.col("found") == wanted)
    lists = pairs.group_by("row", maintain_order=True).agg("needle")
    joined = rows.select("row").join(lists, on="row", how="left", maintain_order="left")
    return joined.select(pl.col("needle").fill_null([])).to_series()


def _search(rows: pl.DataFrame, *, case_sensitive: bool, whole_words: bool) -> pl.DataFrame:
    """Return `row` and `found` for each needle of the rows in which any was found."""
    if not case_sensitive:
        rows = rows.with_columns(fold_case(rows.select("text")))
    if rows.select((pl.col("needle") == pl.col("needle").first()).all()).item():
        shared = _fold(_pair(rows.head(1)), case_sensitive)["needle"].to_list()
        if max(map(len, shared), default=0) <= _SHARED_LENGTH:
            rows = rows.filter(pl.col("text").str.contains_any(shared)) if shared else rows.clear()
    pairs = _fold(_pair(rows), case_sensitive)
    pairs = pairs.with_columns(found=pl.col("text").str.contains(pl.col("needle"), literal=True))
    if whole_words:
        pairs = pairs.with_columns(found=pl.col("found") & _stands_alone(pairs))
    return pairs.select("row", "found")


def _pair(rows: pl.DataFrame) -> pl.DataFrame:
    """Put each needle beside its text."""
    return rows.explode("needle", empty_as_null=False)


def _fold(pairs: pl.DataFrame, case_sensitive: bool) -> pl.DataFrame:
    return pairs if case_sensitive else pairs.with_columns(fold_case(pairs.select("needle")))


def _stands_alone(pairs: pl.DataFrame) -> pl.Series:
    """Look once more for what was found, now with a mark at both ends of every word of text and needle.

    A needle that begins or ends within a word then lacks a mark there, so the search stays literal and takes
    time in proportion to the texts.
    """
    hits = pairs.filter("found")
    mark = _pick_mark(hits["needle"])
    text, needle = (pl.col(n).str.replace_all(_WORD, f"{mark}${{0}}{mark}") for n in ("text", "needle"))
    marked = hits.unique("row", maintain_order=True).select("row", marked=text)
    looked = pairs.select("row", needle=pl.when("found").then(needle))
    looked = looked.join(marked, on="row", how="left", maintain_order="left")
    alone = pl.col("marked").str.contains(pl.col("needle"), literal=True)
    return looked.select(alone=alone.fill_null(value=False)).to_series()


def _pick_mark(needles: pl.Series) -> str:
    """Return a character that no needle holds: marks of a needle then fit none but marks of a text."""
    return next(mark for mark in map(chr, _MARKS) if not needles.str.contains(mark, literal=True).any())
