"""UiPathTrajectory: whether an agent went about its task as it should, judged by a model from what it did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from assay.errors import CallError
from evaluators.contract import JudgeEvaluator
from evaluators.json_fields import read_field
from evaluators.judging import ask_judge
from evaluators.output_sides import write_text
from evaluators.prompt_files import read_prompt
from evaluators.reply_forms import ScoreForm
from evaluators.uipath_prompts import PERCENT, SHARE, JudgeSettings
from evaluators.uipath_semantic import rescale

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields, Verdict

PROMPT = read_prompt("uipath_trajectory")
SHOWN = ("user_input", "simulation_instructions", "expected_behavior", "run_history", "final_output")
HISTORIES = ("output_items", "messages", "tool_calls")
"""Where the history may stand; the first that is not empty is shown."""

_EMPTY = frozenset({"", "[]", "{}", "null"})


class TrajectoryOptions(JudgeSettings):
    """Options of UiPathTrajectory."""


async def ask_trajectory(options: TrajectoryOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score what the judge says of the run, as a share of its scale.

    An agent that called no tools is judged by its messages and its output; the details say which field the
    history stood in.

    Raises:
        CallError: `empty_response` without a call when there is neither a history nor an output; else as
            `ask_judge`.
    """
    source = next((name for name in HISTORIES if (fields[name] or "").strip() not in _EMPTY), None)
    output = fields["response"] if (fields["response"] or "").strip() else None
    if source is None and output is None:
        message = "neither a history nor an output, so the judge was not asked"
        raise CallError("empty_response", message, attempts=0)
    shown = {
        "user_input": fields["query"],
        "simulation_instructions": _find_instructions(fields["item"]),
        "expected_behavior": fields["expected_response"],
        "run_history": None if source is None else fields[source],
        "final_output": output,
    }
    rubric = options.write_rubric(PROMPT, ScoreForm(options.scale), SHOWN)
    verdict = rescale(await ask_judge(rubric, shown, options.sample(chat)), options.scale.high or 1.0)
    return replace(verdict, details={**(verdict.details or {}), "history": source or "none"})


def _find_instructions(item: str | None) -> str | None:
    """Return what a UiPath evaluation says of the simulation, in sets of either generation."""
    value = read_field(item, "item")
    if not isinstance(value, dict):
        return None
    strategy = _pick(value, "mockingStrategy", "mocking_strategy")
    inner = strategy.get("prompt") if isinstance(strategy, dict) else None
    told = _pick(value, "simulationInstructions", "simulation_instructions") or inner
    return write_text(told) if told else None


def _pick(holder: dict[str, JsonValue], *names: str) -> JsonValue:
    return next((holder[name] for name in names if holder.get(name) is not None), None)


EVALUATOR = JudgeEvaluator(
    name=PROMPT.head.name,
    summary=PROMPT.head.summary,
    aliases=PROMPT.head.aliases,
    needs=("expected_response",),
    wants=("query", "response", "item", *HISTORIES),
    options=TrajectoryOptions,
    scale=SHARE,
    threshold=0.5,
    ask=ask_trajectory,
    rubrics=(TrajectoryOptions().write_rubric(PROMPT, ScoreForm(PERCENT), SHOWN),),
)
