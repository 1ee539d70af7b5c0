"""QualityGrader: whether an answer is good enough in all respects, in one call or two."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.errors import NotApplicableError
from evaluators.contract import JudgeEvaluator, Options, Scale, Verdict
from evaluators.judging import ask_judge, build_rubric
from evaluators.part_forms import RecordForm
from evaluators.prompt_files import read_prompt
from evaluators.tool_trace import check_final, read_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.chat import Chat
    from evaluators.contract import Fields

    Details = Mapping[str, object]

INCOMPLETE = "conversation_incomplete"
ABSTENTION = "abstention"
LIMITS: Mapping[str, float] = {
    "relevance": 2.5,
    "answer_completeness": 1.5,
    "groundedness": 2.5,
    "context_coverage": 1.5,
}
"""What each grade has to be above."""
_GRADES, _SHARES = Scale(1.0, 5.0), Scale(0.0, 3.0)
RESPONSE = build_rubric(
    read_prompt("quality_response").text,
    RecordForm((ABSTENTION, INCOMPLETE), {"relevance": _GRADES, "answer_completeness": _SHARES}),
    ("query", "response"),
)
GROUNDING = build_rubric(
    read_prompt("quality_grounding").text,
    RecordForm((), {"groundedness": _GRADES, "context_coverage": _SHARES}),
    ("query", "response", "context"),
)


async def ask(_options: Options, fields: Fields, chat: Chat) -> Verdict:
    """Grade the answer, and against its context where there is one and the answer was good enough so far.

    Raises:
        NotApplicableError: There is nothing to answer yet, or the answer is an intermediate one.
        CallError: As `ask_judge`, or `bad_field` where items are not of their form.
    """
    check_final(read_trace({**fields, "tool_calls": None}))
    shown = {"query": fields["query"], "response": fields["response"]}
    first = await ask_judge(RESPONSE, shown, chat)
    found = first.details or {}
    if found[INCOMPLETE]:
        raise NotApplicableError(f"there is nothing to answer yet: {first.reason}")
    context = fields["context"]
    if list_faults(found) or not (context and context.strip()):
        return _conclude([first])
    return _conclude([first, await ask_judge(GROUNDING, {**shown, "context": context}, chat)])


def list_faults(found: Details) -> list[str]:
    """Return what keeps an answer from passing, of the grades that were given."""
    faults = ["the answer abstains"] if found.get(ABSTENTION) else []
    for name, limit in LIMITS.items():
        grade = found.get(name)
        if isinstance(grade, float) and grade <= limit:
            faults.append(f"{name} {grade:g} is not above {limit:g}")
    return faults


def _conclude(stages: list[Verdict]) -> Verdict:
    """Make one verdict of the stages; grades that were not asked for are null in the details."""
    details: dict[str, object] = {}
    for stage in stages:
        details |= stage.details or {}
    faults = list_faults(details)
    reasons = [stage.reason or "" for stage in stages]
    sha = hashlib.sha256("".join(stage.prompt_sha or "" for stage in stages).encode()).hexdigest()
    return replace(
        stages[0],
        score=float(not faults),
        reason="; ".join([*faults, *reasons]),
        details={**dict.fromkeys(LIMITS), **details, "faults": faults, "reasons": reasons},
        prompt_sha=stages[0].prompt_sha if len(stages) == 1 else sha,
    )


EVALUATOR = JudgeEvaluator(
    name="QualityGrader",
    summary="Whether an answer is relevant, complete and rests on its context, judged by a model.",
    aliases=("quality_grader", "builtin.quality_grader", "QualityGraderEvaluator"),
    needs=("query", "response"),
    wants=("context", "output_items"),
    json_fields=("output_items",),
    options=Options,
    scale=Scale(0.0, 1.0, whole=True),
    threshold=1.0,
    ask=ask,
    rubrics=(RESPONSE, GROUNDING),
)
