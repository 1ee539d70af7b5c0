"""Spreadsheets: the first sheet with a header row; every cell is text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.documents import Notice
from assay.datasets.contract import Dataset, Dialect
from assay.datasets.faults import Fault, Faults
from assay.datasets.files import plain_suffix
from assay.datasets.plain_files import open_plain
from assay.datasets.table_rows import TableRows, encode_objects
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fastexcel import ExcelReader

    from assay.datasets.files import Input
    from assay.datasets.plain_files import PlainFile

MISSING = 'reading .xlsx needs an extra: pip install "assay[xlsx]"'
_ERROR = re.compile(r"Error\((\w+)\)")
_DAY_ZERO = "1899-12-31 "  # what the reader puts before a time without a date


def claims(path: Path, _head: str) -> bool:
    """Whether a file is a spreadsheet by its name."""
    return plain_suffix(path) == ".xlsx"


def open_file(file: Input) -> Dataset:
    """Open a spreadsheet.

    The first row that is not blank is the header; blank rows are no rows. Texts stay, numbers are written
    as short as they read back, dates and times as ISO 8601, truth values as true and false; an empty cell
    is null. `source_line` is the row of the sheet. Rows with a cell that shows an error are bad rows.
    Other sheets that hold something are named in a notice.

    Raises:
        InputError: The reader is not installed, or the file is no spreadsheet.
    """
    plain, faults = open_plain(file), Faults(file.shown, "row")
    return Dataset(file, "xlsx", _read_rows(file, plain, faults), faults, plain.digest)


def _read_rows(file: Input, plain: PlainFile, faults: Faults) -> Iterator[pl.DataFrame]:
    if plain.is_empty:
        return
    numbers, table = _read_table(plain.path.read_bytes(), faults)
    if numbers:
        rows = TableRows(file, faults)
        yield rows.frame(numbers, table)
        rows.note_conversions()


def _read_table(data: bytes, faults: Faults) -> tuple[list[int], pl.DataFrame]:
    """Return the good rows below the header, each with its number; others are noted."""
    cells, errors = _read_cells(data, faults)
    filled = cells.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
    rows = [row for row, holds in enumerate(filled) if holds or row in errors]
    if not rows:
        return [], cells
    header, *rows = rows
    kept = [name for name in cells.columns if cells[name].null_count() < cells.height]
    names = _name_columns([cells[name][header] for name in kept], header + 1, faults.shown)
    table = pl.DataFrame(dict(zip(names, (cells[name].gather(rows) for name in kept), strict=True)))
    bad = pl.Series(rows, dtype=pl.Int64).is_in(pl.Series(list(errors), dtype=pl.Int64).implode())
    numbers = (pl.Series(rows, dtype=pl.Int64) + 1).filter(~bad).to_list()
    for place in [place for place, is_bad in enumerate(bad) if is_bad]:
        row, text = rows[place], encode_objects(table[place : place + 1], ())[0]
        faults.add_fault(Fault(row + 1, errors[row], text=text))
    return numbers, table.filter(~bad)


def _read_cells(data: bytes, faults: Faults) -> tuple[pl.DataFrame, dict[int, str]]:
    """Return the first sheet as texts from its first row on, and a message for rows that show an error."""
    try:
        import fastexcel
    except ImportError as error:
        raise InputError(MISSING, path=faults.shown) from error
    try:
        reader = fastexcel.read_excel(data)
        texts, times = (
            reader.load_sheet(0, header_row=None, skip_rows=0, dtypes=kind) for kind in ("string", "duration")
        )
        _note_sheets(reader, faults)
        _, errors = texts.to_arrow_with_errors()
        cells = _write_times(texts.to_polars(), times.to_polars())
    except fastexcel.FastExcelError as error:
        message = str(error).partition("\n")[0]
        raise InputError(f"cannot be read as a spreadsheet: {message}", path=faults.shown) from error
    letters = [_letters(column.absolute_index) for column in texts.available_columns()]
    messages: dict[int, str] = {}
    for cell in errors.errors if errors else ():
        row, column = cell.offset_position
        kind = _ERROR.search(cell.detail)
        shown = kind.group(1) if kind else cell.detail
        messages.setdefault(row, f"cell {letters[column]}{row + 1} shows an error ({shown})")
    return cells, messages


def _write_times(texts: pl.DataFrame, times: pl.DataFrame) -> pl.DataFrame:
    """Return the texts with dates and times, which are those that are durations too, in ISO 8601."""
    return texts.with_columns(
        pl.when(times[name].is_not_null())
        .then(
            pl.when(pl.col(name).str.starts_with(_DAY_ZERO))
            .then(pl.col(name).str.strip_prefix(_DAY_ZERO))
            .otherwise(pl.col(name).str.strip_suffix(" 00:00:00").str.replace(" ", "T", literal=True))
        )
        .otherwise(pl.col(name))
        .alias(name)
        for name in texts.columns
    )


def _name_columns(cells: list[str | None], row: int, shown: str) -> list[str]:
    names = [cell or "" for cell in cells]
    for place, name in enumerate(names, start=1):
        if not name:
            raise InputError(f"column {place} has no name in the header", path=shown, line=row)
        if name in names[: place - 1]:
            raise InputError(f"header {name!r} appears twice", path=shown, line=row)
    return names


def _note_sheets(reader: ExcelReader, faults: Faults) -> None:
    first, *others = reader.sheet_names
    for name in others:
        if reader.load_sheet(name, header_row=None, dtypes="string").height:
            message = f"sheet {name!r} is not read, only the first one, {first!r}"
            faults.notices.append(Notice("more_sheets", message, faults.shown))


def _letters(index: int) -> str:
    """Return the letters of a column of a sheet by its 0-based index."""
    letters = ""
    while index >= 0:
        index, letter = divmod(index, 26)
        letters = chr(ord("A") + letter) + letters
        index -= 1
    return letters


DIALECT = Dialect("xlsx", "spreadsheet (.xlsx)", claims, open_file)
