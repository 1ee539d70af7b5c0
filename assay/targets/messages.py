"""Messages in Foundry form (content items) and in chat-completions form, and the way between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.json_text import dump_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.contracts.chat import Message
    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

_MESSAGE_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal")  # others are refused
_TEXT_TYPES = frozenset({"text", "input_text", "output_text"})
_CALL_TYPES = frozenset({"tool_call", "function_call", "openapi_call"})
_RESULT_TYPES = frozenset({"tool_result", "function_call_output", "openapi_call_output"})


def to_chat_messages(messages_json: str) -> list[Message]:
    """Return the messages up to and including the last one of the user, in chat-completions form.

    Text items are joined by newlines, tool calls get string arguments, every tool result becomes a
    tool message of its own call. Messages in chat-completions form lose keys the API does not know;
    unknown items (images) stay as they are.

    Args:
        messages_json: JSON list of messages.

    Returns:
        Empty when no message is the user's.
    """
    messages = _list_objects(parse_json(messages_json))
    ends = [place + 1 for place, message in enumerate(messages) if message.get("role") == "user"]
    kept = messages[: ends[-1]] if ends else []
    return [converted for message in kept for converted in _convert_message(message)]


def dump_items(text: str, tool_calls_json: str | None) -> str:
    """Write an answer as a JSON list with one Foundry assistant message."""
    calls = _list_objects(parse_json(tool_calls_json)) if tool_calls_json else []
    said: list[JsonObject] = [{"type": "text", "text": text}] if text or not calls else []
    return dump_json([{"role": "assistant", "content": [*said, *calls]}])


def read_text(items_json: str) -> str | None:
    """Return the text of the assistant's messages or items, joined by newlines.

    Returns:
        Empty when there are only tool calls; None when there is neither text nor call, or no JSON.
    """
    items = _list_items(items_json)
    texts = list(_list_texts(items))
    return "\n".join(texts) if texts or _select(items, _CALL_TYPES) else None


def list_calls(items_json: str) -> str | None:
    """Return the tool calls among the assistant's items as a JSON list; None when there are none."""
    calls = _select(_list_items(items_json), _CALL_TYPES)
    return dump_json(calls) if calls else None


def _convert_message(message: JsonObject) -> list[Message]:
    """Return one message as the API takes it; an item without a message is wrapped into one."""
    if "role" not in message:
        return _convert_item(message)
    known: JsonObject = {name: message[name] for name in _MESSAGE_KEYS if name in message}
    items = known.get("content")
    if not isinstance(items, list):
        return [known]
    objects = _list_objects(items)
    if message["role"] == "tool":
        return _convert_results(message, objects)
    calls = _select(objects, _CALL_TYPES) if message["role"] == "assistant" else []
    if not calls:
        return [{**known, "content": _join_or_keep(objects)}]
    text = "\n".join(_list_texts(objects)) or None
    return [{**known, "content": text, "tool_calls": [_convert_call(item) for item in calls]}]


def _convert_item(item: JsonObject) -> list[Message]:
    roles = {"assistant": _CALL_TYPES, "tool": _RESULT_TYPES}
    role = next((role for role, types in roles.items() if item.get("type") in types), None)
    return _convert_message({"role": role, "content": [item]}) if role else []


def _join_or_keep(objects: list[JsonObject]) -> JsonValue:
    """Join a content that is text alone; with other items among it, keep the list."""
    if len(_select(objects, _TEXT_TYPES)) == len(objects):
        return "\n".join(_list_texts(objects))
    return [{**item, "type": "text"} if item.get("type") in _TEXT_TYPES else item for item in objects]


def _convert_call(item: JsonObject) -> JsonValue:
    arguments = item.get("arguments")
    written = arguments if isinstance(arguments, str) else dump_json({} if arguments is None else arguments)
    function: JsonObject = {"name": item.get("name"), "arguments": written}
    return {"id": _find_call_id(item), "type": "function", "function": function}


def _convert_results(message: JsonObject, objects: list[JsonObject]) -> list[Message]:
    """Return one tool message per call; items that name no call belong to that of the message."""
    by_call: dict[JsonValue, list[str]] = {}
    for item in objects:
        call_id = _find_call_id(item) or _find_call_id(message)
        key = "output" if "output" in item else str(item.get("type"))
        value = item.get("text") if item.get("type") in _TEXT_TYPES else item.get(key)
        by_call.setdefault(call_id, []).append(value if isinstance(value, str) else dump_json(value))
    return [
        {"role": "tool", "tool_call_id": call_id, "content": "\n".join(texts)}
        for call_id, texts in by_call.items()
    ]


def _find_call_id(entry: JsonObject) -> JsonValue:
    return entry.get("tool_call_id") or entry.get("call_id")


def _list_items(items_json: str) -> list[JsonObject]:
    """Return the content items of assistant messages, and items that stand without a message."""
    try:
        entries = _list_objects(parse_json(items_json))
    except ValueError:
        return []
    items: list[JsonObject] = []
    for entry in entries:
        content = entry.get("content")
        if "role" not in entry and "type" in entry and entry["type"] != "message":
            items.append(entry)
        elif entry.get("role", "assistant") == "assistant":
            plain = isinstance(content, str)
            items.extend([{"type": "text", "text": content}] if plain else _list_objects(content))
    return items


def _list_objects(value: JsonValue) -> list[JsonObject]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _list_texts(items: Iterable[JsonObject]) -> Iterable[str]:
    return (text for item in _select(items, _TEXT_TYPES) if isinstance(text := item.get("text"), str))


def _select(items: Iterable[JsonObject], types: frozenset[str]) -> list[JsonObject]:
    return [item for item in items if item.get("type") in types]
