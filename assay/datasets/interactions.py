"""Message arrays of a row, turned into query, response and history."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeGuard

from assay.contracts.json_text import JsonValue, dump_json, parse_json
from assay.datasets.cells import name_kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.datasets.json_source import LineFaults

Messages: TypeAlias = "list[dict[str, JsonValue]]"
TEXT_ITEMS = ("text", "input_text", "output_text")


def unfold_interactions(
    cells: Mapping[str, list[JsonValue]], numbers: Sequence[int], faults: LineFaults
) -> list[str | None]:
    """Replace message arrays in `query` and `response` by their texts, in place.

    A `messages` array supplies query (its last user message) and response (what the assistant said
    after it; null when the user spoke last). A query array supplies the query in the same way, a
    response array the joined texts of the assistant.

    Args:
        cells: Lists under `messages`, `query` and `response`, one value per row.
        numbers: Line of each row.
        faults: Takes rows that hold both forms, or messages that are none.

    Returns:
        Per row the history as compact JSON: the `messages`, else the query array, else null.
    """
    histories: list[str | None] = [None] * len(numbers)
    queries, responses = cells["query"], cells["response"]
    rows = zip(cells["messages"], queries, responses, strict=True)
    for row, (messages, query, response) in enumerate(rows):
        if messages is not None:
            fault = _find_fault(messages, query, response)
            if fault:
                faults.add(numbers[row], fault)
            elif is_messages(messages):
                queries[row], responses[row] = split_messages(messages)
                histories[row] = dump_json(messages)
            continue
        if is_messages(query):
            queries[row] = split_messages(query)[0]
            histories[row] = dump_json(query)
        if is_messages(response):
            responses[row] = join_texts(response)
    return histories


def is_messages(value: JsonValue) -> TypeGuard[Messages]:
    """Whether a value is a list of message objects, at least one of them with a role."""
    return (
        isinstance(value, list)
        and all(isinstance(message, dict) for message in value)
        and any(isinstance(message, dict) and isinstance(message.get("role"), str) for message in value)
    )


def split_messages(messages: Messages) -> tuple[str | None, str | None]:
    """Return the last user text, and the assistant's text after it (null when it said nothing)."""
    asked = [n for n, message in enumerate(messages) if message.get("role") == "user"]
    if not asked:
        return None, join_texts(messages)
    return message_text(messages[asked[-1]]), join_texts(messages[asked[-1] + 1 :])


def join_texts(messages: Messages) -> str | None:
    """Join what the assistant said, one message per line; null when it said nothing."""
    spoken = [message_text(message) for message in messages if message.get("role") == "assistant"]
    texts = [text for text in spoken if text is not None]
    return "\n".join(texts) if texts else None


def message_text(message: Mapping[str, JsonValue]) -> str | None:
    """Return the text of one message; null when it holds none (tool calls, images)."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [
        item.get("text") for item in content if isinstance(item, dict) and item.get("type") in TEXT_ITEMS
    ]
    spoken = [text for text in texts if isinstance(text, str)]
    return "\n".join(spoken) if spoken else None


def tool_definitions_text(value: JsonValue) -> str | None:
    """Return tool definitions as compact JSON; text is read as JSON.

    Raises:
        ValueError: The text is not JSON.
    """
    if value is None:
        return None
    return dump_json(parse_json(value) if isinstance(value, str) else value)


def _find_fault(messages: JsonValue, query: JsonValue, response: JsonValue) -> str | None:
    both = [name for name, value in (("query", query), ("response", response)) if value is not None]
    if both:
        return f"both messages and {' and '.join(both)}; a row holds one of the two forms"
    if messages == []:
        return "messages is empty; at least one message is expected"
    if not is_messages(messages):
        return f"messages is {name_kind(messages)}, expected a list of messages with role and content"
    return None
