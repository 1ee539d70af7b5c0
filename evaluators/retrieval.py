"""Retrieval executions: what an agent looked for and what it was given, read from JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluators.json_fields import read_field, read_objects, read_text, read_whole, refuse_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.json_text import JsonValue

_QUERIES = "a list of objects with queryString, or of texts"
_HITS = ("retrievalHits of retrieval", "a list of objects with rank, webUrl and extracts")
_EXTRACTS = ("extracts of a hit of retrieval", "a list of objects with text")


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a retrieval.

    Attributes:
        rank: Its rank, 1 is the best; where none is given, its place in the list of its execution.
        url: Where it lies; None when not told.
        extracts: Its text snippets.
    """

    rank: int
    url: str | None
    extracts: Sequence[str]


def read_executions(text: str | None, capability: str | None) -> list[dict[str, JsonValue]]:
    """Return the executions of a capability.

    Args:
        text: JSON array of executions (`capability`, `queries`, `retrievalHits`); None: there was none.
        capability: Name, spelt exactly; None takes every execution.

    Raises:
        CallError: `bad_field`, when the text is no JSON array of objects, or a capability no text.
    """
    accepted = "a list of objects with capability, queries and retrievalHits"
    executions = read_objects(read_field(text, "retrieval"), "retrieval", accepted)
    names = [read_text(each.get("capability"), "capability of retrieval") for each in executions]
    return [
        each for each, name in zip(executions, names, strict=True) if capability is None or name == capability
    ]


def list_queries(executions: Sequence[dict[str, JsonValue]]) -> list[str]:
    """Return every query text, in order; a query may also be its text alone.

    Raises:
        CallError: `bad_field`, when queries are not a list of these.
    """
    queries = [_read_query(query) for each in executions for query in _list_entries(each.get("queries"))]
    return [query for query in queries if query is not None]


def _list_entries(value: JsonValue) -> list[JsonValue]:
    if not isinstance(value, list | None):
        raise refuse_value("queries of retrieval", value, _QUERIES)
    return value or []


def _read_query(query: JsonValue) -> str | None:
    if isinstance(query, str):
        return query
    if not isinstance(query, dict):
        raise refuse_value("a query of retrieval", query, _QUERIES)
    return read_text(query.get("queryString"), "queryString of a query of retrieval")


def list_hits(executions: Sequence[dict[str, JsonValue]], max_rank: int) -> list[Hit]:
    """Return the hits up to a rank, best first; equal ranks stay in order.

    Raises:
        CallError: `bad_field`, when hits are not of their form.
    """
    hits = [
        _read_hit(hit, place)
        for each in executions
        for place, hit in enumerate(read_objects(each.get("retrievalHits"), *_HITS), 1)
    ]
    return sorted((hit for hit in hits if hit.rank <= max_rank), key=lambda hit: hit.rank)


def _read_hit(hit: dict[str, JsonValue], place: int) -> Hit:
    rank = read_whole(hit.get("rank"), "rank of a hit of retrieval")
    extracts = read_objects(hit.get("extracts"), *_EXTRACTS)
    texts = [read_text(extract.get("text"), "text of an extract of retrieval") for extract in extracts]
    return Hit(
        rank=place if rank is None else rank,
        url=read_text(hit.get("webUrl"), "webUrl of a hit of retrieval"),
        extracts=[text for text in texts if text is not None],
    )
