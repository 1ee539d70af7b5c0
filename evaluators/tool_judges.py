"""Tool judges: a model looks at the tool calls of an agent, all of them or one side of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from assay.errors import NotApplicableError
from evaluators.judging import Rubric, ask_judge, build_rubric
from evaluators.prompt_files import make_judge, read_prompt
from evaluators.tool_trace import (
    TRACE_FIELDS,
    check_calls,
    dump_steps,
    list_definitions,
    read_trace,
)

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Evaluator, Fields, Options, Verdict
    from evaluators.tool_trace import Trace

STEMS = (
    "tool_call_accuracy",
    "tool_selection",
    "tool_input_accuracy",
    "tool_output_utilization",
    "tool_call_success",
)
"""Their prompt files."""
NEED_RESULTS = frozenset({"tool_output_utilization", "tool_call_success"})
"""Those that have nothing to judge where no result is known."""
NO_RESULTS = "no results of tool calls"
SHOWN = ("query", "messages", "tool_calls", "tool_definitions", "response")
JSON_FIELDS = (*TRACE_FIELDS, "tool_definitions")


@dataclass(frozen=True, slots=True)
class _Question:
    """What one of them asks.

    Attributes:
        rubric: What the judge is told.
        needs_results: Whether it judges results.
    """

    rubric: Rubric
    needs_results: bool


def show_calls(fields: Fields, trace: Trace) -> dict[str, str | None]:
    """Return the blocks a judge of tool calls is shown: calls with their results, and what surrounds them.

    A blank answer is left out, as calls can stand without one; so are definitions that define nothing.
    """
    response, definitions = fields["response"], fields["tool_definitions"]
    return {
        "query": fields["query"],
        "messages": fields["messages"],
        "tool_calls": dump_steps(trace.steps),
        "tool_definitions": definitions if list_definitions(definitions) else None,
        "response": response if response and response.strip() else None,
    }


async def _ask(question: _Question, _options: Options, fields: Fields, chat: Chat) -> Verdict:
    """Ask about the calls; the details say how many there were, and how many results.

    Raises:
        NotApplicableError: There is nothing to judge.
        CallError: As `ask_judge`, or `bad_field` where a field is not of its form.
    """
    trace = read_trace(fields)
    check_calls(trace, fields["tool_definitions"])
    if question.needs_results and not trace.results:
        raise NotApplicableError(NO_RESULTS)
    verdict = await ask_judge(question.rubric, show_calls(fields, trace), chat)
    counted = {"tool_calls": len(trace.calls), "tool_results": len(trace.results)}
    return replace(verdict, details={**counted, **(verdict.details or {})})


def _make(stem: str) -> Evaluator:
    prompt = read_prompt(stem)
    head = prompt.head
    rubric = build_rubric(prompt.text, head.form, SHOWN, head.max_output_tokens)
    ask = partial(_ask, _Question(rubric, stem in NEED_RESULTS))
    return replace(make_judge(prompt), json_fields=JSON_FIELDS, ask=ask, rubrics=(rubric,))


EVALUATORS: tuple[Evaluator, ...] = tuple(_make(stem) for stem in STEMS)
