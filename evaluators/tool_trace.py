"""Tool traces: what an answer called and what came back, as judges are shown it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.contracts.json_text import dump_json
from assay.datasets.message_items import is_call
from assay.datasets.messages import canonical_messages
from assay.errors import CallError, NotApplicableError
from evaluators.called_tools import list_calls
from evaluators.json_fields import BAD_FIELD, read_field, read_objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.contracts.json_text import JsonValue
    from assay.datasets.message_items import JsonObject
    from evaluators.contract import Fields

TRACE_FIELDS = ("tool_calls", "output_items")
_APPROVAL = "mcp_approval_request"
_PENDING = frozenset({"tool_call", _APPROVAL})  # calls that somebody else has to carry out
_ID_KEYS = ("tool_call_id", "call_id", "id")
_RESULT_KEYS = ("tool_result", "output", "outputs", "results", "result")
_NAMED_TYPES = frozenset({"function", "custom", "tool"})  # kinds of definitions that are known by their name


@dataclass(frozen=True, slots=True)
class Step:
    """A call with its result, or a result whose call is not told.

    Attributes:
        name: The tool; None where only the result is known.
        kind: Type of the call, such as `tool_call` or `web_search_call`.
        arguments: What it was called with.
        result: What it gave back; None when the answer does not tell.
    """

    name: str | None
    kind: str | None
    arguments: JsonValue
    result: JsonValue

    def describe(self) -> JsonValue:
        """Return what is known of it."""
        call: JsonObject = {} if self.name is None else {"name": self.name, "arguments": self.arguments}
        return call if self.result is None else {**call, "result": self.result}


@dataclass(frozen=True, slots=True)
class Trace:
    """What an answer did with tools.

    Attributes:
        steps: Calls in order, then results whose call is not told.
        is_intermediate: Whether the answer ends with a call that waits for its result.
    """

    steps: Sequence[Step]
    is_intermediate: bool

    @property
    def calls(self) -> list[Step]:
        """Steps of which the call is known."""
        return [step for step in self.steps if step.name is not None]

    @property
    def results(self) -> list[Step]:
        """Steps of which the result is known."""
        return [step for step in self.steps if step.result is not None]


def read_trace(fields: Fields) -> Trace:
    """Read calls and results from `output_items`, the calls from `tool_calls` where there are none.

    Raises:
        CallError: `bad_field`, when a field is not JSON, or not of calls and messages.
    """
    messages = _read_messages(fields["output_items"])
    found = [item for message in messages for item in _list_items(message) if is_call(item)]
    made: list[JsonValue] = [item for item in found if _kind_of(item) != _APPROVAL]
    calls = list_calls(made, "output_items") or list_calls(read_field(fields["tool_calls"], "tool_calls"))
    results = list(_list_results(messages))
    steps = [_build_step(name, call, results) for name, call in calls]
    steps += [Step(None, None, None, result) for _, result in results if result is not None]
    return Trace(steps, is_intermediate=_waits(messages))


def check_final(trace: Trace) -> None:
    """Refuse an answer that is only a step on the way to one.

    Raises:
        NotApplicableError: It ends with a call that waits for its result.
    """
    if trace.is_intermediate:
        raise NotApplicableError("an intermediate answer: it ends with a tool call that has no result")


def check_calls(trace: Trace, definitions: str | None) -> None:
    """Refuse an answer whose calls cannot be judged.

    Args:
        trace: What the answer did.
        definitions: JSON list of the tools there were; null or empty: not told.

    Raises:
        NotApplicableError: An intermediate answer, no calls, or one of a tool that is not defined.
        CallError: `bad_field`, when the definitions are not of their form.
    """
    check_final(trace)
    if not trace.calls:
        raise NotApplicableError("no tool calls")
    defined = list_definitions(definitions)
    unknown = [step.name for step in trace.calls if step.name and not _is_defined(step, defined)]
    if defined and unknown:
        raise NotApplicableError(f"not among the tool definitions: {', '.join(dict.fromkeys(unknown))}")


def list_definitions(text: str | None) -> list[JsonObject]:
    """Return the definitions of a JSON list, or the one of an object.

    Raises:
        CallError: `bad_field`, when it is neither.
    """
    value = read_field(text, "tool_definitions")
    accepted = "a list of objects with name and parameters"
    return [value] if isinstance(value, dict) else read_objects(value, "tool_definitions", accepted)


def dump_steps(steps: Sequence[Step]) -> str:
    """Write steps as a JSON list."""
    return dump_json([step.describe() for step in steps])


def _read_messages(text: str | None) -> list[JsonObject]:
    value = read_field(text, "output_items")
    if value is None or value == []:
        return []
    read = canonical_messages(value, "output_items")
    if isinstance(read, str):
        raise CallError(BAD_FIELD, read)
    return read.messages


def _list_items(message: JsonObject, role: str = "assistant") -> list[JsonValue]:
    content = message.get("content")
    return content if message.get("role") == role and isinstance(content, list) else []


def _kind_of(item: JsonValue) -> str | None:
    kind = item.get("type") if isinstance(item, dict) else None
    return kind if isinstance(kind, str) else None


def _list_results(messages: Sequence[JsonObject]) -> Iterator[tuple[JsonValue, JsonValue]]:
    """Yield id of the call and value of every result, in order."""
    for message in messages:
        for item in _list_items(message, "tool"):
            own = _find(item, _RESULT_KEYS) if isinstance(item, dict) else None
            yield message.get("tool_call_id"), item if own is None else own


def _find(item: Mapping[str, JsonValue], keys: Sequence[str]) -> JsonValue:
    return next((item[key] for key in keys if item.get(key) is not None), None)


def _build_step(name: str, call: Mapping[str, JsonValue], results: list[tuple[JsonValue, JsonValue]]) -> Step:
    """Return a call with its result, which is taken out of `results`."""
    result, call_id = _find(call, _RESULT_KEYS), _find(call, _ID_KEYS)
    if call_id is not None:
        place = next((place for place, (of, _) in enumerate(results) if of == call_id), None)
        result = result if place is None else results.pop(place)[1]
    arguments = call["arguments"] if "arguments" in call else _strip(call)
    return Step(name, _kind_of(dict(call)), arguments, result)


def _strip(call: Mapping[str, JsonValue]) -> JsonValue:
    """Return what a call of a kind of its own was asked; null where it does not tell."""
    known = {"type", "name", "status", *_ID_KEYS, *_RESULT_KEYS}
    return {key: value for key, value in call.items() if key not in known} or None


def _waits(messages: Sequence[JsonObject]) -> bool:
    last = _list_items(messages[-1])[-1:] if messages else []
    return any(
        _kind_of(item) in _PENDING and isinstance(item, dict) and _find(item, _RESULT_KEYS) is None
        for item in last
    )


def _is_defined(step: Step, definitions: Sequence[JsonObject]) -> bool:
    """Whether a tool is defined: by its name, or by its type where a call is of a kind of its own."""
    if any(step.name in _list_names(each) for each in definitions):
        return True
    if step.kind is None or step.kind == "tool_call":
        return False
    own = step.kind.removesuffix("_call")
    types = {kind for each in definitions if (kind := _kind_of(each)) and kind not in _NAMED_TYPES}
    return any(kind.startswith(own) for kind in types)


def _list_names(definition: JsonObject) -> list[JsonValue]:
    """Return the names of a definition: its own, and those of functions inside it."""
    inner = [definition, definition.get("function")]
    listed = definition.get("functions")
    inner += listed if isinstance(listed, list) else []
    return [each.get("name") for each in inner if isinstance(each, dict)]
