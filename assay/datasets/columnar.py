"""Parquet and Arrow IPC: standard columns by name, every other column in `item_json` with exact values."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.arrow import read_batches
from assay.contracts.documents import Notice
from assay.contracts.json_text import parse_json
from assay.datasets.buffers import BLOCK_BYTES
from assay.datasets.column_text import MARKS, NOT_FINITE, TextTable, write_texts
from assay.datasets.contract import Dataset, Dialect
from assay.datasets.faults import Fault, Faults
from assay.datasets.files import plain_suffix
from assay.datasets.plain_files import open_plain
from assay.datasets.table_rows import TableRows, encode_objects

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from assay.contracts.arrow import ArrowForm
    from assay.datasets.files import Input
    from assay.datasets.plain_files import PlainFile

PARQUET_SUFFIXES = (".parquet",)
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
JSON_COLUMNS = "assay.json_columns"  # key in the metadata of a Parquet file: a JSON list of names
_PLAIN = "cell"  # methods of a series read a name such as `^a.*$` as a pattern
_ANY_MARK = f"[{''.join(MARKS)}]"


def claims_parquet(path: Path, _head: str) -> bool:
    """Whether a file is Parquet by its name."""
    return plain_suffix(path) in PARQUET_SUFFIXES


def claims_arrow(path: Path, _head: str) -> bool:
    """Whether a file is Arrow IPC by its name."""
    return plain_suffix(path) in ARROW_SUFFIXES


def open_parquet(file: Input) -> Dataset:
    """Open Parquet; see `open_columns`."""
    return open_columns(file, "parquet", "Parquet")


def open_arrow(file: Input) -> Dataset:
    """Open Arrow IPC, the file format or the stream format; see `open_columns`."""
    return open_columns(file, "arrow", "Arrow IPC")


def open_columns(file: Input, dialect: str, form: ArrowForm, size: int = BLOCK_BYTES) -> Dataset:
    """Open a file of columns.

    `item_json` is an object of all columns: texts as they are, dates and times as ISO 8601 text, numbers
    with their digits, nested values as JSON, null as null. `source_line` counts rows from 1. NaN and
    infinities, and dates outside the years 1 to 9999, make a bad row; a lenient reading takes NaN and
    infinities as null. Texts of `messages` and `tool_calls`, and of the columns that the reading
    declares, are read as JSON.

    Args:
        file: The file, plain or packed.
        dialect: Name of the dialect.
        form: What the file is.
        size: Bytes of a block, about.
    """
    plain, faults = open_plain(file), Faults(file.shown, "row")
    if form == "Parquet":
        file = _declare_columns(file, plain)
    return Dataset(file, dialect, _read_rows(file, plain, form, faults, size), faults, plain.digest)


def _declare_columns(file: Input, plain: PlainFile) -> Input:
    """Add the columns to be read as JSON that `assay convert` noted in the file's metadata."""
    try:
        noted = pl.read_parquet_metadata(plain.path).get(JSON_COLUMNS)
        names = None if noted is None else parse_json(noted)
    except (pl.exceptions.PolarsError, OSError, ValueError):
        return file  # reading its rows tells what is wrong with it
    if not isinstance(names, list):
        return file
    columns = (*file.reading.json_columns, *(name for name in names if isinstance(name, str)))
    return replace(file, reading=file.reading.model_copy(update={"json_columns": columns}))


def read_tables(
    file: Input,
    plain: PlainFile,
    form: ArrowForm,
    faults: Faults,
    size: int = BLOCK_BYTES,
    names: Collection[str] | None = None,
) -> Iterator[tuple[pl.Series, TextTable]]:
    """Read a file of columns as tables of text.

    Args:
        file: The file as the user named it.
        plain: The same without compression.
        form: What it is.
        faults: Takes rows with a value that has no text; such a row is in no table.
        size: Bytes of a table, about.
        names: The columns that are wanted, where the file has them; None for all.

    Yields:
        The 1-based number of each row, and the rows; none for an empty file.

    Raises:
        InputError: The file is torn or something else, or a column has a type that is not read.
    """
    if plain.is_empty:
        return
    first, values = 1, _Values(file, faults)
    for rows, frame in read_batches(plain.path, form, shown=file.shown, size=size, names=names):
        numbers = pl.int_range(first, first + rows, dtype=pl.Int64, eager=True)
        first += rows
        yield values.settle(numbers, write_texts(frame, shown=file.shown))
    values.note_nulls()


def _read_rows(
    file: Input, plain: PlainFile, form: ArrowForm, faults: Faults, size: int
) -> Iterator[pl.DataFrame]:
    rows = TableRows(file, faults)
    for numbers, texts in read_tables(file, plain, form, faults, size):
        yield rows.frame(numbers.to_list(), texts.table, texts.tokens)
    rows.note_conversions()


class _Values:
    """Values that have no text: their rows are refused, or a lenient reading takes them as null."""

    def __init__(self, file: Input, faults: Faults) -> None:
        self._lenient, self._faults = file.reading.lenient, faults
        self._nulls: Counter[str] = Counter()
        self._first: dict[str, int] = {}

    def settle(self, numbers: pl.Series, texts: TextTable) -> tuple[pl.Series, TextTable]:
        """Return the rows that have a text for every value, with their numbers."""
        table = texts.table
        if self._lenient:
            table = table.with_columns(self._take_null(numbers, table[name]) for name in texts.doubtful)
        reasons: dict[int, str] = {}
        for name in texts.doubtful:
            marks = table[name].alias(_PLAIN).str.extract(f"({_ANY_MARK})")
            for row in marks.is_not_null().arg_true():
                reasons.setdefault(row, f"column {name}: {MARKS[marks[row]]}")
        if reasons:
            for row, written in zip(
                sorted(reasons), _write_marked(table, texts, sorted(reasons)), strict=True
            ):
                self._faults.add_fault(Fault(numbers[row], reasons[row], text=written))
            good = pl.Series([row not in reasons for row in range(table.height)])
            numbers, table = numbers.filter(good), table.filter(good)
        return numbers, TextTable(table, texts.tokens, texts.doubtful)

    def note_nulls(self) -> None:
        """Note what was taken as null, once all rows were settled."""
        self._faults.notices.extend(
            Notice(
                "lenient",
                f"column {name}: NaN or Infinity read as null in {count} rows",
                self._faults.shown,
                row,
            )
            for (name, count), row in zip(self._nulls.items(), self._first.values(), strict=True)
        )

    def _take_null(self, numbers: pl.Series, column: pl.Series) -> pl.Series:
        name, column = column.name, column.alias(_PLAIN)
        found = column.str.contains(NOT_FINITE, literal=True).fill_null(value=False)
        if found.any():
            self._nulls[name] += int(found.sum())
            self._first.setdefault(name, numbers.filter(found)[0])
        whole = column.replace(NOT_FINITE, None)  # a cell that is nothing else is null and not `null`
        return whole.str.replace_all(NOT_FINITE, "null", literal=True).alias(name)


def _write_marked(table: pl.DataFrame, texts: TextTable, rows: list[int]) -> pl.Series:
    """Return some rows as JSON, with null where a value has no text."""
    part = table[rows]
    blanked = part.with_columns(
        part[name].alias(_PLAIN).str.replace_all(_ANY_MARK, "null").alias(name) for name in texts.doubtful
    )
    return encode_objects(blanked, texts.tokens)


PARQUET = Dialect("parquet", "Parquet (.parquet)", claims_parquet, open_parquet)
ARROW = Dialect("arrow", "Arrow IPC (.arrow, .feather, .ipc)", claims_arrow, open_arrow)
