"""What was asked, said and called, out of the message arrays and tool columns of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from assay.contracts.json_text import TOO_DEEP, JsonValue, dump_json, is_deep, parse_json
from assay.datasets.message_items import RESPONSES_TYPES, RESULT_TYPES, TEXT_TYPES, JsonObject
from assay.datasets.messages import (
    canonical_calls,
    canonical_messages,
    dump_values,
    find_answer,
    pick_calls,
    read_answer,
    read_message,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.datasets.faults import Faults

CHAT_DEFINITIONS = "chat-completions tool definitions"
_SAYING_KEYS = frozenset({"content", "parts", "tool_calls", "function_call", "refusal"})
_ITEM_TYPES = ("message", "tool_call", "openapi_call", *RESPONSES_TYPES, *RESULT_TYPES, *TEXT_TYPES)


@dataclass(frozen=True, slots=True)
class Unfolded:
    """Columns of a block of rows whose messages were unfolded; the lists run in parallel.

    Attributes:
        queries: The last text of the user, null when the messages hold none; without messages the value
            of the row.
        responses: What the assistant said after it: null when it said nothing, empty when it only
            called tools; without messages the value of the row.
        messages_json: The canonical history: the `messages`, else the query array, else null.
        output_items_json: The canonical messages of the answer; null when there are none.
        tool_calls_json: The calls of the answer, else those of the row's `tool_calls`; null when there
            are none.
        conversions: What was converted, counted over rows.
        first_lines: The first line of each conversion.
    """

    queries: list[JsonValue]
    responses: list[JsonValue]
    messages_json: list[str | None]
    output_items_json: list[str | None]
    tool_calls_json: list[str | None]
    conversions: Counter[str] = field(default_factory=Counter[str])
    first_lines: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class Definitions:
    """Tool definitions of a block of rows.

    Attributes:
        texts: Per row compact JSON, or null.
        conversions: What was converted, counted over rows.
        first_lines: The first line of each conversion.
    """

    texts: list[str | None]
    conversions: Counter[str] = field(default_factory=Counter[str])
    first_lines: dict[str, int] = field(default_factory=dict[str, int])


class _Interaction(NamedTuple):
    """The cells of one row, as in `Unfolded`."""

    query: JsonValue
    response: JsonValue
    messages_json: str | None = None
    output_items_json: str | None = None
    tool_calls_json: str | None = None
    conversions: tuple[str, ...] = ()


def unfold_interactions(
    cells: Mapping[str, list[JsonValue]], numbers: Sequence[int], faults: Faults, prefer: str | None = None
) -> Unfolded:
    """Unfold the message arrays of a block of rows.

    A `messages` array supplies query (the last text of the user) and response (what the assistant said
    after it). A query array supplies the query in the same way, a response array what the assistant
    says in it. Other values of `query` and `response` stay as they are, lists that hold no messages
    among them.

    Args:
        cells: Lists under `messages`, `query`, `response` and `tool_calls`, one value per row; numbers
            as `Number`, so that they keep their text. They are not changed.
        numbers: Line of each row.
        faults: Takes rows that hold both forms, or messages or calls that are none; their cells stay
            as they are.
        prefer: `messages` or `query`: which form counts in a row that holds both; the other is not read.
    """
    blank: list[str | None] = [None] * len(numbers)
    unfolded = Unfolded(list(cells["query"]), list(cells["response"]), blank, [*blank], [*blank])
    rows = zip(cells["messages"], cells["query"], cells["response"], cells["tool_calls"], strict=True)
    for row, (messages, query, response, calls) in enumerate(rows):
        if messages is None and calls is None and not (isinstance(query, list) or isinstance(response, list)):
            continue
        read = _unfold_row(messages, query, response, calls, prefer)
        if isinstance(read, str):
            faults.add(numbers[row], read)
            continue
        unfolded.queries[row], unfolded.responses[row] = read.query, read.response
        unfolded.messages_json[row] = read.messages_json
        unfolded.output_items_json[row] = read.output_items_json
        unfolded.tool_calls_json[row] = read.tool_calls_json
        _count(read.conversions, numbers[row], unfolded)
    return unfolded


def unfold_definitions(cells: Sequence[JsonValue], numbers: Sequence[int], faults: Faults) -> Definitions:
    """Write the tool definitions of a block of rows, by the rules of `tool_definitions_text`.

    Args:
        cells: One value per row; null and empty text are null.
        numbers: Line of each row.
        faults: Takes rows whose definitions are text but not JSON.
    """
    definitions = Definitions([None] * len(numbers))
    for row, cell in enumerate(cells):
        if cell is None or cell == "":
            continue
        try:
            value, converted = _read_definitions(cell)
        except ValueError as error:
            faults.add(numbers[row], f"tool_definitions is text that is not JSON: {error}")
            continue
        definitions.texts[row] = dump_json(value)
        _count((CHAT_DEFINITIONS,) if converted else (), numbers[row], definitions)
    return definitions


def tool_definitions_text(value: JsonValue) -> str | None:
    """Return tool definitions as compact JSON; text is read as JSON.

    A definition in chat-completions form becomes `name`, `description`, `parameters` and whatever else
    it holds.

    Raises:
        ValueError: The text is not JSON.
    """
    return None if value is None else dump_json(_read_definitions(value)[0])


def _count(names: Sequence[str], line: int, columns: Unfolded | Definitions) -> None:
    for name in names:
        columns.conversions[name] += 1
        columns.first_lines.setdefault(name, line)


def _unfold_row(
    messages: JsonValue, query: JsonValue, response: JsonValue, calls: JsonValue, prefer: str | None
) -> _Interaction | str:
    """Return the cells of one row, or what is wrong with it."""
    both = [name for name, value in (("query", query), ("response", response)) if value is not None]
    if messages is not None and both and prefer is None:
        held = " and ".join(("messages", *both))
        return f"both {held}; a row holds one of the two forms, --prefer messages or --prefer query chooses"
    if messages is not None and (not both or prefer == "messages"):
        read = _unfold_messages(messages)
    else:
        read = _unfold_pair(query, response)
    return read if isinstance(read, str) or calls is None else _add_calls(read, calls)


def _unfold_messages(value: JsonValue) -> _Interaction | str:
    told = _read_array(value, "messages")
    if isinstance(told, str):
        hint = "; --json-column messages reads texts as JSON" if isinstance(value, str) else ""
        return told + hint
    messages, text, conversions = told
    begin = find_answer(messages)
    asked = read_message(messages[begin - 1]) if begin else None
    return _add_answer(_Interaction(asked, None, text, conversions=conversions), messages[begin:])


def _unfold_pair(query: JsonValue, response: JsonValue) -> _Interaction | str:
    said = _Interaction(query, response)
    if _holds_messages(query, loose=False):
        told = _read_array(query, "query")
        if isinstance(told, str):
            return told
        messages, text, conversions = told
        begin = find_answer(messages)
        asked = read_message(messages[begin - 1]) if begin else None
        said = _Interaction(asked, response, text, conversions=conversions)
    if not _holds_messages(response, loose=True):
        return said
    told = _read_array(response, "response")
    if isinstance(told, str):
        return told
    messages, text, conversions = told
    merged = tuple(dict.fromkeys(said.conversions + conversions))
    return _add_answer(said._replace(conversions=merged), messages, text)


def _add_answer(said: _Interaction, answer: list[JsonObject], text: str | None = None) -> _Interaction:
    """Add what canonical messages say and call; `text` is their JSON, if that is known."""
    calls = pick_calls(answer)
    return _Interaction(
        said.query,
        read_answer(answer),
        said.messages_json,
        (text or dump_values(answer)) if answer else None,
        dump_values(calls) if calls else None,
        said.conversions,
    )


def _add_calls(read: _Interaction, value: JsonValue) -> _Interaction | str:
    """Add the calls of the row's own column where the answer holds none; calls alone are an answer."""
    if value == "":
        return read
    calls = canonical_calls(value)
    if isinstance(calls, str):
        return calls
    if read.tool_calls_json is not None or not calls.items:
        return read
    text = dump_values(calls.items)
    if is_deep(text, calls.items):
        return f"tool_calls is {TOO_DEEP}"
    return read._replace(
        response="" if read.response is None else read.response,
        tool_calls_json=text,
        conversions=tuple(dict.fromkeys(read.conversions + calls.conversions)),
    )


