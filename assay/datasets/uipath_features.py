"""What a UiPath set asks for beyond scoring (simulation, mocks, models): kept, named, and not run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.datasets.uipath_evaluators import pick, to_snake

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.datasets.m365_parts import Part, Remarks

_INPUT = "kept, not run yet: inputs are not generated, and empty ones are no question"
_TOOLS = "kept, not run yet: tools are not simulated"
_SETTINGS = "kept, not run yet: the agent answers as it is set up"
_LINES = "kept, not run yet: texts are compared whole"


def _spell(features: Mapping[str, str]) -> dict[str, str]:
    """Add the snake_case spelling of every field."""
    return {name: what for camel, what in features.items() for name in (camel, to_snake(camel))}


EVALUATION_FEATURES = _spell(
    {
        "mockingStrategy": _TOOLS,
        "simulateTools": _TOOLS,
        "toolsToSimulate": _TOOLS,
        "inputMockingStrategy": _INPUT,
        "simulateInput": _INPUT,
        "conversationalInputs": "kept, not run yet: the conversation before the question is not given",
        "conversationalExpectedOutput": "kept, not run yet: nothing compares with it",
    }
)
SET_FEATURES = _spell(
    {
        "modelSettings": _SETTINGS,
        "agentMemoryEnabled": _SETTINGS,
        "agentMemorySettings": _SETTINGS,
        "lineByLineEvaluation": _LINES,
    }
)


def remark_features(part: Part, features: Mapping[str, str], remarks: Remarks) -> None:
    """Remark on each of `features` that a set or an evaluation asks for; empty and false do not ask."""
    if features.keys().isdisjoint(part.members):
        return
    for name, what in features.items():
        if part.members.get(name):
            remarks.add("not_run_yet", what, part, name, strict=False)


def is_simulated(part: Part) -> bool:
    """Whether the inputs of an evaluation are to be generated."""
    return any(pick(part.members, name) for name in ("inputMockingStrategy", "simulateInput"))
