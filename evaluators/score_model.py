"""ScoreModel: a number within a range, given by a model, as the grader score_model of OpenAI."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import JudgeEvaluator, Scale, Verdict
from evaluators.grader_messages import ModelGraderOptions, StepsForm, ask_grader
from evaluators.reply_forms import REASON, object_schema, read_score, read_text

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Fields
    from evaluators.reply_forms import Found, Schema

_ENDS = 2


class ScoreModelOptions(ModelGraderOptions):
    """Options of ScoreModel."""

    range: list[float] = Field(
        default=[0.0, 1.0], description="lowest and highest score; a score outside is an error"
    )

    @property
    def scale(self) -> Scale:
        """The range."""
        return Scale(self.range[0], self.range[1])

    @property
    def default_threshold(self) -> float:
        """The middle of the range."""
        return sum(self.range) / _ENDS

    @model_validator(mode="after")
    def _check_range(self) -> Self:
        ends = self.range
        if len(ends) != _ENDS or not all(map(math.isfinite, ends)) or ends[0] >= ends[1]:
            raise PydanticCustomError("range", "a range of two numbers, the lower one first")
        return self


@dataclass(frozen=True, slots=True)
class NumberForm:
    """A reason and any number of a range, fractions included.

    Attributes:
        scale: The range.
    """

    scale: Scale
    keys: tuple[str, ...] = ("score",)

    @property
    def schema(self) -> Schema:
        """The object with its two members."""
        return object_schema({"reason": {"type": "string"}, "score": {"type": "number"}})

    @property
    def example(self) -> str:
        """The object, its range named."""
        ends = f"{self.scale.low:g} to {self.scale.high:g}"
        return f'{{{REASON}, "score": <a number from {ends}>}}'

    def read(self, found: Found) -> Verdict:
        """Read `score` as it is, and `reason` where it is."""
        return Verdict(read_score(found, self.scale), reason=read_text(found, "reason"))


async def ask_score(options: ScoreModelOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score what the model says; what is no number or outside the range is an error, never moved into it."""
    return await ask_grader(options, StepsForm(NumberForm(options.scale), "score"), fields, chat)


EVALUATOR = JudgeEvaluator(
    name="ScoreModel",
    summary="A number within a range of your choice, given by a model by a prompt of your own.",
    aliases=("score_model", "scoreModel"),
    needs=("item",),  # always there; the rest is up to the prompt
    options=ScoreModelOptions,
    scale=Scale(-math.inf, None),
    threshold=None,
    threshold_names=("threshold", "pass_threshold"),
    ask=ask_score,
)
