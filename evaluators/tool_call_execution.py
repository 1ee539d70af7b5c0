"""ToolCallExecution: whether the expected tool calls were carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from assay.errors import CallError
from evaluators.contract import Options, RowEvaluator, Scale, Verdict
from evaluators.matching import match_most
from evaluators.tool_evidence import INDETERMINATE, ExpectedCall, fits_tool, read_evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evaluators.contract import Fields
    from evaluators.tool_evidence import SeenCall

_SUCCESS = range(200, 300)


class ToolCallExecutionOptions(Options):
    """Options of ToolCallExecution."""

    calls: list[ExpectedCall] = Field(
        min_length=1,
        description='expected calls, a repeated one as often: [{"tool": {"function_name": "f"}}]',
    )


def judge_execution(options: ToolCallExecutionOptions, fields: Fields) -> Verdict:
    """Score 1 where every expected call has a successful execution of its own, else 0.

    Success is an HTTP status from 200 to 299; other executions may stand beside. Only the `executions` of
    the tool evidence count: an answer's tool calls do not say what became of them. Options and codes are
    those of the published eval document schema 1.11.0.

    Raises:
        CallError: `toolCallEvidenceIndeterminate` where evidence is missing that could change the verdict;
            `bad_field` where it is not of its form.
    """
    evidence = fields["tool_evidence"]
    if evidence is None:
        raise CallError(INDETERMINATE, "no tool evidence")
    seen = read_evidence(evidence, "executions")
    offers = [_list_offers(expected, seen) for expected in options.calls]
    done = match_most([sure for sure, _ in offers])
    missing = sorted(set(range(len(offers))) - set(done))
    if missing and len(match_most([possible for _, possible in offers])) == len(offers):
        raise CallError(INDETERMINATE, "executions without a name or a status decide")
    names = [str(options.calls[place].tool) for place in missing]
    told = "not executed with success: " if names else "executed with success: "
    reason = told + ", ".join(names or [str(expected.tool) for expected in options.calls])
    return Verdict(
        score=float(not missing), reason=reason, details={"missing": names, "executions": len(seen)}
    )


def _list_offers(expected: ExpectedCall, seen: Sequence[SeenCall]) -> tuple[list[int], list[int]]:
    """Return which executions surely are this call with success, and which may be."""
    fits = [(place, fits_tool(expected.tool, call), call.status) for place, call in enumerate(seen)]
    sure = [place for place, fit, status in fits if fit and status in _SUCCESS]
    possible = [
        place for place, fit, status in fits if fit is not False and (status is None or status in _SUCCESS)
    ]
    return sure, possible


EVALUATOR = RowEvaluator(
    name="ToolCallExecution",
    summary="Whether every expected tool call was carried out with success.",
    aliases=("tool_call_execution", "toolCallExecution"),
    needs=(),
    wants=("tool_evidence",),
    json_fields=("tool_evidence",),
    options=ToolCallExecutionOptions,
    thresholds=Scale(1.0, 1.0),
    judge=judge_execution,
)
