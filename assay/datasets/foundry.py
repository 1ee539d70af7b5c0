"""Foundry rows: JSON lines, one test case each, as query and response or as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.documents import Document
from assay.contracts.tables import ROWS, conform
from assay.datasets.cells import STANDARD_NAMES, TEXT_COLUMNS, tag_list, text_series
from assay.datasets.contract import Dialect
from assay.datasets.files import plain_suffix
from assay.datasets.interactions import tool_definitions_text, unfold_interactions
from assay.datasets.json_source import LineFaults, parse_lines, pick_columns

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.contracts.json_text import JsonValue
    from assay.datasets.files import Source
    from assay.datasets.json_source import Lines

SUFFIXES = (".jsonl", ".ndjson")


def claims(path: Path, _head: str) -> bool:
    """Whether a file is JSON lines by its name."""
    return plain_suffix(path) in SUFFIXES


def read(source: Source) -> Document:
    """Read JSON lines.

    Texts stay as they are, other JSON values in text columns become compact JSON, null and a missing
    key are null. An id that is null or empty is null.

    Raises:
        InputError: Lines that are not one object, or hold messages beside query or response.
    """
    faults = LineFaults()
    frames = [_frame_lines(lines, faults) for lines in parse_lines(source, faults)]
    faults.raise_any(source.shown)
    if not frames:
        return Document(source.shown, "foundry", ROWS.empty(), None, source.sha256)
    rows = pl.concat([pl.DataFrame(schema={"id": pl.String}), *frames], how="diagonal")
    rows = rows.with_row_index("item_index")
    rows = rows.with_columns(
        turn=pl.lit(0),
        turn_count=pl.lit(1),
        source_file=pl.lit(source.shown),
        evaluators_mode=pl.lit("extend"),
        id=pl.col("id").replace("", None),
    )
    return Document(source.shown, "foundry", conform(rows, ROWS), None, source.sha256)


def _frame_lines(lines: Lines, faults: LineFaults) -> pl.DataFrame:
    """Return the columns of ROWS that these lines have."""
    found = pick_columns(lines, STANDARD_NAMES)
    derived: dict[str, pl.Series] = {}
    if "messages" in found or any(_holds_list(found.get(name)) for name in ("query", "response")):
        blank: list[JsonValue] = [None] * len(lines.numbers)
        cells = {name: found.get(name, list(blank)) for name in ("messages", "query", "response")}
        derived["messages_json"] = text_series(unfold_interactions(cells, lines.numbers, faults))
        found |= cells
    if "tool_definitions" in found:
        definitions = _read_definitions(found["tool_definitions"], lines.numbers, faults)
        derived["tool_definitions_json"] = text_series(definitions)
    if "tags" in found:
        derived["tags"] = pl.Series([tag_list(tags) for tags in found["tags"]], dtype=pl.List(pl.String))
    return pl.DataFrame(
        {
            "source_line": pl.Series(lines.numbers, dtype=pl.Int64),
            "item_json": pl.Series(lines.texts, dtype=pl.String),
            **{column: text_series(found[column]) for column in TEXT_COLUMNS if column in found},
            **derived,
        }
    )


def _holds_list(cells: Sequence[JsonValue] | None) -> bool:
    return cells is not None and list in set(map(type, cells))


def _read_definitions(
    cells: Sequence[JsonValue], numbers: Sequence[int], faults: LineFaults
) -> list[str | None]:
    texts: list[str | None] = []
    for number, cell in zip(numbers, cells, strict=True):
        try:
            texts.append(tool_definitions_text(cell))
        except ValueError as error:
            texts.append(None)
            faults.add(number, f"tool_definitions is text that is not JSON: {error}")
    return texts


DIALECT = Dialect("foundry", "JSON lines (.jsonl, .ndjson)", claims, read)
