"""Relevance: how far the answer deals with the question, graded by a model."""

from __future__ import annotations

from evaluators.contract import JudgeEvaluator, Options, Scale
from evaluators.judging import grade_by

_SHOWN = ("query", "response")
_SCALE = Scale(1.0, 5.0)

EVALUATOR = JudgeEvaluator(
    name="Relevance",
    summary="How far the answer deals with the question, graded 1 to 5 by a model.",
    aliases=("relevance", "builtin.relevance"),
    needs=_SHOWN,
    options=Options,
    scale=_SCALE,
    ask=grade_by("relevance", _SHOWN, _SCALE),
)
