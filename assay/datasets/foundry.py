"""Foundry rows: JSON lines, one test case each, as query and response or as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.datasets.cells import ROW_NAMES
from assay.datasets.contract import Dataset, Dialect
from assay.datasets.faults import Faults
from assay.datasets.files import ByteStream, plain_suffix
from assay.datasets.json_lines import read_blocks
from assay.datasets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from assay.datasets.files import Input

SUFFIXES = (".jsonl", ".ndjson")


def claims(path: Path, _head: str) -> bool:
    """Whether a file is JSON lines by its name."""
    return plain_suffix(path) in SUFFIXES


def open_file(file: Input) -> Dataset:
    """Open JSON lines.

    Texts stay as they are, other JSON values in text columns become compact JSON, null and a missing
    key are null. An id that is null or empty is null. Lines that are not one object, or hold messages
    beside query or response, are bad rows.
    """
    stream, faults = ByteStream(file), Faults(file.shown)
    return Dataset(file, "foundry", _read_rows(stream, faults), faults, lambda: stream.sha256)


def _read_rows(stream: ByteStream, faults: Faults) -> Iterator[pl.DataFrame]:
    rows = Rows(stream.file, faults)
    for block in read_blocks(stream, ROW_NAMES, faults):
        if block.numbers:
            yield rows.frame(block.numbers, block.text_series, block.cells)
    rows.note_conversions()


DIALECT = Dialect("foundry", "JSON lines (.jsonl, .ndjson)", claims, open_file)
