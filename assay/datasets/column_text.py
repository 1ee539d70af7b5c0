"""Columns of any type as text: what is text stays so, anything else becomes JSON with exact values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import polars as pl

from assay.contracts.json_text import dump_json
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

NOT_FINITE, NO_DATE, REPEATED_KEY = "\x00", "\x01", "\x02"  # no JSON text holds these signs
MARKS: Mapping[str, str] = {
    NOT_FINITE: "NaN or Infinity is not JSON",
    NO_DATE: "a date outside the years 1 to 9999",
    REPEATED_KEY: "a map that names a key twice",
}
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, in days since 1970
_PER_DAY = {"ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_TEXT_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Binary, pl.Date, pl.Datetime, pl.Time, pl.Duration)


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of any types, as text.

    Attributes:
        table: String columns under the same names.
        tokens: The columns whose texts are JSON values: numbers, booleans, lists and objects, or null.
        doubtful: The columns that may hold a sign of `MARKS` in place of a value that has no text.
    """

    table: pl.DataFrame
    tokens: frozenset[str]
    doubtful: tuple[str, ...]


def write_texts(table: pl.DataFrame, *, shown: str) -> TextTable:
    """Write every column of a table as text.

    Texts, categories and UTF-8 bytes stay, dates and times become ISO 8601. Integers and decimals keep
    their digits, floats are the shortest text that reads back equal, null stays null. Structs become
    objects with all their fields, maps objects with their keys as text.

    Args:
        table: Columns of any type that Parquet or Arrow has and Polars reads.
        shown: The file, for messages.

    Raises:
        InputError: A column holds bytes that are not UTF-8, or maps whose keys are neither text nor
            integers.
    """
    columns: dict[str, pl.Series] = {}
    for name, dtype in table.schema.items():
        try:
            columns[name] = _write_column(table.get_column(name), dtype)
        except pl.exceptions.ComputeError as error:
            raise InputError(f"column {name!r} holds bytes that are not UTF-8 text", path=shown) from error
        except TypeError as error:
            raise InputError(f"column {name!r} holds {error}", path=shown) from error
    schema = table.schema
    return TextTable(
        pl.DataFrame(columns),
        frozenset(name for name, dtype in schema.items() if not isinstance(dtype, _TEXT_TYPES)),
        tuple(name for name, dtype in schema.items() if _may_fail(dtype)),
    )


def _write_column(values: pl.Series, dtype: pl.DataType) -> pl.Series:
    column = pl.col("x")  # names of columns and fields may be patterns to Polars, so none is looked up
    text = _write_text(column, dtype) if isinstance(dtype, _TEXT_TYPES) else _write_token(column, dtype)
    return values.to_frame("x").select(pl.when(column.is_not_null()).then(text)).to_series()


def _may_fail(dtype: pl.DataType) -> bool:
    return dtype.is_float() or dtype.is_nested() or isinstance(dtype, pl.Date | pl.Datetime)


def _write_text(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Write values of one of the text types; null stays null."""
    match dtype:
        case pl.Date():
            return _write_date(column, "%Y-%m-%d", 1)
        case pl.Datetime(time_unit=unit, time_zone=zone):
            form = "%Y-%m-%dT%H:%M:%S%.f" + ("%:z" if zone else "")
            return _write_date(column, form, _PER_DAY[unit])
        case pl.Time() | pl.Duration():
            return column.dt.to_string("iso")
        case _:
            return column.cast(pl.String)


def _write_date(column: pl.Expr, form: str, per_day: int) -> pl.Expr:
    """Write dates of four-digit years; the writer stops the program at years it does not know."""
    first, last = _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day - 1
    known = pl.when(column.to_physical().is_between(first, last)).then(column)
    return pl.when(column.is_not_null()).then(known.dt.to_string(form).fill_null(NO_DATE))


def _write_token(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Write values as JSON; null becomes `null`."""
    match dtype:
        case pl.List() | pl.Array():
            token = _write_list(column, dtype)
        case pl.Struct():
            token = _write_struct(column, dtype)
        case pl.Map():
            token = _write_map(column, dtype)
        case pl.Null():
            token = pl.lit("null")
        case _ if isinstance(dtype, _TEXT_TYPES):
            text = _write_text(column, dtype)
            token = pl.when(text == NO_DATE).then(text).otherwise(_quote(text))
        case _ if dtype.is_float():
            token = pl.when(column.is_finite()).then(column.cast(pl.String)).otherwise(pl.lit(NOT_FINITE))
        case _:
            token = column.cast(pl.String)
    return pl.when(column.is_null()).then(pl.lit("null")).otherwise(token)


def _write_list(column: pl.Expr, dtype: pl.List | pl.Array) -> pl.Expr:
    lists = column.arr.to_list() if isinstance(dtype, pl.Array) else column
    return _join("[", lists, _write_token(pl.element(), cast("pl.DataType", dtype.inner)), "]")


def _write_struct(column: pl.Expr, dtype: pl.Struct) -> pl.Expr:
    numbered = column.struct.rename_fields([f"f{number}" for number in range(len(dtype.fields))])
    members = [pl.lit("{")]
    for number, field in enumerate(dtype.fields):
        key = ("," if number else "") + dump_json(field.name) + ":"
        value = _write_token(numbered.struct.field(f"f{number}"), cast("pl.DataType", field.dtype))
        members += [pl.lit(key), value]
    return pl.concat_str(*members, pl.lit("}"))


def _write_map(column: pl.Expr, dtype: pl.Map) -> pl.Expr:
    key_type, value_type = cast("pl.DataType", dtype.key), cast("pl.DataType", dtype.value)
    entry = pl.element().struct
    key = _write_token(entry.field("key"), key_type)
    if key_type.is_integer():
        key = pl.concat_str(pl.lit('"'), key, pl.lit('"'))
    elif not isinstance(key_type, _TEXT_TYPES):
        raise TypeError("maps whose keys are neither text nor integers")
    member = pl.concat_str(key, pl.lit(":"), _write_token(entry.field("value"), value_type))
    keys = column.map.keys()
    unique = keys.list.n_unique() == keys.list.len()
    return pl.when(unique).then(_join("{", column.map.entries(), member, "}")).otherwise(pl.lit(REPEATED_KEY))


def _join(begin: str, lists: pl.Expr, member: pl.Expr, end: str) -> pl.Expr:
    return pl.concat_str(pl.lit(begin), lists.list.eval(member).list.join(","), pl.lit(end))


def _quote(text: pl.Expr) -> pl.Expr:
    """Write text as JSON by way of an object that holds nothing else."""
    written = pl.struct(text.alias("t")).struct.json_encode()
    return written.str.strip_prefix('{"t":').str.strip_suffix("}")
