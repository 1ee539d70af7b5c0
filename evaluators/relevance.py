"""Relevance: how far the answer deals with the question, graded by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.contract import JudgeEvaluator, Options, Scale
from evaluators.judging import ask_judge, read_prompt

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Verdict

SCALE = Scale(1.0, 5.0)


class RelevanceOptions(Options):
    """Options of Relevance: none."""


async def judge_relevance(_options: RelevanceOptions, fields: Fields, chat: Chat) -> Verdict:
    """Ask a model for a grade from 1 to 5. A blank answer is an error, not a grade."""
    shown = {name: fields[name] for name in ("query", "response")}
    return await ask_judge(read_prompt("relevance"), shown, SCALE, chat)


EVALUATOR = JudgeEvaluator(
    name="Relevance",
    summary="How far the answer deals with the question, graded 1 to 5 by a model.",
    aliases=("relevance", "builtin.relevance"),
    needs=("query", "response"),
    options=RelevanceOptions,
    scale=SCALE,
    ask=judge_relevance,
)
