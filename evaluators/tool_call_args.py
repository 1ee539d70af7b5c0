"""ToolCallArgs: whether tools were called with the expected arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AliasChoices, Field

from assay.datasets.cells import name_kind
from evaluators.called_tools import (
    WANTS,
    Expected,
    is_call_of,
    judge_empty,
    judge_matches,
    read_calls,
    read_literal,
)
from evaluators.contract import Options, RowEvaluator
from evaluators.json_equals import find_difference
from evaluators.matching import match_greedy, match_most

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.called_tools import ToolCall
    from evaluators.contract import Fields, Verdict

_MAX_SHOWN = 60  # characters of an argument in a reason


class ExpectedCall(Expected):
    """A tool and the arguments it is to be called with."""

    args: dict[str, Any] = Field(validation_alias=AliasChoices("args", "arguments"))


class ToolCallArgsOptions(Options):
    """Options of ToolCallArgs."""

    compat: Literal["uipath"] | None = Field(
        default=None,
        description="`uipath`: calls may always have further arguments, each expected call takes the first "
        "that fits, and true equals 1",
    )
    tool_calls: list[ExpectedCall] = Field(
        validation_alias=AliasChoices("tool_calls", "toolCalls"),
        description='the expected calls: {"name": ..., "args": {...}}, with `id` of the tool if it has one',
    )
    strict: bool = Field(default=False, description="one expected call that was not made makes the score 0")
    subset: bool = Field(default=False, description="whether calls may have further arguments")
    case_sensitive: bool = Field(default=True, description="whether upper and lower case differ in texts")


def compare_arguments(options: ToolCallArgsOptions, fields: Fields) -> Verdict:
    """Score the share of expected calls that were made, every made call counting once, in any order.

    Arguments are compared as JSON values: 1 equals 1.0, the text "1" does not. Expected and made calls are
    paired so that most are matched. Without expected and made calls the score is 1, without either of
    them 0. The reason says which arguments of the nearest call differ, where one of that tool was made.
    """
    calls, expected = read_calls(fields), options.tool_calls
    empty = judge_empty(expected, calls)
    if empty is not None:
        return empty
    given = [_read_arguments(call, exact=options.compat is not None) for call in calls]
    fitting = [
        [n for n, call in enumerate(calls) if _fits(options, each, call, given[n])] for each in expected
    ]
    pairs = match_greedy(fitting) if options.compat else match_most(fitting)
    missed = [place for place in range(len(expected)) if place not in pairs]
    notes = {
        place: note
        for place in missed
        if (note := _explain(options, expected[place], list(zip(calls, given, strict=True)), pairs.values()))
    }
    return judge_matches(expected, pairs, strict=options.strict, notes=notes)


def _read_arguments(call: ToolCall, *, exact: bool) -> JsonValue:
    """Return the arguments as an object; what is none is kept, but in `exact` empty as UiPath has it."""
    value = call.arguments
    if isinstance(value, str):
        try:
            value = read_literal(value)
        except ValueError:
            value = None if exact else value
    none: JsonValue = {}
    return none if value is None else value


def _explain(
    options: ToolCallArgsOptions,
    expected: ExpectedCall,
    made: Sequence[tuple[ToolCall, JsonValue]],
    paired: Collection[int],
) -> str:
    """Say what keeps the nearest free call of the tool from matching; empty when none was made."""
    exact = options.compat is not None
    named = [
        (place, given)
        for place, (call, given) in enumerate(made)
        if is_call_of(call, expected.name, expected.id, exact=exact)
    ]
    free = [_list_differences(options, expected.args, given) for place, given in named if place not in paired]
    if free:
        return ", ".join(min(free, key=len))
    return "no further call" if named else ""


def _list_differences(options: ToolCallArgsOptions, wanted: dict[str, Any], given: JsonValue) -> list[str]:
    if not isinstance(given, dict):
        return [f"arguments are {name_kind(given)}, expected an object"]
    notes = [
        f"expected {key}={_show(value)}, got {f'{key}={_show(given[key])}' if key in given else 'none'}"
        for key, value in wanted.items()
        if key not in given or _differ(options, given[key], value)
    ]
    if options.subset or options.compat is not None:
        return notes
    return notes + [f"unexpected argument {key}" for key in given if key not in wanted]


def _differ(options: ToolCallArgsOptions, got: JsonValue, wanted: JsonValue) -> bool:
    if options.compat is not None:
        return got != wanted
    return find_difference(got, wanted, case_sensitive=options.case_sensitive) is not None


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _fits(options: ToolCallArgsOptions, expected: ExpectedCall, call: ToolCall, given: JsonValue) -> bool:
    exact = options.compat is not None
    if not isinstance(given, dict) or not is_call_of(call, expected.name, expected.id, exact=exact):
        return False
    return not _list_differences(options, expected.args, given)


EVALUATOR = RowEvaluator(
    name="ToolCallArgs",
    summary="Whether the expected tool calls were made, with their arguments.",
    aliases=("tool_call_args", "uipath-tool-call-args"),
    needs=("response",),
    wants=WANTS,
    json_fields=WANTS,
    options=ToolCallArgsOptions,
    threshold=0.5,
    judge=compare_arguments,
)
