"""Members: values cut out of JSON objects by regular expressions, where these are certain to be right."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from assay.contracts.json_text import dump_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from transforms.templates import Path

    Render: TypeAlias = "Callable[[pl.Expr], tuple[pl.Expr, pl.Expr]]"

SLICE_ROWS = 4_000  # fewer are not worth a thread of their own
_SCALAR = r'(?:"(?:[^"\\]|\\.)*"|-?[1-9][0-9.eE+-]*|0[0-9.eE+-]*|-0[.eE][0-9.eE+-]*|true|false|null)'


def cut_members(texts: pl.Series, paths: Sequence[Path], render: Render) -> pl.DataFrame:
    """Find the values of paths without parsing.

    Found are texts, numbers, `true`, `false` and `null` under one key, or under two where the outer one
    holds the first inner object of the row. This is exact, because in valid JSON a name in quotes that
    follows a brace, a comma or white space and has a colon behind it is a key: if its first quote ended a
    text, the name would stand outside of any, and a quote inside a text follows a backslash. With no brace
    on the way from the start, or to the end, it is a key of the row itself.

    Args:
        texts: Valid JSON without repeated keys.
        paths: What to find.
        render: From the expression of a value, as the source spells it and null where it was not found,
            to the expressions of what to return and of whether the row is undecided.

    Returns:
        For the path at place `n` the columns `n` and `n?`.
    """
    plan = _plan(tuple(paths), render)
    slices = max(1, min(pl.thread_pool_size(), len(texts) // SLICE_ROWS))
    size = -(-len(texts) // slices)
    frames = [plan(texts.slice(n * size, size).alias("text").to_frame().lazy()) for n in range(slices)]
    return pl.concat(pl.collect_all(frames)) if slices > 1 else frames[0].collect()


@lru_cache(maxsize=256)  # building the expressions takes as long as some hundred rows
def _plan(paths: tuple[Path, ...], render: Render) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
    members = {f"member {place}": _cut(path) for place, path in enumerate(paths)}
    columns: dict[str, pl.Expr] = {}
    for place, member in enumerate(members):
        columns[f"{place}"], columns[f"{place}?"] = render(pl.col(member))
    pieces, ends, outline = _outline()

    def plan(frame: pl.LazyFrame) -> pl.LazyFrame:
        outlined = frame.with_columns(pieces).with_columns(ends).with_columns(outline)
        return outlined.with_columns(**members).select(**columns)

    return plan


def _outline() -> tuple[pl.Expr, pl.Expr, list[pl.Expr]]:
    """Return expressions of the parts of each object in which the depth of a key is known.

    `lead` ends before the first inner brace, `inner` reaches from there to the next, and `tail` is what
    follows the last brace but the closing one.
    """
    text, pieces, ends = pl.col("text"), pl.col("pieces").struct, pl.col("ends").struct
    first, lead, rest, more = (pieces.field(f"field_{n}") for n in range(4))
    closed = (ends.field("field_2") == "") & ends.field("field_3").is_null()
    single = pl.when(more.is_null() & closed).then(ends.field("field_1"))
    searched = pl.when(single.is_null() & rest.is_not_null()).then(text).str.extract(r"[^{}]*\}$", 0)
    return (
        text.str.split_exact("{", 3).alias("pieces"),
        rest.str.split_exact("}", 3).alias("ends"),
        [
            pl.when(first == "").then(lead).alias("lead"),
            pl.when(first == "").then(pl.coalesce(single, searched)).alias("tail"),
            ends.field("field_0").alias("inner"),
        ],
    )


def _cut(path: Path) -> pl.Expr:
    match path:
        case (str() as key,):
            early = _cut_key(pl.col("lead"), key)
            return pl.coalesce(early, _cut_key(pl.when(early.is_null()).then("tail"), key))
        case (str() as key, str() as inner):
            holds = pl.col("lead").str.contains(rf"(?:^|[,\s]){_spell(key)}\s*:\s*$")
            return pl.when(holds).then(_cut_key(pl.col("inner"), inner))
        case _:
            return pl.lit(None, pl.String)


def _cut_key(text: pl.Expr, key: str) -> pl.Expr:
    """Return the expression of the value of a key; at the start of a text, nothing precedes the key."""
    member = text.str.extract(rf"(?:^|[,\s]){_spell(key)}\s*:\s*{_SCALAR}", 0)
    return (
        member.str.strip_chars_start(", \t\r\n")
        .str.strip_prefix(dump_json(key))
        .str.strip_chars_start(": \t\r\n")
    )


def _spell(key: str) -> str:
    return pl.escape_regex(dump_json(key))
