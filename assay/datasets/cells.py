"""JSON values as cells of a table: text columns, tags, and rows framed to the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import JsonValue, dump_json
from assay.contracts.tables import ROWS, conform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Column of ROWS to the names it may have in a file; the first that is not null counts.
STANDARD_NAMES: Mapping[str, tuple[str, ...]] = {
    "id": ("id", "testId", "test_case_id"),
    "query": ("query", "prompt"),
    "response": ("response",),
    "expected_response": ("ground_truth", "expected_response"),
    "context": ("context",),
    "name": ("name",),
    "category": ("category", "test_case_category"),
    "notes": ("notes",),
    "tags": ("tags",),
    "messages": ("messages",),
    "tool_definitions": ("tool_definitions",),
    "tool_calls": ("tool_calls",),
}
SEED_KEYS = (
    "test_case_id",
    "test_case_description",
    "test_case_category",
    "desired_num_turns",
    "simulation_configuration",
)
ROW_NAMES = {**STANDARD_NAMES, **{key: (key,) for key in SEED_KEYS}}
TEXT_COLUMNS = ("id", "query", "response", "expected_response", "context", "name", "category", "notes")


def name_kind(value: object) -> str:
    """Name the kind of a JSON value for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case _:
            return "an object"


def text_of(value: JsonValue) -> str | None:
    """Return a value as text: text as it is, null as null, anything else as compact JSON."""
    return value if value is None or isinstance(value, str) else dump_json(value)


def text_series(values: Sequence[JsonValue]) -> pl.Series:
    """Return values as a String column, by the rules of `text_of`."""
    try:
        return pl.Series(values, dtype=pl.String, strict=True)
    except (TypeError, OverflowError):  # not texts alone
        return pl.Series([text_of(value) for value in values], dtype=pl.String)


def tag_list(value: JsonValue) -> list[str] | None:
    """Return tags given as a list or as one text; null stays null, empty ones are dropped."""
    if value is None:
        return None
    entries = value if isinstance(value, list) else [value]
    return [text for text in map(text_of, entries) if text]


def frame_rows(records: Sequence[Mapping[str, object]]) -> pl.DataFrame:
    """Return records as table ROWS; a column that a record lacks is null."""
    return conform(pl.DataFrame(records, schema=dict(ROWS.columns)), ROWS)
