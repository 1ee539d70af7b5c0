"""LabelModel: one of several labels, chosen by a model, as the grader label_model of OpenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from assay.errors import list_names
from evaluators.contract import JudgeEvaluator, Scale
from evaluators.grader_messages import ModelGraderOptions, StepsForm, ask_grader
from evaluators.reply_forms import LabelForm

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Verdict


class LabelModelOptions(ModelGraderOptions):
    """Options of LabelModel."""

    labels: list[str] = Field(min_length=1, description="the labels to choose from")
    passing_labels: list[str] = Field(min_length=1, description="those of them that pass")

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        folded = {label.strip().casefold() for label in self.labels}
        if len(folded) < len(self.labels) or "" in folded:
            raise PydanticCustomError("labels", "labels that differ in more than case, none of them blank")
        if not set(self.passing_labels) <= set(self.labels):
            text = f"passing_labels that are among the labels: {list_names(self.labels)}"
            raise PydanticCustomError("passing_labels", "{text}", {"text": text})
        return self


async def ask_label(options: LabelModelOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score 1 for a label that passes, else 0."""
    scores = {label: float(label in options.passing_labels) for label in options.labels}
    return await ask_grader(options, StepsForm(LabelForm(scores), "label"), fields, chat)


EVALUATOR = JudgeEvaluator(
    name="LabelModel",
    summary="One of several labels, chosen by a model by a prompt of your own; some of them pass.",
    aliases=("label_model", "labelModel"),
    needs=("item",),  # always there; the rest is up to the prompt
    options=LabelModelOptions,
    scale=Scale(0.0, 1.0),
    threshold=1.0,
    ask=ask_label,
)