def _read_array(value: JsonValue, name: str) -> tuple[list[JsonObject], str, tuple[str, ...]] | str:
    """Return the canonical messages of an array, their JSON and their conversions, or what is wrong."""
    canonical = canonical_messages(value, name)
    if isinstance(canonical, str):
        return canonical
    text = dump_values(canonical.messages)
    if is_deep(text, [*canonical.messages]):
        return f"{name} is {TOO_DEEP}"
    return canonical.messages, text, canonical.conversions


def _holds_messages(value: JsonValue, *, loose: bool) -> bool:
    """Whether a value is a list with a message in it, or (`loose`) of items that need no message."""
    if not isinstance(value, list) or not value:
        return False
    entries = [entry for entry in value if isinstance(entry, dict)]
    if any(isinstance(entry.get("role"), str) and not _SAYING_KEYS.isdisjoint(entry) for entry in entries):
        return True
    return loose and len(entries) == len(value) and all(entry.get("type") in _ITEM_TYPES for entry in entries)


def _read_definitions(value: JsonValue) -> tuple[JsonValue, bool]:
    """Return definitions without the wrapping of chat completions, and whether there was any."""
    if isinstance(value, str):
        value = parse_json(value)
    if isinstance(value, list):
        flat = [_flatten_definition(entry) for entry in value]
        return flat, any(new is not old for new, old in zip(flat, value, strict=True))
    flat_one = _flatten_definition(value)
    return flat_one, flat_one is not value


def _flatten_definition(entry: JsonValue) -> JsonValue:
    if not isinstance(entry, dict) or not isinstance(function := entry.get("function"), dict):
        return entry
    named = {key: function[key] for key in ("name", "description", "parameters") if key in function}
    rest = {
        key: value
        for key, value in entry.items()
        if key != "function" and (key, value) != ("type", "function")
    }
    return named | {key: value for key, value in (rest | function).items() if key not in named}
