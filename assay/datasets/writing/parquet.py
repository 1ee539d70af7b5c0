"""Parquet written: one typed column per field, JSON text where values differ in kind or are nested."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import polars as pl
from polars.io.plugins import register_io_source

from assay.contracts.json_text import JsonValue, Number, dump_json
from assay.datasets.columnar import JSON_COLUMNS
from assay.datasets.writing.columns import Spool, fit_columns, order_columns, read_columns
from assay.datasets.writing.contract import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from assay.datasets.contract import Dataset
    from assay.datasets.writing.contract import Losses

TEXT, FLAG, WHOLE, NUMBER, TEXTS, JSON = "text", "flag", "whole", "number", "texts", "json"
_TYPES: Mapping[str, pl.DataType] = {
    TEXT: pl.String(),
    FLAG: pl.Boolean(),
    WHOLE: pl.Int64(),
    NUMBER: pl.Float64(),
    TEXTS: pl.List(pl.String),
    JSON: pl.String(),
}
_LIMIT = 2**63


def write(dataset: Dataset, out: Path, losses: Losses) -> None:
    """Write a Parquet file: standard names first, then every other field in the order it is met.

    A column of texts, booleans, integers of 64 bits, floats in their shortest form, or lists of texts has
    that type. Where values are of several kinds or nested otherwise, it holds JSON text, and its name is in
    the JSON array that the file's metadata has under `assay.json_columns`. Null and missing are null. What
    was read is kept on disk meanwhile, as a column has one type for all items.
    """
    met: dict[str, set[str]] = defaultdict(set)
    blocks: list[dict[str, str]] = []
    with Spool() as spool:
        for _, columns in read_columns(dataset, losses, open_texts=True):
            kinds = {name: kind for name, values in columns.items() if (kind := _find_kind(values))}
            for name in columns:
                met[name] |= {kinds[name]} if name in kinds else set()
            blocks.append(kinds)
            spool.add(pl.DataFrame({n: _make_series(v, kinds.get(n, TEXT)) for n, v in columns.items()}))
        final: dict[str, str] = {name: _join_kinds(met[name]) for name in order_columns(met)}
        frames = (_conform(frame, kinds, final) for frame, kinds in zip(spool, blocks, strict=True))
        _sink(frames, final, out)


def _find_kind(values: Sequence[JsonValue]) -> str | None:
    """Return the kind that all values share, null apart; None when all are null."""
    types = set(map(type, values)) - {type(None)}
    if not types:
        return None
    kind = _KINDS.get(types.pop(), JSON) if len(types) == 1 else JSON
    is_exact = _EXACT.get(kind)
    return JSON if is_exact and not all(is_exact(value) for value in values if value is not None) else kind


def _fits(value: JsonValue) -> bool:
    return isinstance(value, int) and -_LIMIT <= value < _LIMIT


def _is_shortest(value: JsonValue) -> bool:
    return isinstance(value, Number) and value.text == repr(float(value))


def _is_of_texts(value: JsonValue) -> bool:
    return isinstance(value, list) and set(map(type, value)) <= {str}


_KINDS: Mapping[type, str] = {str: TEXT, bool: FLAG, int: WHOLE, Number: NUMBER, list: TEXTS}
_EXACT: Mapping[str, Callable[[JsonValue], bool]] = {
    WHOLE: _fits,
    NUMBER: _is_shortest,
    TEXTS: _is_of_texts,
}


def _make_series(values: Sequence[JsonValue], kind: str) -> pl.Series:
    if kind == JSON:
        values = [None if value is None else dump_json(value) for value in values]
    return pl.Series(values, dtype=_TYPES[kind])


def _join_kinds(kinds: set[str]) -> str:
    first, *others = kinds or {TEXT}
    return JSON if others else first


def _conform(frame: pl.DataFrame, kinds: Mapping[str, str], final: Mapping[str, str]) -> pl.DataFrame:
    """Return a block with the columns of the whole file."""
    held = frame.to_dict()
    columns = {
        name: _make_series(held[name].to_list(), JSON) if final[name] == JSON != kind else held[name]
        for name, kind in kinds.items()
    }
    return fit_columns(columns, {name: _TYPES[kind] for name, kind in final.items()}, frame.height)


def _sink(frames: Iterator[pl.DataFrame], kinds: Mapping[str, str], out: Path) -> None:
    """Write frames as they come."""
    schema = {name: _TYPES[kind] for name, kind in kinds.items()}

    def produce(*_: object) -> Iterator[pl.DataFrame]:
        return frames  # the plan asks for everything

    nested = [name for name, kind in kinds.items() if kind == JSON]
    metadata = {JSON_COLUMNS: dump_json(nested)} if nested else None
    register_io_source(produce, schema=schema).sink_parquet(out, metadata=metadata)


WRITER = Writer("parquet", (".parquet",), write)
