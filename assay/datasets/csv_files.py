"""CSV and TSV with a header row; every cell is text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.datasets.contract import Dataset, Dialect
from assay.datasets.csv_records import read_tables
from assay.datasets.faults import Faults
from assay.datasets.files import ByteStream, plain_suffix
from assay.datasets.table_rows import TableRows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from assay.datasets.files import Input

SUFFIXES = (".csv", ".tsv")


def claims(path: Path, _head: str) -> bool:
    """Whether a file is CSV or TSV by its name."""
    return plain_suffix(path) in SUFFIXES


def open_file(file: Input) -> Dataset:
    """Open CSV or TSV.

    An unquoted empty cell is null, a quoted one is empty text. `item_json` is an object of header to
    cell. Cells of `messages` and `tool_calls`, and of the columns that the reading declares as JSON, are
    read as JSON. Rows of another width than the header, with a quote inside an unquoted cell, or with
    such a cell that is not JSON, are bad rows.
    """
    stream, faults = ByteStream(file), Faults(file.shown)
    return Dataset(file, "csv", _read_rows(stream, faults), faults, lambda: stream.sha256)


def _read_rows(stream: ByteStream, faults: Faults) -> Iterator[pl.DataFrame]:
    rows = TableRows(stream.file, faults)
    for table in read_tables(stream, faults):
        yield rows.frame(table.numbers.to_list(), table.cells)
    rows.note_conversions()


DIALECT = Dialect("csv", "CSV or TSV with a header row (.csv, .tsv)", claims, open_file)
