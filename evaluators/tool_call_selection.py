"""ToolCallSelection: whether the agent chose the expected tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pydantic import Field

from assay.errors import CallError
from evaluators.called_tools import list_calls
from evaluators.contract import Options, RowEvaluator, Scale, Verdict
from evaluators.json_fields import read_field
from evaluators.matching import match_most
from evaluators.tool_evidence import (
    INDETERMINATE,
    ExpectedCall,
    SeenCall,
    fits_tool,
    read_evidence,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evaluators.contract import Fields
    from evaluators.tool_evidence import ToolIdentity

_Fits: TypeAlias = "list[bool | None]"  # of one call: whether it is one of each expected tool


class ToolCallSelectionOptions(Options):
    """Options of ToolCallSelection."""

    calls: list[ExpectedCall] = Field(
        min_length=1, description='expected tools: [{"tool": {"plugin_name": "p", "function_name": "f"}}]'
    )
    allow_additional_calls: bool = Field(default=True, description="whether other tools may be chosen too")


def judge_selection(options: ToolCallSelectionOptions, fields: Fields) -> Verdict:
    """Score 1 where every expected tool was chosen, and no other unless others are allowed; else 0.

    Order and number do not count. What was chosen are the `selected_functions` of the tool evidence; without
    any evidence, the answer's own tool calls, and none where the answer's items hold no call. Options and
    codes are those of the published eval document schema 1.11.0.

    Raises:
        CallError: `toolCallEvidenceIndeterminate` where evidence is missing that could change the verdict;
            `bad_field` where evidence or calls are not of their form.
    """
    seen, source = _read_selected(fields)
    tools = list(dict.fromkeys(call.tool for call in options.calls))
    rows: list[_Fits] = [[fits_tool(tool, call) for tool in tools] for call in seen]
    missing = [place for place in range(len(tools)) if not any(row[place] for row in rows)]
    extra = _list_others(seen, rows)
    strict = not options.allow_additional_calls
    barred = extra * strict
    could_pass = not barred and _can_cover(_drop_implied(tools, missing), rows)
    could_fail = bool(missing or barred) or (strict and any(True not in row for row in rows))
    if could_pass and could_fail:
        raise CallError(INDETERMINATE, "calls that the evidence does not identify decide")
    lacking = [str(tools[place]) for place in missing]
    details = {"missing": lacking, "additional": list(dict.fromkeys(extra)), "source": source}
    return Verdict(score=float(could_pass), reason=_explain(tools, lacking, barred), details=details)


def _list_others(seen: Sequence[SeenCall], rows: Sequence[_Fits]) -> list[str]:
    """Return the calls that are surely none of the expected tools."""
    return [str(call) for call, row in zip(seen, rows, strict=True) if not {True, None} & set(row)]


def _drop_implied(tools: Sequence[ToolIdentity], missing: Sequence[int]) -> list[int]:
    """Leave out a function of any plugin where that of a certain plugin is missing too: one call is both."""
    named = {tools[place].function_name for place in missing if tools[place].plugin_name is not None}
    return [
        place
        for place in missing
        if tools[place].plugin_name is not None or tools[place].function_name not in named
    ]


def _can_cover(missing: Sequence[int], rows: Sequence[_Fits]) -> bool:
    """Say whether calls that the evidence leaves open could be all missing tools, one each."""
    offers = [[call for call, row in enumerate(rows) if row[place] is None] for place in missing]
    return len(match_most(offers)) == len(offers)


def _read_selected(fields: Fields) -> tuple[list[SeenCall], str]:
    evidence, calls = fields["tool_evidence"], fields["tool_calls"]
    if evidence is not None:
        return read_evidence(evidence, "selected_functions"), "tool_evidence"
    if calls is None and fields["output_items"] is None:
        raise CallError(INDETERMINATE, "no tool evidence, and no tool calls in the answer")
    made = list_calls(read_field(calls, "tool_calls"))
    return [SeenCall(name=name) for name, _ in made], "tool_calls"


def _explain(tools: Sequence[ToolIdentity], missing: Sequence[str], barred: Sequence[str]) -> str:
    parts = [f"not selected: {', '.join(missing)}"] if missing else []
    parts += [f"selected, but not expected: {', '.join(dict.fromkeys(barred))}"] if barred else []
    return "; ".join(parts) or f"selected as expected: {', '.join(map(str, tools))}"


EVALUATOR = RowEvaluator(
    name="ToolCallSelection",
    summary="Whether the agent chose the expected tools.",
    aliases=("tool_call_selection", "toolCallSelection"),
    needs=(),
    wants=("tool_evidence", "tool_calls", "output_items"),
    json_fields=("tool_evidence", "tool_calls", "output_items"),
    options=ToolCallSelectionOptions,
    thresholds=Scale(1.0, 1.0),
    judge=judge_selection,
)
