"""Coherence: whether the answer is a clear and logical whole, graded by a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.contract import JudgeEvaluator, Options, Scale
from evaluators.judging import ask_judge, read_prompt

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Verdict

SCALE = Scale(1.0, 5.0)


class CoherenceOptions(Options):
    """Options of Coherence: none."""


async def judge_coherence(_options: CoherenceOptions, fields: Fields, chat: Chat) -> Verdict:
    """Ask a model for a grade from 1 to 5. A blank answer is an error, not a grade."""
    shown = {name: fields[name] for name in ("query", "response")}
    return await ask_judge(read_prompt("coherence"), shown, SCALE, chat)


EVALUATOR = JudgeEvaluator(
    name="Coherence",
    summary="Whether the answer is a clear and logical whole, graded 1 to 5 by a model.",
    aliases=("coherence", "builtin.coherence"),
    needs=("query", "response"),
    options=CoherenceOptions,
    scale=SCALE,
    ask=judge_coherence,
)
