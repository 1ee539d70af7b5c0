"""Standard fields: where an evaluator's fields come from when no mapping says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from transforms.templates import Reference
from transforms.values import SAMPLE_PREFIX, encode_text, read_json, read_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from transforms.values import Found

Source: TypeAlias = "str | Reference"  # a column of ITEMS or SAMPLES, or a place in the source row


def _item(*path: str) -> Reference:
    return Reference("item", path)


SOURCES: dict[str, tuple[Source, ...]] = {
    "query": ("query",),
    "response": (f"{SAMPLE_PREFIX}output_text",),
    "response_b": (f"{SAMPLE_PREFIX}other_text", _item("response_b")),
    "expected_response": ("expected_response",),
    "context": ("context",),
    "messages": ("messages_json",),
    "tool_calls": (f"{SAMPLE_PREFIX}tool_calls_json",),
    "tool_definitions": ("tool_definitions_json",),
    "output_items": (f"{SAMPLE_PREFIX}output_items_json",),
    "retrieval": (f"{SAMPLE_PREFIX}retrieval_json", _item("diagnostics", "retrieval_executions")),
    "tool_evidence": (_item("diagnostics", "tool_calls"),),
    "retrieved_documents": (_item("retrieved_documents"),),
    "retrieval_ground_truth": (_item("retrieval_ground_truth"),),
    "actions": (_item("actions"), f"{SAMPLE_PREFIX}output_items_json", "messages_json"),
    "expected_actions": (_item("expected_actions"), "expected_response"),
    "latency_ms": (f"{SAMPLE_PREFIX}latency_ms",),
    "cost_usd": (f"{SAMPLE_PREFIX}cost_usd",),
    "item": ("item_json",),
}
"""Field to its sources, the first that has a value wins."""

MAPPED_JSON = frozenset({"messages", "tool_calls", "tool_definitions"})  # mapped, they have to be lists


def list_sources(field: str) -> tuple[Source, ...]:
    """Return the sources of a field; a field in a field, `part.response`, has those of its last name."""
    return SOURCES[field.rpartition(".")[2]]


def read_defaults(rows: pl.DataFrame, fields: Iterable[str], *, typed: bool) -> dict[str, pl.Expr]:
    """Return the standard value of every field: as text, or typed as JSON text.

    Args:
        rows: ITEMS columns, and SAMPLES columns under `SAMPLE_PREFIX`; absent ones stand for nulls.
        fields: Fields to fill.
        typed: Whether values keep their type: a text becomes a JSON string.

    Returns:
        Field to an expression over `rows`; null where no source has a value, or JSON null.
    """
    asked = {field: list_sources(field) for field in fields}
    places = [source for sources in asked.values() for source in sources if isinstance(source, Reference)]
    read = read_json if typed else read_texts
    found = read(rows, list(dict.fromkeys(places))) if places else {}
    return {
        field: pl.coalesce([_fill(source, rows, found, typed=typed) for source in sources])
        for field, sources in asked.items()
    }


def _fill(source: Source, rows: pl.DataFrame, found: Mapping[Reference, Found], *, typed: bool) -> pl.Expr:
    if isinstance(source, Reference):
        values = found[source].values
        return pl.lit(values.set(values == "null", None) if typed else values)
    if source not in rows.columns:
        return pl.lit(None, pl.String)
    column = pl.col(source)
    if rows.schema[source] != pl.String:
        return column.cast(pl.String)  # a number is its own JSON text
    if typed and not source.endswith("_json"):
        return pl.when(column.is_not_null()).then(encode_text(column))
    return column
