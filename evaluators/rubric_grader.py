"""RubricGrader: an answer graded on weighted dimensions of the user's own, in one call."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Self, cast

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from assay.errors import NotApplicableError
from evaluators.contract import JudgeEvaluator, Options, Scale, Verdict
from evaluators.judging import MAX_OUTPUT_TOKENS, ask_judge, build_rubric
from evaluators.part_forms import Part, PartsForm
from evaluators.prompt_files import read_prompt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.chat import Chat
    from evaluators.contract import Fields
    from evaluators.judging import Rubric
    from evaluators.part_forms import Grade

PROMPT = read_prompt("rubric_grader")
GRADES = Scale(1.0, 5.0, whole=True)
ROOT = "dimensions"
_TOKENS_EACH = 150  # room for the reason and grade of one dimension


class Dimension(Options):
    """One thing that is graded."""

    dimension_id: str = Field(
        min_length=1, max_length=64, pattern=r"^[\w.-]+$", description="its name, without white space"
    )
    description: str = Field(min_length=1, description="what it asks of an answer")
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False, description="how much it counts, above 0")
    always_applicable: bool = Field(
        default=False, description="whether it has to be graded; else the judge may find it not applicable"
    )


class RubricOptions(Options):
    """Options of RubricGrader."""

    dimensions: list[Dimension] = Field(
        min_length=1,
        description="what is graded: "
        '[{"dimension_id": "tone", "description": "…", "weight": 2, "always_applicable": true}]',
    )

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [each.dimension_id for each in self.dimensions]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            text = f"dimensions of different names, which {twice!r} is not"
            raise PydanticCustomError("repeated_name", "{text}", {"text": text})
        return self


async def ask(options: RubricOptions, fields: Fields, chat: Chat) -> Verdict:
    """Grade an answer on every dimension, and weigh the grades of those that apply.

    Raises:
        NotApplicableError: No dimension applies.
        CallError: As `ask_judge`.
    """
    dimensions = tuple(options.dimensions)
    shown = {name: fields[name] for name in PROMPT.head.shown}
    verdict = await ask_judge(build_question(dimensions), shown, chat)
    details = dict(verdict.details or {})
    grades = cast("Mapping[str, Grade]", details.pop(ROOT))
    score = weigh_grades(dimensions, {name: grade.score for name, grade in grades.items()})
    told = [_describe(each, grades[each.dimension_id]) for each in dimensions]
    if score is None:
        raise NotApplicableError(f"no dimension applies: {_explain(grades)}")
    return replace(verdict, score=score, reason=_explain(grades), details={ROOT: told, **details})


@lru_cache(maxsize=64)
def build_question(dimensions: tuple[Dimension, ...]) -> Rubric:
    """Put the rubric together for these dimensions; their weights are no matter of the judge."""
    listed = [f"- `{each.dimension_id}`: {' '.join(each.description.split())}" for each in dimensions]
    parts = {each.dimension_id: Part(GRADES, required=each.always_applicable) for each in dimensions}
    room = MAX_OUTPUT_TOKENS + _TOKENS_EACH * len(dimensions)
    return build_rubric("\n".join([PROMPT.text, *listed]), PartsForm(ROOT, parts), PROMPT.head.shown, room)


def weigh_grades(dimensions: Sequence[Dimension], scores: Mapping[str, float | None]) -> float | None:
    """Return Σ w·(s - 1)/4 ÷ Σ w over the dimensions that apply, from 0 to 1; None when none does.

    Args:
        dimensions: Their weights w.
        scores: Name to grade s from 1 to 5; None: it does not apply.
    """
    grades = [(each.weight, score) for each in dimensions if (score := scores[each.dimension_id]) is not None]
    most = max((weight for weight, _ in grades), default=1.0)  # so that no sum of weights overflows
    total = sum(weight / most for weight, _ in grades)
    earned = sum(weight / most * (score - GRADES.low) / 4 for weight, score in grades)
    return earned / total if grades else None


def _describe(dimension: Dimension, grade: Grade) -> dict[str, object]:
    return {
        "dimension_id": dimension.dimension_id,
        "weight": dimension.weight,
        "score": grade.score,
        "reason": grade.reason,
    }


def _explain(grades: Mapping[str, Grade]) -> str:
    told = (
        (name, "not applicable" if each.score is None else f"{each.score:g}") for name, each in grades.items()
    )
    return "; ".join(f"{name} {score}: {grades[name].reason}" for name, score in told)


EVALUATOR = JudgeEvaluator(
    name=PROMPT.head.name,
    summary=PROMPT.head.summary,
    aliases=PROMPT.head.aliases,
    needs=("response",),
    wants=tuple(name for name in PROMPT.head.shown if name != "response"),
    options=RubricOptions,
    scale=PROMPT.head.grades,
    threshold=PROMPT.head.passes_at,
    version=PROMPT.head.version,
    ask=ask,
)
