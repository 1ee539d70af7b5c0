"""Answer files: responses by item id, for scoring what was produced elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from assay.contracts.json_text import dump_json, parse_json
from assay.datasets import columnar, csv_files, csv_records, foundry
from assay.datasets.cells import name_kind, text_series
from assay.datasets.faults import Fault, Faults
from assay.datasets.files import ByteStream, Input, plain_suffix, read_head
from assay.datasets.json_lines import parse_block, read_blocks
from assay.datasets.json_members import cut_members
from assay.datasets.plain_files import open_plain
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from assay.contracts.arrow import ArrowForm
    from assay.datasets.json_lines import Block

NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "testId", "item_id"),
    "turn": ("turn",),
    "trial": ("trial",),
    "response": ("response",),
    "output_items": ("output_items",),
}
KEY = ("id", "turn", "trial")
COLUMNS = (*KEY, "response", "output_items_json", "source_line")
_WHOLE = r"^\s*(\d{1,9})(?:\.0+)?\s*$"
_CELLS = {"line": pl.Int64(), "index": pl.Int64(), **dict.fromkeys(NAMES, pl.String())}
_ACCEPTED = (*csv_files.SUFFIXES, *foundry.SUFFIXES, ".json")
_FORMS: Mapping[str, ArrowForm] = {
    **dict.fromkeys(columnar.PARQUET_SUFFIXES, "Parquet"),
    **dict.fromkeys(columnar.ARROW_SUFFIXES, "Arrow IPC"),
}


class Answers(NamedTuple):
    """The answers of a file.

    Attributes:
        table: `id`, `turn` and `trial` (Int32, null when not given), `response`, `output_items_json`,
            `source_line` (null for files without lines).
        sha256: Hash of the file's bytes after decompression.
    """

    table: pl.DataFrame
    sha256: str


def read_answers(path: str) -> Answers:
    """Read answers from CSV, TSV, JSON lines, a JSON list, Parquet or Arrow IPC, plain or packed.

    Args:
        path: The file, as the user named it.

    Returns:
        The answers in file order. Columns other than those of `NAMES` are ignored.

    Raises:
        InputError: A row without id, or with neither response nor output_items; a turn or trial that
            is no whole number; output_items that are no JSON list; two rows for one id, turn and trial.
    """
    file = Input(Path(path), path)
    suffix = plain_suffix(file.path)
    faults = Faults(path, "row" if suffix in _FORMS else "line")
    if suffix in _FORMS:
        frames, digest = _read_columns(file, _FORMS[suffix], faults)
    elif suffix in _ACCEPTED:
        stream = ByteStream(file)
        frames, digest = _choose_reader(file, suffix)(stream, faults), lambda: stream.sha256
    else:
        raise InputError(f"accepted: {', '.join((*_ACCEPTED, *_FORMS))}", path=path)
    cells = pl.concat([pl.DataFrame(schema=_CELLS), *frames])
    table = _check_answers(cells, faults)
    faults.raise_any()
    if table.is_empty():
        raise file.no_rows
    return Answers(table, digest())


def _choose_reader(file: Input, suffix: str) -> Callable[[ByteStream, Faults], Iterator[pl.DataFrame]]:
    if suffix in csv_files.SUFFIXES:
        return _read_csv
    is_list = suffix == ".json" and not read_head(file).lstrip().startswith(b"{")
    return _read_list if is_list else _read_json_lines


def _read_csv(stream: ByteStream, faults: Faults) -> Iterator[pl.DataFrame]:
    for table in csv_records.read_tables(stream, faults):
        yield _pick_columns(table.cells, table.numbers)


def _read_json_lines(stream: ByteStream, faults: Faults) -> Iterator[pl.DataFrame]:
    for block in read_blocks(stream, NAMES, faults):
        yield _pick_columns(_frame_cells(block), pl.Series(block.numbers, dtype=pl.Int64))


def _read_list(stream: ByteStream, faults: Faults) -> Iterator[pl.DataFrame]:
    numbered = Faults(faults.shown)
    for members in cut_members(stream):
        block = parse_block(members.numbers, members.texts, NAMES, numbered, stream.file.reading)
        members.pass_on(numbered, faults)
        numbers = pl.Series(block.numbers, dtype=pl.Int64)
        lines = pl.Series(members.lines, dtype=pl.Int64).gather(numbers - members.first)
        yield _pick_columns(_frame_cells(block), lines, numbers - 1)


def _read_columns(
    file: Input, form: ArrowForm, faults: Faults
) -> tuple[Iterator[pl.DataFrame], Callable[[], str]]:
    plain = open_plain(file)
    wanted = [name for names in NAMES.values() for name in names]
    tables = columnar.read_tables(file, plain, form, faults, names=wanted)
    return (_pick_columns(texts.table, numbers) for numbers, texts in tables), plain.digest


def _frame_cells(block: Block) -> pl.DataFrame:
    return pl.DataFrame({name: text_series(cells) for name, cells in block.cells.items()})


def _pick_columns(table: pl.DataFrame, lines: pl.Series, indexes: pl.Series | None = None) -> pl.DataFrame:
    """Return `_CELLS` of a block: of several names the first that is not null counts."""
    nulls = pl.Series([None]).new_from_index(0, len(lines))
    columns = {"line": lines, "index": nulls if indexes is None else indexes}
    for column, names in NAMES.items():
        present = [table.get_column(name) for name in names if name in table.columns]
        columns[column] = pl.select(pl.coalesce(present)).to_series() if present else nulls
    return pl.DataFrame(columns, schema=_CELLS)


def _check_answers(cells: pl.DataFrame, faults: Faults) -> pl.DataFrame:
    """Return the table of answers; what is wrong with them is noted."""
    cells = cells.with_columns(pl.col(*KEY).replace("", None))
    place = pl.coalesce(pl.format("[{}]", "index"), pl.format(faults.unit + " {}", "line"))
    table = cells.with_columns(pl.col("turn", "trial").str.extract(_WHOLE).cast(pl.Int32), place=place)
    table = table.with_columns(first=pl.col("place").first().over("id", *_or_zero("turn", "trial")))
    odd = [
        pl.when(cells[name].is_not_null() & table[name].is_null()).then(
            pl.format(f"{name} '{{}}' is not a whole number", cells[name])
        )
        for name in ("turn", "trial")
    ]
    message = pl.coalesce(
        pl.when(pl.col("id").is_null()).then(pl.lit("no id; accepted: id, testId, item_id")),
        pl.when(pl.col("response").is_null() & pl.col("output_items").is_null()).then(
            pl.lit("neither response nor output_items")
        ),
        *odd,
        pl.when(pl.col("first") != pl.col("place")).then(
            pl.format("a second answer for id '{}', the first is in {}", "id", "first")
        ),
    )
    bad = table.select("line", "index", message=message).filter(pl.col("message").is_not_null())
    for line, index, text in bad.iter_rows():
        faults.add_fault(_fault(line, index, text))
    items = [
        _check_items(text, line, index, faults)
        for text, line, index in table.select("output_items", "line", "index").iter_rows()
    ]
    source_line = pl.col("line") if faults.unit == "line" else pl.lit(None, pl.Int64)
    return table.with_columns(
        source_line=source_line, output_items_json=pl.Series(items, dtype=pl.String)
    ).select(COLUMNS)


def _or_zero(*names: str) -> list[pl.Expr]:
    """A turn or trial that is not given is the first, so both spellings are the same answer."""
    return [pl.col(name).fill_null(0) for name in names]


def _fault(line: int, index: int | None, message: str) -> Fault:
    return Fault(line, message, pointer="" if index is None else f"[{index}]", row=index)


def _check_items(text: str | None, line: int, index: int | None, faults: Faults) -> str | None:
    """Return output items as compact JSON; what is no list of them is noted."""
    if text is None:
        return None
    try:
        items = parse_json(text)
    except ValueError as error:
        faults.add_fault(_fault(line, index, f"output_items is text that is not JSON: {error}"))
        return None
    if isinstance(items, list):
        return dump_json(items)
    faults.add_fault(_fault(line, index, f"output_items is {name_kind(items)}, expected a list"))
    return None
