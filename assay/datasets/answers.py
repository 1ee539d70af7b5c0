"""Answer files: responses by item id, for scoring what was produced elsewhere."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import JsonValue, dump_json, parse_json
from assay.datasets.cells import name_kind, text_series
from assay.datasets.csv_files import parse_table, pick_column
from assay.datasets.files import plain_suffix, read_bytes, read_source
from assay.datasets.json_source import LineFaults, parse_lines, pick_columns
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def read_answers(path: str) -> pl.DataFrame:
    """Read answers from CSV, JSON lines or Parquet.

    Args:
        path: The file, as the user named it; CSV and JSON lines may be compressed.

    Returns:
        `id`, `turn` and `trial` (Int32, null when not given), `response`, `output_items_json`,
        `source_line` (null for Parquet). Other columns are ignored.

    Raises:
        InputError: A row without id, or with neither response nor output_items; a turn or trial that
            is no whole number; output_items that are no JSON list; two rows for one id, turn and trial.
    """
    file = Path(path)
    match plain_suffix(file):
        case ".csv":
            cells, lines = _read_csv(file, path)
        case ".jsonl" | ".ndjson":
            cells, lines = _read_json_lines(file, path)
        case ".parquet":
            cells, lines = _read_parquet(file, path)
        case _:
            raise InputError("accepted: .csv, .jsonl, .ndjson, .parquet", path=path)
    if cells.is_empty():
        raise InputError(f"no rows in {file.name}", path=path)
    places = lines if lines is not None else pl.int_range(1, cells.height + 1, dtype=pl.Int64, eager=True)
    return _check_answers(cells.with_columns(place=places), path, "row" if lines is None else "line")


def _read_csv(file: Path, shown: str) -> tuple[pl.DataFrame, pl.Series]:
    table, lines = parse_table(read_source(file, shown=shown))
    return _pick_columns(table), lines


def _read_json_lines(file: Path, shown: str) -> tuple[pl.DataFrame, pl.Series]:
    faults = LineFaults()
    frames: list[pl.DataFrame] = []
    lines: list[int] = []
    for batch in parse_lines(read_source(file, shown=shown), faults):
        blank: list[JsonValue] = [None] * len(batch.values)
        picked = pick_columns(batch, NAMES)
        frames.append(pl.DataFrame({column: text_series(picked.get(column, blank)) for column in NAMES}))
        lines.extend(batch.numbers)
    faults.raise_any(shown)
    return pl.concat(frames) if frames else pl.DataFrame(), pl.Series(lines, dtype=pl.Int64)


def _read_parquet(file: Path, shown: str) -> tuple[pl.DataFrame, None]:
    data = read_bytes(file, shown=shown)
    if not data:
        return pl.DataFrame(), None
    try:
        table = pl.read_parquet(io.BytesIO(data))
        wanted = [name for names in NAMES.values() for name in names if name in table.columns]
        return _pick_columns(table.with_columns(_text_column(table[name]) for name in wanted)), None
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        raise InputError(f"cannot be read as Parquet: {error}", path=shown) from error


def _pick_columns(table: pl.DataFrame) -> pl.DataFrame:
    if table.is_empty():
        return pl.DataFrame()
    return table.with_columns(**{column: pick_column(table, names) for column, names in NAMES.items()})


def _text_column(column: pl.Series) -> pl.Series:
    """Return a Parquet column as text; anything but text and integers by the rules of `text_of`."""
    if column.dtype.is_integer() or isinstance(column.dtype, pl.String | pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    return text_series(column.to_list()).alias(column.name)


def _check_answers(cells: pl.DataFrame, shown: str, unit: str) -> pl.DataFrame:
    cells = cells.with_columns(pl.col(*KEY).replace("", None))
    table = cells.with_columns(pl.col("turn", "trial").str.extract(_WHOLE).cast(pl.Int32))
    table = table.with_columns(first=pl.col("place").first().over("id", *_or_zero("turn", "trial")))
    faults = LineFaults(unit)
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
            pl.format(f"a second answer for id '{{}}', the first is in {unit} {{}}", "id", "first")
        ),
    )
    for place, text in table.select("place", message.alias("message")).drop_nulls().iter_rows():
        faults.add(place, text)
    items = _check_items(cells["output_items"].to_list(), cells["place"].to_list(), faults)
    faults.raise_any(shown)
    source_line = pl.col("place") if unit == "line" else pl.lit(None, pl.Int64)
    return table.with_columns(
        source_line=source_line, output_items_json=pl.Series(items, dtype=pl.String)
    ).select(COLUMNS)


def _or_zero(*names: str) -> list[pl.Expr]:
    """A turn or trial that is not given is the first, so both spellings are the same answer."""
    return [pl.col(name).fill_null(0) for name in names]


def _check_items(texts: Sequence[str | None], places: Sequence[int], faults: LineFaults) -> list[str | None]:
    checked: list[str | None] = [None] * len(texts)
    for row, text in enumerate(texts):
        if text is None:
            continue
        try:
            items = parse_json(text)
        except ValueError as error:
            faults.add(places[row], f"output_items is text that is not JSON: {error}")
            continue
        if isinstance(items, list):
            checked[row] = dump_json(items)
        else:
            faults.add(places[row], f"output_items is {name_kind(items)}, expected a list")
    return checked
