"""CSV with a header row; every cell is text."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.documents import Document
from assay.contracts.json_text import parse_json
from assay.contracts.tables import ROWS, conform
from assay.datasets.cells import STANDARD_NAMES, TEXT_COLUMNS, text_series
from assay.datasets.contract import Dialect
from assay.datasets.files import plain_suffix
from assay.datasets.interactions import tool_definitions_text, unfold_interactions
from assay.datasets.json_source import LineFaults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from assay.contracts.json_text import JsonValue
    from assay.datasets.files import Source

SEPARATORS = (",", ";", "\t")
_QUOTED = r'"[^"]*"'


def claims(path: Path, _head: str) -> bool:
    """Whether a file is CSV by its name."""
    return plain_suffix(path) == ".csv"


def read(source: Source) -> Document:
    """Read CSV.

    An unquoted empty cell is null, a quoted one is empty text. `item_json` is an object of header to
    cell. Cells of `messages` and `tool_definitions` are read as JSON.

    Raises:
        InputError: Ragged rows, repeated headers, stray quotes, or such a cell that is not JSON.
    """
    table, lines = parse_table(source)
    if table.is_empty():
        return Document(source.shown, "csv", ROWS.empty(), None, source.sha256)
    columns = {name: pick_column(table, names) for name, names in STANDARD_NAMES.items()}
    tag = columns.pop("tags").replace("", None)
    rows = table.select(
        pl.struct(pl.all()).struct.json_encode().alias("item_json"),
        **{name: columns[name] for name in TEXT_COLUMNS},
        messages=columns["messages"],
        tool_definitions=columns["tool_definitions"],
        tags=pl.when(tag.is_not_null()).then(pl.concat_list(tag)),
    )
    rows = rows.with_columns(pl.col("id").replace("", None), source_line=lines)
    rows = _read_json_cells(rows, source.shown).with_row_index("item_index")
    rows = rows.with_columns(
        turn=pl.lit(0),
        turn_count=pl.lit(1),
        source_file=pl.lit(source.shown),
        evaluators_mode=pl.lit("extend"),
    )
    return Document(source.shown, "csv", conform(rows, ROWS), None, source.sha256)


def parse_table(source: Source) -> tuple[pl.DataFrame, pl.Series]:
    """Parse a CSV with a header row; `,`, `;` or tab, whichever the header holds most of.

    Returns:
        String columns under the header's names, and the 1-based line where each row begins. Blank
        lines are no rows.

    Raises:
        InputError: A row with more or fewer cells than the header, a header named twice, a quote
            that is never closed or stands inside an unquoted cell.
    """
    records = _split_records(source)
    if records.is_empty():
        return pl.DataFrame(), pl.Series(dtype=pl.Int64)
    bare = records["text"].str.replace_all(_QUOTED, "")
    separator = max(SEPARATORS, key=bare[0].count)
    header: str = records["text"][0].rstrip("\r")
    if "\r" in header:
        raise source.error("lines end in CR alone; save the file with LF or CRLF line ends", offset=0)
    names = next(csv.reader([header], delimiter=separator))
    _check_records(source, records, separator, names)
    body = records.slice(1)
    if body.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(names, pl.String)), body["line"]
    text: str = body["text"].str.join("\n")[0]
    table = pl.read_csv(text.encode(), separator=separator, infer_schema=False, has_header=False)
    table.columns = names
    return table, body["line"]


def pick_column(table: pl.DataFrame, names: Sequence[str]) -> pl.Expr:
    """Return the first of `names` that is not null, per row; null when the table has none of them."""
    present = [pl.col(name) for name in names if name in table.columns]
    return pl.coalesce(present) if present else pl.lit(None, pl.String)


def _split_records(source: Source) -> pl.DataFrame:
    """Return `line` and `text` of every record that is not blank; a quoted cell may span lines."""
    lines = pl.DataFrame({"text": source.text.split("\n")}).with_row_index("line", offset=1)
    quotes = pl.col("text").str.count_matches('"', literal=True)
    lines = lines.with_columns(pl.col("line").cast(pl.Int64), open=quotes.cum_sum() % 2 == 1)
    begins = ~pl.col("open").shift(1, fill_value=False)
    records = (
        lines.group_by(begins.cum_sum().alias("record"), maintain_order=True)
        .agg(pl.col("line").first(), pl.col("text").str.join("\n"), pl.col("open").last())
        .filter(pl.col("text").str.strip_chars() != "")
    )
    unclosed = records.filter(pl.col("open"))
    if unclosed.height:
        message = "a quote in this row is never closed"
        raise source.error(message, line=unclosed["line"][0])
    return records.select("line", "text")


def _check_records(source: Source, records: pl.DataFrame, separator: str, names: list[str]) -> None:
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise source.error(f"header {repeated[0]!r} appears twice", line=records["line"][0])
    mark = re.escape(separator)
    cell = f'(?:"(?:[^"]|"")*"|[^"{mark}]*)'
    stray = records.filter(~pl.col("text").str.contains(f"^{cell}(?:{mark}{cell})*\r?$"))
    if stray.height:
        message = "a quote stands inside an unquoted cell; quote the cell and double the quote"
        raise source.error(message, line=stray["line"][0])
    width = pl.col("text").str.replace_all(_QUOTED, "").str.count_matches(separator, literal=True) + 1
    ragged = records.select("line", width=width).filter(pl.col("width") != len(names))
    if ragged.height:
        message = f"{ragged['width'][0]} cells, the header has {len(names)}"
        raise source.error(message, line=ragged["line"][0])


def _read_json_cells(rows: pl.DataFrame, shown: str) -> pl.DataFrame:
    faults = LineFaults()
    numbers = rows["source_line"].to_list()
    rows = rows.rename({"tool_definitions": "tool_definitions_json"})
    if rows["tool_definitions_json"].null_count() < rows.height:
        cells = rows["tool_definitions_json"].to_list()
        read_cells = _parse_cells(cells, numbers, "tool_definitions", tool_definitions_text, faults)
        rows = rows.with_columns(tool_definitions_json=text_series(read_cells))
    if rows["messages"].null_count() < rows.height:
        cells = {name: rows[name].to_list() for name in ("messages", "query", "response")}
        cells["messages"] = _parse_cells(cells["messages"], numbers, "messages", parse_json, faults)
        histories = unfold_interactions(cells, numbers, faults)
        rows = rows.with_columns(
            query=text_series(cells["query"]),
            response=text_series(cells["response"]),
            messages_json=pl.Series(histories, dtype=pl.String),
        )
    faults.raise_any(shown)
    return rows.drop("messages")


def _parse_cells(
    cells: Sequence[str | None],
    numbers: Sequence[int],
    column: str,
    parse: Callable[[str], JsonValue],
    faults: LineFaults,
) -> list[JsonValue]:
    parsed: list[JsonValue] = []
    for number, cell in zip(numbers, cells, strict=True):
        try:
            parsed.append(parse(cell) if cell else None)
        except ValueError as error:
            parsed.append(None)
            faults.add(number, f"column {column} is text that is not JSON: {error}")
    return parsed


DIALECT = Dialect("csv", "CSV with a header row (.csv)", claims, read)
