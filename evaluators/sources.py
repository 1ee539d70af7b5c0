"""Sources: the texts that an answer rests on, read from what was retrieved, the context, or tool results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from assay.contracts.json_text import parse_json
from evaluators.output_sides import write_text
from evaluators.retrieval import list_hits, read_executions
from evaluators.tool_trace import read_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

SOURCE_FIELDS = ("retrieval", "context", "output_items")


def read_sources(fields: Fields) -> tuple[str, list[str]]:
    """Return the field that holds sources, and their texts; blank ones are left out.

    Args:
        fields: `retrieval` and `output_items` as JSON, and `context`; the first that has any wins.

    Returns:
        `retrieval`, `context` or `tool_results`, and the texts; `none` and nothing where there is none.

    Raises:
        CallError: `bad_field`, when a field is not of its form.
    """
    found = {
        "retrieval": list_extracts(read_executions(fields["retrieval"], None)),
        "context": split_context(fields["context"]),
        "tool_results": [
            write_text(step.result) for step in read_trace({**fields, "tool_calls": None}).results
        ],
    }
    kept = {name: [text for text in texts if text.strip()] for name, texts in found.items()}
    name = next((name for name, texts in kept.items() if texts), "none")
    return name, kept.get(name, [])


def list_extracts(executions: Sequence[dict[str, JsonValue]]) -> list[str]:
    """Return the extracts of all hits, best first.

    Raises:
        CallError: `bad_field`, when hits are not of their form.
    """
    return [text for hit in list_hits(executions, sys.maxsize) for text in hit.extracts if text.strip()]


def split_context(context: str | None) -> list[str]:
    """Return the entries of a context that is a JSON list, else the whole of it; none where it is blank."""
    if context is None or not context.strip():
        return []
    if context.lstrip().startswith("["):
        try:
            value = parse_json(context)
        except ValueError:
            return [context]
        return [write_text(each) for each in value] if isinstance(value, list) else [context]
    return [context]
