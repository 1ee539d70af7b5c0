"""Tool evidence: which tools an agent called, and whether the expected calls are among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from assay.errors import CallError
from evaluators.contract import Options
from evaluators.json_fields import read_field, read_objects, read_text, read_whole, refuse_value

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

INDETERMINATE = "toolCallEvidenceIndeterminate"
_JOINTS = (".", "-", "__")  # between plugin and function in the name of a call


class ToolIdentity(Options):
    """Which tool."""

    plugin_name: str | None = Field(
        default=None, min_length=1, description="its plugin; without it the function of any plugin"
    )
    function_name: str = Field(min_length=1, description="its function")

    def __str__(self) -> str:
        """Write `plugin.function`."""
        return self.function_name if self.plugin_name is None else f"{self.plugin_name}.{self.function_name}"


class ExpectedCall(Options):
    """One expected call."""

    id: str | None = Field(default=None, min_length=1, description="a label of the user's own")
    tool: ToolIdentity = Field(description="which tool")


@dataclass(frozen=True, slots=True)
class SeenCall:
    """One call that was observed.

    Attributes:
        plugin: Its plugin; None when the evidence does not tell.
        function: Its function; None when the evidence does not tell.
        name: The name a model called instead of both.
        status: HTTP status of its execution; None when the evidence does not tell.
    """

    plugin: str | None = None
    function: str | None = None
    name: str | None = None
    status: int | None = None

    def __str__(self) -> str:
        """Write the name, `?` for what is not told."""
        return self.name if self.name is not None else f"{self.plugin or '?'}.{self.function or '?'}"


def read_evidence(text: str, kind: Literal["selected_functions", "executions"]) -> list[SeenCall]:
    """Return the calls of one kind in a JSON object of tool evidence.

    Raises:
        CallError: `toolCallEvidenceIndeterminate` where the evidence says that it has none of this kind;
            `bad_field` where it is not of its form.
    """
    evidence = read_field(text, "tool_evidence")
    if not isinstance(evidence, dict):
        raise refuse_value("tool_evidence", evidence, "an object with selected_functions and executions")
    calls = evidence.get(kind)
    if calls is None:
        fault = evidence.get("evidence_error")
        raise CallError(INDETERMINATE, fault if isinstance(fault, str) else f"no evidence of {kind}")
    name = f"tool_evidence.{kind}"
    seen = read_objects(calls, name, "a list of objects with plugin_name and function_name")
    return [_read_call(call, f"{name}[{place}]") for place, call in enumerate(seen)]


def fits_tool(tool: ToolIdentity, call: SeenCall) -> bool | None:
    """Say whether a call is one of this tool; None when the evidence leaves it open.

    The name of a model's call fits as `plugin.function`, `plugin-function` or `plugin__function`, the bare
    function only where no plugin is asked for. Names are compared exactly.
    """
    if call.name is not None:
        joined = {f"{tool.plugin_name}{joint}{tool.function_name}" for joint in _JOINTS}
        return call.name in ({tool.function_name} if tool.plugin_name is None else joined)
    asked = [(tool.function_name, call.function)]
    if tool.plugin_name is not None:
        asked.append((tool.plugin_name, call.plugin))
    if any(got is not None and got != wanted for wanted, got in asked):
        return False
    return None if any(got is None for _, got in asked) else True


def _read_call(call: dict[str, JsonValue], place: str) -> SeenCall:
    return SeenCall(
        plugin=read_text(call.get("plugin_name"), f"{place}.plugin_name"),
        function=read_text(call.get("function_name"), f"{place}.function_name"),
        status=read_whole(call.get("response_status"), f"{place}.response_status"),
    )
