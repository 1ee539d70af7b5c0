"""Composites: several judges in one call, OutputQuality of answers and ToolUseQuality of tool calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, cast

from evaluators.groundedness import BLOCK, NO_SOURCE, find_source
from evaluators.judging import ask_judge, build_rubric
from evaluators.part_forms import Part, PartsForm
from evaluators.prompt_files import make_judge, read_prompt
from evaluators.tool_judges import JSON_FIELDS, NEED_RESULTS, NO_RESULTS, SHOWN, STEMS, show_calls
from evaluators.tool_trace import check_calls, check_final, read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Options, Verdict
    from evaluators.judging import Rubric
    from evaluators.part_forms import Grade

    Skips = Mapping[str, str]

ROOT = "criteria"
GROUNDEDNESS = "groundedness"


@dataclass(frozen=True, slots=True)
class Composite:
    """Judges that are asked together.

    Attributes:
        stem: Its own prompt file.
        members: The prompt files of the judges, in order.
        shown: The blocks there may be.
    """

    stem: str
    members: tuple[str, ...]
    shown: tuple[str, ...]


OUTPUT = Composite(
    "output_quality",
    ("fluency", "coherence", "intent_resolution", GROUNDEDNESS, "task_adherence", "task_completion"),
    ("query", "response", "messages", "output_items", "tool_definitions", BLOCK),
)
TOOLS = Composite("tool_use_quality", STEMS, SHOWN)


async def ask_output(_options: Options, fields: Fields, chat: Chat) -> Verdict:
    """Judge an answer; without a source it is not judged by groundedness.

    Raises:
        NotApplicableError: The answer is an intermediate one.
        CallError: As `ask_judge`, or `bad_field` where a field is not of its form.
    """
    trace = read_trace({**fields, "tool_calls": None})
    check_final(trace)
    found = find_source(fields, trace)
    name, text = found or (None, None)
    shown = {block: fields.get(block) for block in OUTPUT.shown} | {BLOCK: text}
    verdict = await ask_members(OUTPUT, {} if found else {GROUNDEDNESS: NO_SOURCE}, shown, chat)
    return replace(verdict, details={"source": name, **(verdict.details or {})})


async def ask_tools(_options: Options, fields: Fields, chat: Chat) -> Verdict:
    """Judge tool calls; without results two of the judges have nothing to say.

    Raises:
        NotApplicableError: There is nothing to judge.
        CallError: As `ask_judge`, or `bad_field` where a field is not of its form.
    """
    trace = read_trace(fields)
    check_calls(trace, fields["tool_definitions"])
    skips = {} if trace.results else dict.fromkeys(sorted(NEED_RESULTS), NO_RESULTS)
    return await ask_members(TOOLS, skips, show_calls(fields, trace), chat)


async def ask_members(
    composite: Composite, skips: Skips, shown: Mapping[str, str | None], chat: Chat
) -> Verdict:
    """Ask the judges that apply in one call; the verdict is 1 when all of them pass, else 0.

    Args:
        composite: Who is asked.
        skips: Judge that does not apply to why; not all of them.
        shown: Block to text.
        chat: Whom to ask.

    Raises:
        CallError: As `ask_judge`.
    """
    asked = tuple(each for each in composite.members if each not in skips)
    verdict = await ask_judge(build_question(composite, asked), shown, chat)
    details = dict(verdict.details or {})
    grades = cast("Mapping[str, Grade]", details.pop(ROOT))
    failed = {name: grade for name, grade in grades.items() if not _passes(name, grade)}
    told: dict[str, object] = {}
    for name in composite.members:
        told |= _describe_skip(name, skips[name]) if name in skips else _describe(name, grades[name])
    reason = "; ".join(f"{name} {grade.score:g}: {grade.reason}" for name, grade in failed.items())
    passing = f"all that apply pass: {', '.join(asked)}"
    return replace(verdict, score=float(not failed), reason=reason or passing, details={**told, **details})


@cache
def build_question(composite: Composite, asked: tuple[str, ...]) -> Rubric:
    """Put the rubrics of judges together under that of their composite."""
    own = read_prompt(composite.stem)
    prompts = {name: read_prompt(name) for name in asked}
    sections = [f"# Criterion `{name}`\n\n{prompt.text}" for name, prompt in prompts.items()]
    parts = {name: Part(prompt.head.grades) for name, prompt in prompts.items()}
    shown = [block for block in composite.shown if block != BLOCK or GROUNDEDNESS in asked]
    text = "\n\n".join([own.text, *sections])
    return build_rubric(text, PartsForm(ROOT, parts), shown, own.head.max_output_tokens)


@cache
def _find_threshold(name: str) -> float:
    return read_prompt(name).head.passes_at


def _passes(name: str, grade: Grade) -> bool:
    return grade.score is not None and grade.score >= _find_threshold(name)


def _describe(name: str, grade: Grade) -> dict[str, object]:
    return {
        f"{name}_score": grade.score,
        f"{name}_result": "pass" if _passes(name, grade) else "fail",
        f"{name}_reason": grade.reason,
        f"{name}_status": "completed",
    }


def _describe_skip(name: str, reason: str) -> dict[str, object]:
    return {
        f"{name}_score": None,
        f"{name}_result": "not_applicable",
        f"{name}_reason": f"Not applicable: {reason}",
        f"{name}_status": "skipped",
    }


OUTPUT_QUALITY = replace(
    make_judge(read_prompt(OUTPUT.stem)),
    json_fields=("output_items", "retrieval"),
    ask=ask_output,
    rubrics=(build_question(OUTPUT, OUTPUT.members),),
)
TOOL_USE_QUALITY = replace(
    make_judge(read_prompt(TOOLS.stem)),
    json_fields=JSON_FIELDS,
    ask=ask_tools,
    rubrics=(build_question(TOOLS, TOOLS.members),),
)
