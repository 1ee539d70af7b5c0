"""JSON arrays of rows, and JSON lines under the name of one JSON file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
import polars as pl

from assay.datasets import foundry, m365, uipath
from assay.datasets.buffers import BLOCK_BYTES
from assay.datasets.cells import ROW_NAMES
from assay.datasets.contract import Dataset, Dialect
from assay.datasets.faults import Faults
from assay.datasets.files import ByteStream, plain_suffix, read_head
from assay.datasets.json_lines import parse_block
from assay.datasets.json_members import cut_members
from assay.datasets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.datasets.files import Input


def claims(path: Path, head: str) -> bool:
    """Whether a JSON file is a list of objects, or lines of them, and no other form of JSON document."""
    if plain_suffix(path) != ".json" or m365.claims(path, head) or uipath.claims(path, head):
        return False
    text = head.lstrip()
    if text.startswith("["):
        return text[1:].lstrip()[:1] in ("{", "]", "")
    return holds_lines(text)


def holds_lines(head: str) -> bool:
    """Whether the first line of a text is a whole object and another begins on a later one."""
    line, _, rest = head.lstrip().partition("\n")
    if not line.startswith("{") or not rest.lstrip().startswith("{"):
        return False
    try:
        return isinstance(orjson.loads(line), dict)
    except ValueError:
        return False


def open_file(file: Input, size: int = BLOCK_BYTES) -> Dataset:
    """Open a JSON array; a file that holds JSON lines is read as these.

    Members are read as lines of JSON lines are. `item_json` is the text of a member as written,
    `source_line` the line where it begins. Members that are no objects, or not strict JSON within, are
    bad rows.

    Args:
        file: The file.
        size: Bytes of a block.
    """
    if read_head(file).lstrip().startswith(b"{"):
        return replace(foundry.open_file(file), dialect="json")
    stream, faults = ByteStream(file), Faults(file.shown)
    return Dataset(file, "json", _read_rows(stream, faults, size), faults, lambda: stream.sha256)


def _read_rows(stream: ByteStream, faults: Faults, size: int) -> Iterator[pl.DataFrame]:
    numbered = Faults(faults.shown)  # by number, as several members may stand on one line
    rows = Rows(stream.file, numbered)
    for members in cut_members(stream, size):
        block = parse_block(members.numbers, members.texts, ROW_NAMES, numbered, stream.file.reading)
        frame = rows.frame(block.numbers, block.text_series, block.cells)
        members.pass_on(numbered, faults)
        places = pl.Series(members.lines).gather(frame["source_line"] - members.first)
        yield frame.with_columns(places.alias("source_line"))
    rows.note_conversions()
    faults.notices.extend(
        replace(notice, line=None, pointer=f"[{(notice.line or 1) - 1}]") for notice in numbered.notices
    )


DIALECT = Dialect("json", "JSON list of objects (.json)", claims, open_file)
