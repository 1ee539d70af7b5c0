"""Content items in canonical form: texts, tool calls and tool results, whatever form they come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from assay.contracts.json_text import JsonValue, parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

JsonObject: TypeAlias = "dict[str, JsonValue]"

OTEL = "OTel parts"
CHAT_CALLS = "chat-completions tool_calls"
CHAT_RESULT = "chat-completions tool message"
LOOSE = "items without a message"

TEXT_TYPES = ("text", "input_text", "output_text")
# Type of a call to the name of its conversion; that of a call in the canonical form has none.
CALL_TYPES: Mapping[str, str | None] = {
    "tool_call": None,
    "function_call": "Responses function_call",
    "custom_tool_call": "Responses custom_tool_call",
    "openapi_call": "openapi_call items",
    "function": CHAT_CALLS,
    "custom": CHAT_CALLS,
}
# Type of a result to the keys its value may stand under, and the name of its conversion.
RESULT_TYPES: Mapping[str, tuple[tuple[str, ...], str | None]] = {
    "tool_result": (("tool_result",), None),
    "function_call_output": (("function_call_output", "output"), "Responses function_call_output"),
    "custom_tool_call_output": (("custom_tool_call_output", "output"), "Responses custom_tool_call_output"),
    "openapi_call_output": (("openapi_call_output", "output"), "openapi_call_output items"),
    "tool_call_response": (("response", "result"), OTEL),
}
# Items of the Responses API that have no other form; they are kept as they are.
RESPONSES_TYPES = frozenset(
    {
        "code_interpreter_call",
        "computer_call",
        "computer_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "function_call",
        "function_call_output",
        "image_generation_call",
        "item_reference",
        "local_shell_call",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_call",
        "mcp_list_tools",
        "reasoning",
        "web_search_call",
    }
)
_NESTS = ("tool_call", "function", "custom")  # keys under which some forms keep name and arguments


class Placed(NamedTuple):
    """An item and what tells the message it belongs to from others.

    Attributes:
        role: Role of that message.
        call_id: The call a result answers; None: that of the message, if it has one.
        item: The item in canonical form.
    """

    role: str
    call_id: JsonValue
    item: JsonValue


def place_item(item: JsonValue, role: str, notes: list[str]) -> Placed:
    """Bring one content item into canonical form; unknown ones stay as they are.

    Args:
        item: The item; a text alone becomes a text item.
        role: Role of the message it was found in. A result belongs to a tool message wherever it
            was found, and text in a tool message is a result.
        notes: Takes the name of every conversion.
    """
    if isinstance(item, str):
        notes.append("texts among content items")
        return Placed(role, None, {"type": "text", "text": item})
    kind = item.get("type") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(kind, str):
        return Placed(role, None, item)
    if kind in RESULT_TYPES:
        if role != "tool" and kind == "tool_result":
            notes.append("tool results outside tool messages")
        return _place_result(item, kind, notes)
    if kind in TEXT_TYPES:
        text = _read_text(item, notes)
        return Placed(role, None, _wrap_text(text, notes) if role == "tool" else text)
    is_nest = kind in _NESTS[1:] and not isinstance(item.get(kind), dict)  # a part named `custom`, say
    if kind in CALL_TYPES and not is_nest:
        return Placed(role, None, read_call(item, notes))
    return Placed(role, None, item)


def place_call(entry: JsonObject, role: str, notes: list[str]) -> Placed:
    """Bring an entry of `tool_calls` into canonical form; what says it is no call is taken as an item."""
    if entry.get("type") in (None, *_NESTS):
        return Placed(role, None, read_call(entry, notes))
    return place_item(entry, role, notes)


def place_loose(item: JsonObject, kind: str, role: str | None, notes: list[str]) -> Placed:
    """Bring an item that stands without a message into canonical form, and say whose it is.

    Args:
        item: The item.
        kind: Its type.
        role: Its role, where it has one; else what is put in is the user's, outputs are those of
            tools, everything else is the assistant's.
        notes: Takes the name of every conversion.
    """
    notes.append(f"Responses {kind}" if kind in RESPONSES_TYPES else LOOSE)
    if role is None and kind not in RESULT_TYPES and kind.endswith(("_output", "_approval_response")):
        return Placed("tool", item.get("call_id"), item)
    return place_item(item, role or ("user" if kind.startswith("input_") else "assistant"), notes)


def read_call(entry: JsonObject, notes: list[str]) -> JsonObject:
    """Return one tool call as `type`, `tool_call_id`, `name`, `arguments` and whatever else it holds.

    Arguments given as the text of a JSON object become that object; other text stays. What the entry
    does not say (an id, say) is absent. A call of a type that is not known stays as it is.
    """
    kind = entry.get("type")
    if kind is not None and (not isinstance(kind, str) or kind not in CALL_TYPES):
        return entry
    flat = _flatten(entry)
    id_key = _find_key(flat, ("tool_call_id", "call_id", "id"))
    arguments_key = "arguments" if "arguments" in flat else "input"
    note = CALL_TYPES[kind] if kind else None
    if kind == "tool_call" and flat is not entry:
        note = "nested tool_call items"
    elif kind == "tool_call" and id_key in {"call_id", "id"}:
        note = OTEL
    if note:
        notes.append(note)
    sources = {"tool_call_id": id_key, "name": "name", "arguments": arguments_key}
    call: JsonObject = {"type": "tool_call"}
    call |= {key: flat[source] for key, source in sources.items() if source in flat}
    if "arguments" in call:
        call["arguments"] = _read_arguments(call["arguments"], notes)
    return call | _rest(flat, "type", "tool_call_id", id_key, "name", arguments_key)


def is_call(item: JsonValue) -> bool:
    """Whether an item asks for a tool, in canonical form or in one that only its own tool knows."""
    kind = item.get("type") if isinstance(item, dict) else None
    return isinstance(kind, str) and (kind.endswith("_call") or kind == "mcp_approval_request")


def _place_result(item: JsonObject, kind: str, notes: list[str]) -> Placed:
    value_keys, note = RESULT_TYPES[kind]
    id_key = _find_key(item, ("tool_call_id", "call_id", *(("id",) if note == OTEL else ())))
    call_id = item[id_key] if id_key else None
    value_key = next((key for key in value_keys if key in item), None)
    if value_key is None:
        return Placed("tool", call_id, item)
    if note:
        notes.append(note)
    result: JsonObject = {"type": "tool_result", "tool_result": item[value_key]}
    return Placed(
        "tool", call_id, result | _rest(item, "type", "tool_result", value_key, "tool_call_id", id_key)
    )


def _read_text(item: JsonObject, notes: list[str]) -> JsonObject:
    """Return a text item with its text under `text`; OTel has it under `content`."""
    if "text" in item or not isinstance(item.get("content"), str):
        return item
    notes.append(OTEL)
    return {"type": item["type"], "text": item["content"]} | _rest(item, "type", "content")


def _wrap_text(item: JsonObject, notes: list[str]) -> JsonObject:
    if "text" not in item:
        return item
    notes.append(CHAT_RESULT)
    return {"type": "tool_result", "tool_result": item["text"]} | _rest(item, "type", "text", "tool_result")


def _flatten(entry: JsonObject) -> JsonObject:
    """Lift what is nested under one of `_NESTS` to the call itself."""
    flat = entry
    while nest := next((key for key in _NESTS if isinstance(flat.get(key), dict)), None):
        inner = flat[nest]
        flat = _rest(flat, nest) | (inner if isinstance(inner, dict) else {})
    return flat


def _read_arguments(arguments: JsonValue, notes: list[str]) -> JsonValue:
    if not isinstance(arguments, str) or not arguments.lstrip().startswith("{"):
        return arguments
    try:
        parsed = parse_json(arguments)
    except ValueError:
        return arguments
    notes.append("tool arguments given as text")
    return parsed


def _find_key(entry: JsonObject, keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if entry.get(key) is not None), None)


def _rest(entry: JsonObject, *used: str | None) -> JsonObject:
    return {key: value for key, value in entry.items() if key not in used}
