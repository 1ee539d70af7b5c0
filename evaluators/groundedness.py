"""Groundedness: whether an answer rests on its context, what it was given or what is known to be right."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.contracts.json_text import dump_json
from assay.errors import NotApplicableError
from evaluators.judging import ask_judge, build_rubric
from evaluators.prompt_files import make_judge, read_prompt
from evaluators.retrieval import list_hits, read_executions
from evaluators.tool_trace import check_final, dump_steps, read_trace

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Options, Verdict
    from evaluators.tool_trace import Trace

PROMPT = read_prompt("groundedness")
BLOCK = "source"  # what the judge sees the material under, whichever it is
RUBRIC = build_rubric(PROMPT.text, PROMPT.head.form, ("query", "response", BLOCK))
NO_SOURCE = "nothing to rest on: no context, retrieval, tool results or expected response"


async def ask(_options: Options, fields: Fields, chat: Chat) -> Verdict:
    """Grade the answer against its source; the details name which it was.

    Raises:
        NotApplicableError: There is no source, or the answer is an intermediate one.
        CallError: As `ask_judge`, or `bad_field` where items or executions are not of their form.
    """
    trace = read_trace({**fields, "tool_calls": None})
    check_final(trace)
    found = find_source(fields, trace)
    if found is None:
        raise NotApplicableError(NO_SOURCE)
    name, text = found
    shown = {"query": fields["query"], "response": fields["response"], BLOCK: text}
    verdict = await ask_judge(RUBRIC, shown, chat)
    return replace(verdict, details={"source": name, **(verdict.details or {})})


def find_source(fields: Fields, trace: Trace) -> tuple[str, str] | None:
    """Return what an answer is to rest on: context, else what it was given, else what is known to be right.

    Args:
        fields: `context`, `retrieval` and `expected_response` of the row.
        trace: Its tool results.

    Returns:
        The name of the source and its text; `retrieval+tool_results` where there are both. None: there is
        nothing.

    Raises:
        CallError: `bad_field`, when the executions of retrieval are not of their form.
    """
    context, expected = fields["context"], fields["expected_response"]
    if context and context.strip():
        return "context", context
    given = {"retrieval": _dump_extracts(fields["retrieval"]), "tool_results": _dump_results(trace)}
    parts = {name: text for name, text in given.items() if text is not None}
    if parts:
        return "+".join(parts), "\n".join(parts.values())
    return ("expected_response", expected) if expected and expected.strip() else None


def _dump_extracts(retrieval: str | None) -> str | None:
    """Write the hits that hold text, best first, as a JSON list."""
    hits = list_hits(read_executions(retrieval, None), sys.maxsize)
    told = [
        {"rank": hit.rank, "url": hit.url, "extracts": [*hit.extracts]}
        for hit in hits
        if any(extract.strip() for extract in hit.extracts)
    ]
    return dump_json(told) if told else None


def _dump_results(trace: Trace) -> str | None:
    """Write the steps that gave something back as a JSON list."""
    told = [step for step in trace.steps if step.result or isinstance(step.result, bool | int | float)]
    return dump_steps(told) if told else None


EVALUATOR = replace(make_judge(PROMPT), json_fields=("output_items", "retrieval"), ask=ask, rubrics=(RUBRIC,))
