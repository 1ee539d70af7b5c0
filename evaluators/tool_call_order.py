"""ToolCallOrder: whether tools were called in the expected order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import AliasChoices, Field

from evaluators.called_tools import WANTS, is_call_of, judge_empty, read_calls
from evaluators.contract import Options, RowEvaluator, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evaluators.called_tools import ToolCall
    from evaluators.contract import Fields


class ToolCallOrderOptions(Options):
    """Options of ToolCallOrder."""

    compat: Literal["uipath"] | None = Field(
        default=None, description="`uipath`: a call that carries the id of its tool is not known by name"
    )
    tool_calls_order: list[str] = Field(
        validation_alias=AliasChoices("tool_calls_order", "toolCallsOrder"),
        description="names or ids of tools in the order they are to be called",
    )
    strict: bool = Field(default=False, description="exactly these calls, no others between or after them")


def compare_order(options: ToolCallOrderOptions, fields: Fields) -> Verdict:
    """Score the longest common subsequence of made and expected calls by the number of expected ones.

    Calls that are not expected do no harm unless `strict`, which scores 1 or 0. Without expected and made
    calls the score is 1, without either of them 0.
    """
    calls, expected = read_calls(fields), options.tool_calls_order
    empty = judge_empty(expected, calls)
    if empty is not None:
        return empty
    exact = options.compat is not None
    same = [[is_call_of(call, name, None, exact=exact) for name in expected] for call in calls]
    if options.strict:
        equal = len(calls) == len(expected) and all(row[place] for place, row in enumerate(same))
        return _say(expected, calls, list(range(len(expected))) if equal else [])
    return _say(expected, calls, find_common(same))


def find_common(same: Sequence[Sequence[bool]]) -> list[int]:
    """Return the longest common subsequence of two lists, as places in the second.

    Args:
        same: For each member of the first, whether it equals each of the second; neither is empty.
    """
    width = len(same[0])
    longest = [[0] * (width + 1)]
    for row in same:
        above, here = longest[-1], [0]
        for place, equal in enumerate(row):
            here.append(above[place] + 1 if equal else max(above[place + 1], here[place]))
        longest.append(here)
    found: list[int] = []
    left, right = len(same), width
    while left and right:
        if same[left - 1][right - 1]:
            left, right = left - 1, right - 1
            found.append(right)
        elif longest[left - 1][right] > longest[left][right - 1]:
            left -= 1
        else:
            right -= 1
    return found[::-1]


def _say(expected: Sequence[str], calls: Sequence[ToolCall], found: Sequence[int]) -> Verdict:
    missed = [name for place, name in enumerate(expected) if place not in set(found)]
    return Verdict(
        score=len(found) / len(expected),
        reason=f"not in order: {', '.join(missed)}" if missed else None,
        details={
            "lcs": [expected[place] for place in found],
            "calls": [call.tool_id or call.name for call in calls],
        },
    )


EVALUATOR = RowEvaluator(
    name="ToolCallOrder",
    summary="Whether the expected tools were called in the expected order.",
    aliases=("tool_call_order", "uipath-tool-call-order"),
    needs=("response",),
    wants=WANTS,
    json_fields=WANTS,
    options=ToolCallOrderOptions,
    threshold=0.5,
    judge=compare_order,
)
