"""TaskNavigationEfficiency: whether the agent took the expected steps."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field

from assay.contracts.json_text import parse_json
from assay.datasets.messages import canonical_messages, pick_calls
from assay.errors import CallError
from evaluators.contract import Options, RowEvaluator, Verdict
from evaluators.json_fields import BAD_FIELD, read_field

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

_ACCEPTED = {
    "actions": "a list of messages with role and content, or one message",
    "expected_actions": 'tool names: ["a", "b"], with parameters: {"a": {"x": 1}}',
}
MatchingMode: TypeAlias = Literal["exact_match", "in_order_match", "any_order_match"]
_Step: TypeAlias = "tuple[str, tuple[tuple[str, str], ...]]"  # tool name, parameters as texts
_Parameters: TypeAlias = "Mapping[str, JsonValue]"


class TaskNavigationEfficiencyOptions(Options):
    """Options of TaskNavigationEfficiency."""

    matching_mode: MatchingMode = Field(
        default="exact_match",
        description="exact_match: these steps and no others; in_order_match: others between; "
        "any_order_match: others, and any order",
    )


def judge_steps(options: TaskNavigationEfficiencyOptions, fields: Fields) -> Verdict:
    """Score 1 where the tools called are the expected ones, by the matching mode, else 0.

    Expected are names, `["a", "b"]`; or names and parameters, `[["a", "b"], {"a": {"x": 1}}]`; or names with
    their parameters, `{"a": {"x": 1}, "b": {}}`. With parameters, a step is the same when all values are
    the same as text (1 equals "1"); a name without parameters expects a call without any. Actions are
    messages in any known form, or one message; only the assistant's tool calls in them are steps. Precision,
    recall and F1 over the steps, in any order, stand in the details. Figures are those of
    azure-ai-evaluation 1.18.10, which raises at parameters in JSON form and at messages of plain text.

    Raises:
        CallError: `bad_field`, when actions or expected actions cannot be read.
    """
    names, parameters = _read_expected(_read_field(fields, "expected_actions"))
    actions = _read_field(fields, "actions")
    calls = _read_calls([actions] if isinstance(actions, dict) else actions) if actions != [] else []
    taken = [(name, () if parameters is None else _read_parameters(given)) for name, given in calls]
    wanted = [(name, _flatten((parameters or {}).get(name, {}))) for name in names]
    shared = sum((Counter(taken) & Counter(wanted)).values())
    precision = shared / len(taken) if taken else 0.0
    recall = shared / len(wanted)
    f1 = (2 * precision * recall) / (precision + recall) if shared else 0.0
    details = {
        "matching_mode": options.matching_mode,
        "precision_score": precision,
        "recall_score": recall,
        "f1_score": f1,
    }
    reason = f"{shared} of {len(wanted)} expected steps among {len(taken)} taken"
    return Verdict(score=float(_match(options.matching_mode, taken, wanted)), reason=reason, details=details)


def _match(mode: MatchingMode, taken: Sequence[_Step], wanted: Sequence[_Step]) -> bool:
    if mode == "exact_match":
        return list(taken) == list(wanted)
    if mode == "any_order_match":
        return Counter(wanted) <= Counter(taken)
    rest = iter(taken)
    return all(step in rest for step in wanted)  # `in` moves on to the step it finds


def _read_field(fields: Fields, name: str) -> JsonValue:
    """Read a field; a text in it may hold JSON itself."""
    value = read_field(fields[name], name)
    try:
        return parse_json(value) if isinstance(value, str) else value
    except ValueError as error:
        told = f"{name} is text that holds no JSON ({error}), expected {_ACCEPTED[name]}"
        raise CallError(BAD_FIELD, told) from error


def _read_expected(value: JsonValue) -> tuple[list[str], dict[str, _Parameters] | None]:
    names: JsonValue = value
    given: JsonValue = None
    if isinstance(value, dict):
        names, given = list(value), value
    elif isinstance(value, list) and [type(each) for each in value] == [list, dict]:
        names, given = value
    entries = names if isinstance(names, list) else []
    texts = [name.strip() for name in entries if isinstance(name, str)]
    if not texts or len(texts) != len(entries):
        told = "expected_actions are no tool names, nor names and parameters"
        raise CallError(BAD_FIELD, f"{told}; expected {_ACCEPTED['expected_actions']}")
    return texts, _read_expected_parameters(given) if isinstance(given, dict) else None


def _read_expected_parameters(given: dict[str, JsonValue]) -> dict[str, _Parameters]:
    parameters: dict[str, _Parameters] = {
        name.strip(): each for name, each in given.items() if isinstance(each, dict)
    }
    if len(parameters) != len(given):
        raise CallError(BAD_FIELD, "the parameters in expected_actions are not one object for each tool")
    return parameters


def _read_calls(value: JsonValue) -> list[tuple[str, JsonValue]]:
    match canonical_messages(value, "actions"):
        case str() as fault:
            raise CallError(BAD_FIELD, fault)
        case canonical:
            calls = pick_calls(canonical.messages)
    if any(call.get("name") is None for call in calls):
        raise CallError(BAD_FIELD, "actions hold a tool call without a name")
    return [(str(call["name"]).strip(), call.get("arguments")) for call in calls]


def _read_parameters(arguments: JsonValue) -> tuple[tuple[str, str], ...]:
    if isinstance(arguments, str):
        arguments = read_field(arguments, "arguments of a tool call in actions")
    return _flatten(arguments) if isinstance(arguments, dict) else ()


def _flatten(parameters: _Parameters) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, _write_value(value)) for key, value in parameters.items()))


def _write_value(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, dict | list) else str(value)


EVALUATOR = RowEvaluator(
    name="TaskNavigationEfficiency",
    summary="Whether the agent's tool calls are the expected steps.",
    aliases=("task_navigation_efficiency", "builtin.task_navigation_efficiency"),
    needs=("actions", "expected_actions"),
    json_fields=("actions", "expected_actions"),
    options=TaskNavigationEfficiencyOptions,
    judge=judge_steps,
)
