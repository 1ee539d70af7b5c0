"""Rows of test cases out of tables: columns of text, some of it JSON, turned into frames of table ROWS."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.documents import Notice
from assay.contracts.json_text import (
    TOO_DEEP,
    DuplicateKeyError,
    JsonValue,
    NonFiniteError,
    UnstorableError,
    dump_json,
    is_deep,
    parse_json,
    parse_lenient,
)
from assay.datasets.cells import ROW_NAMES, TEXT_COLUMNS
from assay.datasets.faults import Fault
from assay.datasets.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from assay.datasets.faults import Faults
    from assay.datasets.files import Input

JSON_CELLS = ("messages", "tool_calls")  # texts of these are JSON whatever the user declares
_SPOKEN = ("query", "response")  # may be message arrays


class TableRows:
    """The rows of one table file, framed block by block."""

    def __init__(self, file: Input, faults: Faults) -> None:
        """Start before the first row.

        Args:
            file: The file, whose reading says which columns hold JSON.
            faults: Takes rows with a cell that should be JSON and is not.
        """
        self._rows = Rows(file, faults)
        self._faults, self._reading = faults, file.reading

    def frame(
        self, numbers: Sequence[int], table: pl.DataFrame, tokens: Collection[str] = ()
    ) -> pl.DataFrame:
        """Return ROWS for some consecutive rows; bad ones are left out.

        Cells of `messages` and `tool_calls` are read as JSON; in `item_json` they stay text. The columns
        that the reading declares as JSON stand in `item_json` as what they say; an empty one is null.

        Args:
            numbers: 1-based line, or row, of each.
            table: String columns.
            tokens: Columns whose texts are JSON values already.
        """
        declared = {name for name in self._reading.json_columns if name in table.columns} - {*tokens}
        values: dict[str, list[JsonValue]] = {}
        faults: dict[int, str] = {}
        spelt: list[pl.Series] = []
        for name in ({*declared, *JSON_CELLS} & {*table.columns}) - {*tokens}:
            values[name], texts = self._parse(name, table[name].to_list(), numbers, faults)
            if name in declared:
                spelt.append(pl.Series(name, texts, pl.String))
        written, table = table, table.with_columns(spelt)
        if faults:
            good = self._refuse(faults, numbers, encode_objects(written, tokens))
            numbers, table = list(itertools.compress(numbers, good)), table.filter(pl.Series(good))
            values = {name: list(itertools.compress(cells, good)) for name, cells in values.items()}
        item_json = _encode_rows(table, len(numbers), {*tokens, *declared})
        texts, cells = _pick_cells(table, values, tokens)
        frame = self._rows.frame(numbers, item_json, cells)
        if texts.width and frame.height < len(numbers):
            texts = texts.filter(pl.Series(numbers, dtype=pl.Int64).is_in(frame["source_line"].implode()))
        return frame.with_columns(texts.get_columns())

    def note_conversions(self) -> None:
        """Note what was converted, once all rows were framed."""
        self._rows.note_conversions()

    def _parse(
        self, column: str, cells: Sequence[str | None], numbers: Sequence[int], faults: dict[int, str]
    ) -> tuple[list[JsonValue], list[str | None]]:
        """Return the values of JSON texts, and the texts as they may stand in another JSON text."""
        values: list[JsonValue] = [None] * len(cells)
        texts: list[str | None] = [None] * len(cells)
        for row, cell in enumerate(cells):
            if not cell:
                continue
            try:
                values[row], texts[row] = _parse_cell(cell), cell.strip()
            except (DuplicateKeyError, NonFiniteError) as error:
                if self._reading.lenient:
                    self._note_lenient(column, error, numbers[row])
                    values[row] = parse_lenient(cell)
                    texts[row] = dump_json(values[row])
                else:
                    faults[row] = f"column {column} is text that is not JSON: {error}"
            except ValueError as error:
                faults[row] = f"column {column} is text that is not JSON: {error}"
        return values, texts

    def _note_lenient(self, column: str, error: ValueError, number: int) -> None:
        taken = "the last one counts" if isinstance(error, DuplicateKeyError) else "read as null"
        message = f"column {column}: {error}; {taken}"
        self._faults.notices.append(Notice("lenient", message, self._faults.shown, number))

    def _refuse(self, faults: Mapping[int, str], numbers: Sequence[int], written: pl.Series) -> list[bool]:
        """Note the bad rows, each with its text; return which are good."""
        for row, message in sorted(faults.items()):
            self._faults.add_fault(Fault(numbers[row], message, text=written[row]))
        return [row not in faults for row in range(len(numbers))]


def encode_objects(table: pl.DataFrame, tokens: Collection[str]) -> pl.Series:
    """Write each row as a compact JSON object of all columns, in their order.

    Args:
        table: String columns, at least one.
        tokens: Columns whose texts are JSON values; they are inserted as they are. Null is `null` here
            as in the others.
    """
    if not tokens:
        return table.select(pl.struct(pl.all()).struct.json_encode()).to_series()
    parts: list[pl.Series] = []
    for are_tokens, group in itertools.groupby(table.columns, key=lambda name: name in tokens):
        columns = {name: table.get_column(name) for name in group}
        # Methods of a series read a name such as `^a.*$` as a pattern, so each gets a plain one.
        if are_tokens:
            plain = {name: column.alias("cell").fill_null("null") for name, column in columns.items()}
            parts += [dump_json(name) + ":" + column for name, column in plain.items()]
        else:
            written = pl.DataFrame(columns).select(pl.struct(pl.all()).struct.json_encode().alias("cell"))
            parts.append(written.to_series().str.strip_prefix("{").str.strip_suffix("}"))
    return pl.select(pl.concat_str(pl.lit("{"), pl.concat_str(parts, separator=","), pl.lit("}"))).to_series()


def _encode_rows(table: pl.DataFrame, rows: int, tokens: Collection[str]) -> pl.Series:
    """Write each row as `encode_objects` does; a table without columns does not know how many it has."""
    if table.width:
        return encode_objects(table, tokens)
    return pl.repeat("{}", rows, dtype=pl.String, eager=True)


def _parse_cell(cell: str) -> JsonValue:
    value = parse_json(cell)
    if is_deep(f"[{cell}", [value]):  # one level is that of the row
        raise UnstorableError(TOO_DEEP)
    return value


def _drop_blank_tags(cells: dict[str, list[JsonValue]]) -> None:
    if "tags" in cells:
        cells["tags"] = [None if tags == "" else tags for tags in cells["tags"]]


def _find_names(table: pl.DataFrame) -> dict[str, list[str]]:
    """Return the standard columns a table has, each with the names it has for them."""
    present = {
        column: [name for name in names if name in table.columns] for column, names in ROW_NAMES.items()
    }
    return {column: names for column, names in present.items() if names}


def _pick_cells(
    table: pl.DataFrame, values: Mapping[str, list[JsonValue]], tokens: Collection[str]
) -> tuple[pl.DataFrame, dict[str, list[JsonValue]]]:
    """Pick the standard columns; of several names the first that is not null counts.

    Returns:
        The text columns as they are, and the values of those that are read further: tags, tools, seeds,
        messages, and what stands beside messages.
    """
    present = _find_names(table)
    spoken = "messages" in present or "tool_calls" in present
    texts: list[pl.Expr] = []
    cells: dict[str, list[JsonValue]] = {}
    for column, names in present.items():
        heard = column in _SPOKEN and (
            spoken or any(name in tokens and _holds_list(table[name]) for name in names)
        )
        if heard or column not in TEXT_COLUMNS or not values.keys().isdisjoint(names):
            lists = [values.get(name) or _list_cells(table[name], is_json=name in tokens) for name in names]
            cells[column] = [_first_value(row) for row in zip(*lists, strict=True)]
        else:
            texts.append(pl.coalesce(names).alias(column))
    _drop_blank_tags(cells)
    picked = table.select(texts)
    if "id" in picked.columns:
        picked = picked.with_columns(pl.col("id").replace("", None))
    return picked, cells


def _first_value(row: tuple[JsonValue, ...]) -> JsonValue:
    return next((value for value in row if value is not None), None)


def _holds_list(texts: pl.Series) -> bool:
    return texts.str.starts_with("[").any()


def _list_cells(texts: pl.Series, *, is_json: bool) -> list[JsonValue]:
    """Return cells as values; numbers and literals stay the texts they are written as."""
    cells: list[JsonValue] = texts.to_list()
    if not is_json:
        return cells
    return [parse_json(text) if isinstance(text, str) and text[0] in "[{" else text for text in cells]
