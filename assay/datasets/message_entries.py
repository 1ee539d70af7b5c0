"""One entry of a message array in canonical form, whichever of the four forms it has."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from assay.datasets.cells import name_kind
from assay.datasets.message_items import (
    CALL_TYPES,
    CHAT_CALLS,
    CHAT_RESULT,
    OTEL,
    RESULT_TYPES,
    TEXT_TYPES,
    JsonObject,
    Placed,
    place_call,
    place_item,
    place_loose,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.contracts.json_text import JsonValue


def read_entry(entry: JsonValue, notes: list[str]) -> list[JsonObject] | Placed | str:
    """Bring one entry of a message array into canonical form.

    Args:
        entry: The entry.
        notes: Takes the name of every conversion.

    Returns:
        Its messages: one, or several when results are taken out of it; or the item it is, which
        belongs to a message yet to be made; or what is wrong, to be put behind the entry's name.
    """
    if not isinstance(entry, dict):
        return f" is {name_kind(entry)}, expected an object with role and content"
    role, kind = entry.get("role"), entry.get("type")
    if role is not None and not isinstance(role, str):
        return f".role is {name_kind(role)}, expected text such as user or assistant"
    if isinstance(kind, str) and kind != "message":
        bare = "content" not in entry and "parts" not in entry
        known = kind in CALL_TYPES or kind in RESULT_TYPES or kind in TEXT_TYPES
        if role is None or (known and bare):
            item = {key: value for key, value in entry.items() if key != "role"}
            return place_loose(item, kind, role, notes)
    if kind == "message":
        notes.append("Responses message")
        untyped = {key: value for key, value in entry.items() if key != "type"}
        return _read_message(untyped, role or "assistant", notes)
    if role is None:
        return " has neither role nor type; a message has role and content, an item has a type"
    return _read_message(entry, role, notes)


def gather_items(items: Iterable[Placed]) -> list[JsonObject]:
    """Return messages of items; neighbours with one role and one call share a message."""
    runs = groupby(items, key=lambda placed: (placed.role, placed.call_id))
    return [_build_message(role, call_id, [placed.item for placed in run]) for (role, call_id), run in runs]


def _read_message(entry: JsonObject, role: str, notes: list[str]) -> list[JsonObject] | str:
    fault = _find_fault(entry, role)
    if fault:
        return fault
    if role == "function":
        role = "tool"
        notes.append("chat-completions function message")
    used = {"role", "content", "tool_call_id"}
    call_id = entry.get("tool_call_id")
    if call_id is None and role == "tool":
        call_id = entry.get("call_id")
        used.add("call_id")
    content = entry.get("content")
    if content is None and isinstance(entry.get("parts"), list):
        content = entry["parts"]
        used.add("parts")
        notes.append(OTEL)
    body = _read_content(content, role, notes)
    said = _read_sayings(entry, role, used, notes)
    if said:
        body = [*_list_body(body, role), *said]
    elif body is None and "content" in entry:
        notes.append("null content")
    extras = {key: value for key, value in entry.items() if key not in used}
    return _compose(role, call_id, body, extras)


def _find_fault(entry: JsonObject, role: str) -> str | None:
    content, parts, calls = entry.get("content"), entry.get("parts"), entry.get("tool_calls")
    is_item = isinstance(content, dict) and "type" in content
    if role not in {"tool", "function"} and not (is_item or isinstance(content, str | list | None)):
        return f".content is {name_kind(content)}, expected text, a list of items or null"
    if content is None and parts is not None and not isinstance(parts, list):
        return f".parts is {name_kind(parts)}, expected a list of parts with a type"
    if not calls:
        return None
    if not isinstance(calls, list):
        return f".tool_calls is {name_kind(calls)}, expected a list of calls"
    odd = next((place for place, call in enumerate(calls) if not isinstance(call, dict)), None)
    if odd is None:
        return None
    return f".tool_calls[{odd}] is {name_kind(calls[odd])}, expected an object with id and function"


def _read_content(content: JsonValue, role: str, notes: list[str]) -> str | list[Placed] | None:
    """Return a content as text or items; what a tool message holds without items is its result."""
    if role == "tool":
        is_items = isinstance(content, list) and all(
            isinstance(item, dict) and isinstance(item.get("type"), str) for item in content
        )
        if content is not None and not is_items:
            notes.append(CHAT_RESULT)
            return [Placed(role, None, {"type": "tool_result", "tool_result": content})]
    if isinstance(content, dict):
        notes.append("a content item without a list")
        content = [content]
    if isinstance(content, list):
        return [place_item(item, role, notes) for item in content]
    return content if isinstance(content, str) else None


def _list_body(body: str | list[Placed] | None, role: str) -> list[Placed]:
    if isinstance(body, list):
        return body
    return [Placed(role, None, {"type": "text", "text": body})] if body else []


def _read_sayings(entry: JsonObject, role: str, used: set[str], notes: list[str]) -> list[Placed]:
    """Return what a chat-completions message says beside its content: refusal and calls."""
    said: list[Placed] = []
    refusal, calls, call = entry.get("refusal"), entry.get("tool_calls"), entry.get("function_call")
    if isinstance(refusal, str) and refusal:
        used.add("refusal")
        notes.append("chat-completions refusal")
        said.append(Placed(role, None, {"type": "refusal", "refusal": refusal}))
    if isinstance(calls, list) and calls:
        used.add("tool_calls")
        notes.append(CHAT_CALLS)
        said += [place_call(each, role, notes) for each in calls if isinstance(each, dict)]
    if isinstance(call, dict):
        used.add("function_call")
        notes.append("chat-completions function_call")
        untyped = {key: value for key, value in call.items() if key != "type"}
        said.append(place_call(untyped, role, notes))
    return said


def _compose(
    role: str, call_id: JsonValue, body: str | list[Placed] | None, extras: JsonObject
) -> list[JsonObject]:
    """Return the messages of a body: one, or more where results stand among other items."""
    if not body or isinstance(body, str):
        content: JsonValue = [] if isinstance(body, list) else body
        return [_build_message(role, call_id, content) | extras]
    owned = [each if each.call_id is not None else each._replace(call_id=call_id) for each in body]
    if call_id is not None and all(each.call_id != call_id for each in owned):
        extras = {"call_id": call_id} | extras  # the items name other calls than their message
    messages = gather_items(owned)
    next((message for message in messages if message["role"] == role), messages[0]).update(extras)
    return messages


def _build_message(role: str, call_id: JsonValue, content: JsonValue) -> JsonObject:
    message: JsonObject = {"role": role}
    if call_id is not None:
        message["tool_call_id"] = call_id
    if content is not None:
        message["content"] = content
    return message
