"""Tool calls of an answer as evaluators of tool calls read them: names, arguments, outputs."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from assay.contracts.json_text import dump_json, parse_json
from assay.datasets.message_items import is_call
from assay.datasets.messages import canonical_calls, canonical_messages
from assay.errors import CallError
from evaluators.contract import Verdict
from evaluators.json_fields import BAD_FIELD, read_field, refuse_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

NAME_LENGTH = 64  # characters of a tool name that model APIs take
WANTS = ("tool_calls", "output_items")  # no calls at all are null, so neither is needed
_ASCII_ONLY = re.compile(r"[^A-Za-z0-9_-]")
_WORD_ONLY = re.compile(r"[^\w-]")


class Expected(BaseModel):
    """A call that is expected: what its options have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    name: str
    id: str | None = Field(default=None, description="id of the tool; it counts before the name")


class ToolCall(NamedTuple):
    """One call of an answer.

    Attributes:
        name: The tool as the answer spells it.
        tool_id: Id of the tool, where calls carry one; not that of the call.
        arguments: Arguments: an object, or whatever else stands there.
        output: What the tool gave back as text or other JSON; None when the answer does not tell.
    """

    name: str
    tool_id: str | None
    arguments: JsonValue
    output: JsonValue


def read_calls(fields: Fields) -> list[ToolCall]:
    """Read the calls of an answer in order, each with its output from `output_items`.

    Raises:
        CallError: `bad_field`, when a field is not JSON, or not of calls and messages.
    """
    calls, items = (read_field(fields[name], name) for name in WANTS)
    outputs = dict(_list_outputs(items))
    return [_read_call(name, call, outputs) for name, call in list_calls(calls)]


def list_calls(value: JsonValue, field: str = WANTS[0]) -> list[tuple[str, Mapping[str, JsonValue]]]:
    """Return name and canonical form of each call in a list, in whatever form calls come; none of null.

    A call of a kind of its own, such as `web_search_call`, has the name of its kind where it has no other.

    Raises:
        CallError: `bad_field`, when it is no list of calls with names.
    """
    if value is None:
        return []
    if isinstance(value, dict):
        raise refuse_value(field, value, "a list of tool calls")
    read = canonical_calls(value, field)
    if isinstance(read, str):
        raise CallError(BAD_FIELD, read)
    return [_name_call(call, f"{field}[{place}]") for place, call in enumerate(read.items)]


def _name_call(call: JsonValue, place: str) -> tuple[str, Mapping[str, JsonValue]]:
    if not isinstance(call, dict):
        raise refuse_value(place, call, "an object with name and arguments")
    name, kind = call.get("name"), call.get("type")
    if name is None and kind != "tool_call" and is_call(call):
        name = kind
    if not isinstance(name, str):
        raise refuse_value(f"{place}.name", name, "the name of a tool")
    if not name.strip():
        raise CallError(BAD_FIELD, f"{place}.name is blank, expected the name of a tool")
    return name, call


def _read_call(name: str, call: Mapping[str, JsonValue], outputs: Mapping[str, JsonValue]) -> ToolCall:
    tool_id, call_id = call.get("tool_id"), call.get("tool_call_id")
    output = outputs.get(call_id) if isinstance(call_id, str) else None
    return ToolCall(
        name,
        tool_id if isinstance(tool_id, str) and tool_id else None,
        call.get("arguments"),
        output,
    )


def _list_outputs(items: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield id of the call and value of every tool result, whatever form messages and items have."""
    if items is None or items == []:
        return
    read = canonical_messages(items, "output_items")
    if isinstance(read, str):
        raise CallError(BAD_FIELD, read)
    for message in read.messages:
        call_id, content = message.get("tool_call_id"), message.get("content")
        for item in content if isinstance(content, list) else []:
            if isinstance(item, dict) and "tool_result" in item and isinstance(call_id, str):
                yield call_id, item["tool_result"]


def sanitise(name: str, *, exact: bool) -> str:
    """Bring a tool name into the form that model APIs take: no white space, at most 64 characters.

    Letters and digits of all scripts stay, so that two names do not become one; `exact` keeps only those
    of ASCII, as UiPath does.
    """
    joined = "_".join(name.split())
    return (_ASCII_ONLY if exact else _WORD_ONLY).sub("", joined)[:NAME_LENGTH]


def is_call_of(call: ToolCall, name: str, tool_id: str | None, *, exact: bool) -> bool:
    """Whether a call is one of the expected tool: by its id, else by its name.

    In `exact` a call that carries an id answers to that alone.
    """
    if call.tool_id is not None and call.tool_id == (tool_id or name):
        return True
    if exact and call.tool_id is not None:
        return False
    return sanitise(call.name, exact=exact) == sanitise(name, exact=exact)


def read_literal(text: str) -> JsonValue:
    """Return the value that a text writes as JSON, or an object or list as Python prints it.

    Raises:
        ValueError: It is neither.
    """
    try:
        return parse_json(text)
    except ValueError:
        if not text.lstrip().startswith(("{", "[", "(")):
            raise
    try:
        value: Any = ast.literal_eval(text)
        return parse_json(dump_json(value))
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(str(error)) from error


def judge_empty(
    expected: Sequence[object] | Mapping[str, object], calls: Sequence[ToolCall]
) -> Verdict | None:
    """Return the verdict where a side is empty: 1 when both are, else 0; None when neither is."""
    if expected and calls:
        return None
    if not expected and not calls:
        return Verdict(score=1.0, reason="no call expected, none made")
    reason = f"no call made, {len(expected)} expected" if expected else f"no call expected, {len(calls)} made"
    return Verdict(score=0.0, reason=reason)


def judge_matches(
    expected: Sequence[Expected],
    pairs: Mapping[int, int],
    *,
    strict: bool,
    notes: Mapping[int, str] | None = None,
) -> Verdict:
    """Score the share of expected calls that were made; `strict` takes all of them or nothing.

    Args:
        expected: The expected calls.
        pairs: Place of an expected call to that of the call it was paired with.
        strict: As said.
        notes: Place of an expected call to why no call was paired with it, where that is known.
    """
    missed = {place: each.name for place, each in enumerate(expected) if place not in pairs}
    told = {place: f"{missed[place]}: {note}" for place, note in (notes or {}).items() if place in missed}
    bare = [name for place, name in missed.items() if place not in told]
    reasons = [f"no match for {', '.join(bare)}"] if bare else []
    share = len(pairs) / len(expected)
    return Verdict(
        score=float(not missed) if strict else share,
        reason="; ".join([*reasons, *told.values()]) or None,
        details={"matched": len(pairs), "expected": len(expected), "pairs": sorted(pairs.items())},
    )
