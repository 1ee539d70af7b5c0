"""ToolCallOutput: whether tools gave back what was expected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import AliasChoices, Field

from assay.contracts.json_text import dump_json, parse_json
from assay.errors import CallError
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
    from collections.abc import Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.called_tools import ToolCall
    from evaluators.contract import Fields, Verdict


class ExpectedOutput(Expected):
    """A tool and what it is to give back: text, or JSON written as text."""

    output: str


class ToolCallOutputOptions(Options):
    """Options of ToolCallOutput."""

    compat: Literal["uipath"] | None = Field(
        default=None,
        description="`uipath`: of a JSON object only `content` counts, each expected output takes the first "
        "call that fits, and strict ends at the first call of the tool with another output",
    )
    tool_outputs: list[ExpectedOutput] = Field(
        validation_alias=AliasChoices("tool_outputs", "toolOutputs"),
        description='the outputs: {"name": ..., "output": text}, with `id` of the tool if it has one',
    )
    strict: bool = Field(default=False, description="one expected output that is missing makes the score 0")
    case_sensitive: bool = Field(default=True, description="whether upper and lower case differ in texts")


def compare_outputs(options: ToolCallOutputOptions, fields: Fields) -> Verdict:
    """Score the share of expected outputs that the tools gave back, every call counting once, in any order.

    Outputs are compared as JSON, which may also be written as Python prints it, else as texts. The content
    of a JSON object with `content` counts as its output too. Expected outputs and calls are paired so that
    most are matched. Without expected outputs and calls the score is 1, without either of them 0.

    Raises:
        CallError: `missing_field`, when there are calls but the answer tells the output of none.
    """
    calls, expected = read_calls(fields), options.tool_outputs
    empty = judge_empty(expected, calls)
    if empty is not None:
        return empty
    if options.compat:
        return _compare_exact(options, calls)
    if all(call.output is None for call in calls):
        raise CallError("missing_field", "output_items hold no output of a tool")
    forms = [_list_forms(call.output) for call in calls]
    fitting = [
        [n for n, call in enumerate(calls) if _fits(options, each, call, forms[n])] for each in expected
    ]
    return judge_matches(expected, match_most(fitting), strict=options.strict)


def _fits(
    options: ToolCallOutputOptions, expected: ExpectedOutput, call: ToolCall, forms: Sequence[JsonValue]
) -> bool:
    if not is_call_of(call, expected.name, expected.id, exact=False):
        return False
    wanted, exact = _read(expected.output), options.case_sensitive
    return any(find_difference(form, wanted, case_sensitive=exact) is None for form in forms)


def _list_forms(output: JsonValue) -> list[JsonValue]:
    """Return what an output may be compared as; nothing where it is not told."""
    if output is None:
        return []
    value = _read(output) if isinstance(output, str) else output
    return [value, _reread(value["content"])] if isinstance(value, dict) and "content" in value else [value]


def _reread(value: JsonValue) -> JsonValue:
    return _read(value) if isinstance(value, str) else value


def _read(text: str) -> JsonValue:
    try:
        return read_literal(text)
    except ValueError:
        return text


def _compare_exact(options: ToolCallOutputOptions, calls: Sequence[ToolCall]) -> Verdict:
    expected = options.tool_outputs
    texts = [_write_exact(call.output) for call in calls]
    named = [
        [n for n, call in enumerate(calls) if is_call_of(call, each.name, each.id, exact=True)]
        for each in expected
    ]
    if options.strict:  # the first free call of a tool decides
        first = match_greedy(named).items()
        pairs = {place: made for place, made in first if texts[made] == expected[place].output}
    else:
        pairs = match_greedy(
            [[n for n in made if texts[n] == expected[k].output] for k, made in enumerate(named)]
        )
    return judge_matches(expected, pairs, strict=options.strict)


def _write_exact(output: JsonValue) -> str:
    text = "" if output is None else output if isinstance(output, str) else dump_json(output)
    try:
        value = parse_json(text)
    except ValueError:
        return text
    if not isinstance(value, dict):
        return text
    content = value.get("content")
    return str(content) if content else ""


EVALUATOR = RowEvaluator(
    name="ToolCallOutput",
    summary="Whether the tools that were called gave back the expected outputs.",
    aliases=("tool_call_output", "uipath-tool-call-output"),
    needs=("response",),
    wants=WANTS,
    json_fields=WANTS,
    options=ToolCallOutputOptions,
    threshold=0.5,
    judge=compare_outputs,
)
