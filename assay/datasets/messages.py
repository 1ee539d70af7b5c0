"""Messages in one canonical form, from Foundry, chat-completions, Responses API and OTel GenAI arrays.

A canonical message is `role`, `tool_call_id` (tool messages), `content`, then whatever else the source
says about it. `content` is a text, or a list of items: `{type: text, text}`, `{type: tool_call,
tool_call_id, name, arguments}`, in tool messages `{type: tool_result, tool_result}`, and unknown items as
they were. Null content is absent. The canonical form of canonical messages is themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from assay.contracts.json_text import JsonValue, dump_json, parse_json
from assay.datasets.cells import name_kind
from assay.datasets.message_entries import gather_items, read_entry
from assay.datasets.message_items import TEXT_TYPES, JsonObject, Placed, is_call, read_call

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assay.contracts.json_text import Number

EXPECTED = "expected a list of messages with role and content"
_PLAIN_SIZE = 2  # role and content
_PLAIN_ROLES = ("user", "assistant", "system", "developer")


@dataclass(frozen=True, slots=True)
class Canonical:
    """Messages in canonical form.

    Attributes:
        messages: The messages, in order.
        conversions: What was converted, each name once (`chat-completions tool_calls`).
    """

    messages: list[JsonObject]
    conversions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Calls:
    """Tool calls in canonical form.

    Attributes:
        items: Items of type `tool_call`; calls of unknown types as they were.
        conversions: What was converted, each name once.
    """

    items: list[JsonValue]
    conversions: tuple[str, ...] = ()


def canonical_messages(value: JsonValue, name: str = "messages") -> Canonical | str:
    """Bring an array of messages into canonical form.

    Items that stand without a message are gathered, in order, into messages of the assistant (calls,
    reasoning, output text) or of tools (results). Other roles are kept as they are.

    Args:
        value: The array, numbers as `Number` where their text is to be kept. It is not changed, but
            the result shares parts of it.
        name: What to call it in a fault.

    Returns:
        The messages, or what is wrong: no list, an empty one, an entry that is no object or has neither
        role nor type, a content that is neither text, items nor null.
    """
    if not isinstance(value, list):
        return f"{name} is {name_kind(value)}, {EXPECTED}"
    if not value:
        return f"{name} is empty; at least one message is expected"
    messages: list[JsonObject] = []
    loose: list[Placed] = []
    notes: list[str] = []
    for place, entry in enumerate(value):
        if not loose and isinstance(entry, dict) and _is_plain(entry):
            messages.append(entry)
            continue
        read = read_entry(entry, notes)
        if isinstance(read, str):
            return f"{name}[{place}]{read}"
        if isinstance(read, Placed):
            loose.append(read)
            continue
        if loose:
            messages += gather_items(loose)
            loose = []
        messages += read
    messages += gather_items(loose)
    return Canonical(messages, tuple(dict.fromkeys(notes)))


def canonical_calls(value: JsonValue, name: str = "tool_calls") -> Calls | str:
    """Bring a list of tool calls into canonical form.

    Args:
        value: Calls in any of the forms, or messages that hold them; one alone stands for a list of
            one; text is read as JSON.
        name: What to call it in a fault.

    Returns:
        The calls, or what is wrong.
    """
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            return f"{name} is text that is not JSON: {error}"
    entries = [value] if isinstance(value, dict) else value
    if not isinstance(entries, list):
        return f"{name} is {name_kind(value)}, expected a list of tool calls with name and arguments"
    items: list[JsonValue] = []
    notes: list[str] = []
    for place, entry in enumerate(entries):
        read = _read_calls(entry, notes)
        if isinstance(read, str):
            return f"{name}[{place}]{read}"
        items += read
    return Calls(items, tuple(dict.fromkeys(notes)))


def find_answer(messages: Sequence[JsonObject]) -> int:
    """Return where the answer begins: behind the last message of the user; 0 when there is none."""
    place = len(messages)
    while place and messages[place - 1].get("role") != "user":
        place -= 1
    return place


def read_message(message: JsonObject) -> str | None:
    """Return the text of one canonical message, items joined by newlines; None when it holds none.

    A refusal counts as text: it is what was said.
    """
    content = message.get("content")
    if not isinstance(content, list):
        return content if isinstance(content, str) else None
    texts: list[str] = []
    for item in content:
        kind = item.get("type") if isinstance(item, dict) else None
        if isinstance(item, dict) and (kind in TEXT_TYPES or kind == "refusal"):
            text = item.get("refusal" if kind == "refusal" else "text")
            texts += [text] if isinstance(text, str) else []
    return "\n".join(texts) if texts else None


def read_answer(messages: Iterable[JsonObject]) -> str | None:
    """Return what the assistant said in canonical messages, one message per line.

    Returns:
        Empty when it only called tools; None when it did neither.
    """
    spoken = [message for message in messages if message.get("role") == "assistant"]
    texts = [text for message in spoken if (text := read_message(message)) is not None]
    if texts:
        return "\n".join(texts)
    return "" if any(is_call(item) for message in spoken for item in _list_items(message)) else None


def pick_calls(messages: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the items of type `tool_call` in the assistant's canonical messages."""
    return [
        item
        for message in messages
        if message.get("role") == "assistant"
        for item in _list_items(message)
        if isinstance(item, dict) and item.get("type") == "tool_call"
    ]


def dump_values(values: Sequence[JsonValue] | Sequence[JsonObject]) -> str:
    """Write messages or items as `dump_json` does, ten times as fast; floats are to be `Number`."""
    try:
        return orjson.dumps(values, default=_keep_number).decode()
    except TypeError:  # an integer beyond 64 bits, say
        return dump_json(values)


def _keep_number(value: Number) -> orjson.Fragment:
    return orjson.Fragment(value.text)


def _read_calls(entry: JsonValue, notes: list[str]) -> list[JsonValue] | str:
    """Return the calls of one entry: those of a message, or the call it is itself."""
    if not isinstance(entry, dict):
        return f" is {name_kind(entry)}, expected an object with name and arguments"
    if "role" in entry:
        read = read_entry(entry, notes)
        if isinstance(read, Placed):
            return [read.item] if is_call(read.item) else []
        return read if isinstance(read, str) else [*pick_calls(read)]
    if "type" not in entry:
        notes.append("tool calls without type")
    return [read_call(entry, notes)]


def _list_items(message: JsonObject) -> list[JsonValue]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def _is_plain(entry: JsonObject) -> bool:
    """Whether a message is a role that needs no care and a text, in this order, and nothing else."""
    return (
        len(entry) == _PLAIN_SIZE
        and isinstance(entry.get("content"), str)
        and entry.get("role") in _PLAIN_ROLES
        and next(iter(entry)) == "role"
    )
