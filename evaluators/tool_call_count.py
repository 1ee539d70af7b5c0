"""ToolCallCount: whether tools were called as often as expected."""

from __future__ import annotations

import operator
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

from pydantic import AliasChoices, Field

from assay.errors import CallError, ConfigError
from evaluators.called_tools import WANTS, is_call_of, judge_empty, read_calls, sanitise
from evaluators.contract import Options, RowEvaluator, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evaluators.called_tools import ToolCall
    from evaluators.contract import Fields

COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
}


class ToolCallCountOptions(Options):
    """Options of ToolCallCount."""

    compat: Literal["uipath"] | None = Field(
        default=None,
        description="`uipath`: without any call the score is 0 even where none was to be made, and names of "
        "calls are not brought into the form that model APIs take",
    )
    tool_calls_count: dict[str, list[Any]] = Field(
        validation_alias=AliasChoices("tool_calls_count", "toolCallsCount"),
        description='name or id of a tool to a comparison and a number: {"search": [">=", 1]}',
    )
    strict: bool = Field(default=False, description="one count that does not hold makes the score 0")

    def check_setup(self) -> None:
        """Refuse counts that are no comparison with a number.

        Raises:
            ConfigError: As said. In `compat` an unknown comparison is the error of its row, as there.
        """
        for name, count in self.tool_calls_count.items():
            match count:
                case [str(), bool()]:
                    pass
                case [str(comparison), int()] if self.compat or comparison in COMPARISONS:
                    continue
                case _:
                    pass
            raise ConfigError(
                f"ToolCallCount.tool_calls_count.{name}: got {count!r}, accepted is a comparison "
                f"({', '.join(COMPARISONS)}) with a whole number"
            )


def compare_counts(options: ToolCallCountOptions, fields: Fields) -> Verdict:
    """Score the share of counts that hold; `strict` takes all of them or nothing.

    A tool that was not called counts 0. Without expected counts the score is 1 when no call was made,
    else 0.

    Raises:
        CallError: `bad_option`, when a comparison is not known.
    """
    calls, expected = read_calls(fields), options.tool_calls_count
    empty = judge_empty(expected, calls)
    if empty is not None and (options.compat or not expected):
        return empty
    counted = {name: _count(options, calls, name) for name in expected}
    failed: list[str] = []
    for name, (comparison, number) in expected.items():
        if comparison not in COMPARISONS:
            raise CallError("bad_option", f"unknown comparison {comparison!r} for {name}")
        if not COMPARISONS[comparison](counted[name], number):
            failed.append(f"{name} {counted[name]}, expected {comparison} {number}")
    share = 1 - len(failed) / len(expected)
    return Verdict(
        score=float(not failed) if options.strict else share,
        reason="; ".join(failed) or None,
        details={"counts": counted},
    )


def _count(options: ToolCallCountOptions, calls: Sequence[ToolCall], name: str) -> int:
    if options.compat is None:
        return sum(is_call_of(call, name, None, exact=False) for call in calls)
    made = Counter(call.tool_id or call.name for call in calls)
    return made[name] if name in made else made[sanitise(name, exact=True)]


EVALUATOR = RowEvaluator(
    name="ToolCallCount",
    summary="Whether tools were called as often as expected.",
    aliases=("tool_call_count", "uipath-tool-call-count"),
    needs=("response",),
    wants=WANTS,
    json_fields=WANTS,
    options=ToolCallCountOptions,
    threshold=0.5,
    judge=compare_counts,
)
