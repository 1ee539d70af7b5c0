"""Canonical messages in the form of chat completions, and answers as canonical messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.json_text import dump_json, parse_json
from assay.datasets.message_items import TEXT_TYPES
from assay.datasets.messages import (
    Canonical,
    canonical_messages,
    find_answer,
    pick_calls,
    read_answer,
    read_message,
)

if TYPE_CHECKING:
    from assay.contracts.chat import Message
    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

_MESSAGE_KEYS = ("role", "content", "name")  # others the API refuses, or they belong to one role


def to_chat_messages(messages_json: str) -> list[Message]:
    """Return the messages up to and including the last one of the user, in chat-completions form.

    Text items are joined by newlines, tool calls get string arguments, every tool result becomes a
    tool message of its own call. Messages lose keys the API does not know; unknown items (images) of
    the user stay as they are, those of the assistant (reasoning) are left out.

    Args:
        messages_json: JSON list of messages in any form that datasets may have.

    Returns:
        Empty when no message is the user's.
    """
    messages = _read_messages(messages_json)
    kept = messages[: find_answer(messages)]
    return [converted for message in kept for converted in _convert_message(message)]


def dump_items(text: str, tool_calls_json: str | None) -> str:
    """Write an answer as a JSON list with one canonical message of the assistant."""
    calls = _list_objects(parse_json(tool_calls_json)) if tool_calls_json else []
    said: list[JsonObject] = [{"type": "text", "text": text}] if text or not calls else []
    return dump_json([{"role": "assistant", "content": [*said, *calls]}])


def read_text(items_json: str) -> str | None:
    """Return the text of the assistant's messages or items, joined by newlines.

    Returns:
        Empty when there are only tool calls; None when there is neither text nor call, or no JSON.
    """
    return read_answer(_read_messages(items_json))


def list_calls(items_json: str) -> str | None:
    """Return the tool calls among the assistant's items as a JSON list; None when there are none."""
    if "_call" not in items_json:  # in every name that a call may have, and quicker told than parsed
        return None
    calls = pick_calls(_read_messages(items_json))
    return dump_json(calls) if calls else None


def _read_messages(text: str) -> list[JsonObject]:
    """Return JSON as canonical messages; what is neither a message nor an item is left out."""
    try:
        entries = _list_objects(parse_json(text))
    except ValueError:
        return []
    read = canonical_messages([*entries])
    if isinstance(read, Canonical):
        return read.messages
    singles = [canonical_messages([entry]) for entry in entries]
    return [message for one in singles if isinstance(one, Canonical) for message in one.messages]


def _convert_message(message: JsonObject) -> list[Message]:
    """Return one canonical message as the API takes it; none when it holds nothing the API knows."""
    known: JsonObject = {name: message[name] for name in _MESSAGE_KEYS if name in message}
    items = known.get("content")
    if message["role"] == "tool":
        return [_convert_result(message)]
    if message["role"] == "assistant":
        text, calls = read_message(message), [_convert_call(call) for call in pick_calls([message])]
        if calls:
            return [{**known, "content": text, "tool_calls": calls}]
        return [] if text is None else [{**known, "content": text}]
    return [{**known, "content": _join_or_keep(message, items)} if isinstance(items, list) else known]


def _join_or_keep(message: JsonObject, items: list[JsonValue]) -> JsonValue:
    """Join a content that is text alone; with other items among it, keep the list."""
    objects = _list_objects(items)
    if all(item.get("type") in TEXT_TYPES for item in objects):
        return read_message(message) or ""
    return [{**item, "type": "text"} if item.get("type") in TEXT_TYPES else item for item in objects]


def _convert_call(item: JsonObject) -> JsonValue:
    arguments = item.get("arguments")
    written = arguments if isinstance(arguments, str) else dump_json({} if arguments is None else arguments)
    function: JsonObject = {"name": item.get("name"), "arguments": written}
    return {"id": _find_call_id(item), "type": "function", "function": function}


def _convert_result(message: JsonObject) -> Message:
    texts: list[str] = []
    for item in _list_objects(message.get("content")):
        value = item.get("tool_result", item)
        texts.append(value if isinstance(value, str) else dump_json(value))
    return {"role": "tool", "tool_call_id": _find_call_id(message), "content": "\n".join(texts)}


def _find_call_id(entry: JsonObject) -> JsonValue:
    """Return the id of a call; old forms have none, their results name the function called."""
    return entry.get("tool_call_id") or f"call_{entry.get('name')}"


def _list_objects(value: JsonValue) -> list[JsonObject]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
