"""Coherence: whether the answer is a clear and logical whole, graded by a model."""

from __future__ import annotations

from evaluators.contract import JudgeEvaluator, Options, Scale
from evaluators.judging import grade_by

_SHOWN = ("query", "response")
_SCALE = Scale(1.0, 5.0)

EVALUATOR = JudgeEvaluator(
    name="Coherence",
    summary="Whether the answer is a clear and logical whole, graded 1 to 5 by a model.",
    aliases=("coherence", "builtin.coherence"),
    needs=_SHOWN,
    options=Options,
    scale=_SCALE,
    ask=grade_by("coherence", _SHOWN, _SCALE),
)
