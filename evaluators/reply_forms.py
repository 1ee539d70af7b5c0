"""Reply forms: what a judge is asked to answer with, and the verdict its JSON object stands for."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from evaluators.contract import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Scale

    Found = Mapping[str, JsonValue]
    Schema = dict[str, JsonValue]

NUMBER = r"[+-]?\d+(?:\.\d+)?"
MOST_LISTED = 11  # grades that are listed one by one
REASON = '"reason": "<one or two sentences: what decides it>"'


class UnusableError(Exception):
    """A reply is not what was asked for; the message says why, for the judge too."""


class Form(Protocol):
    """What a judge answers with."""

    @property
    def schema(self) -> Schema:
        """JSON Schema of the object, in the subset that structured output takes."""
        ...

    @property
    def example(self) -> str:
        """The object as the judge is shown it."""
        ...

    @property
    def keys(self) -> tuple[str, ...]:
        """Members by which an object is known as a verdict; one of them is enough."""
        ...

    def read(self, found: Found) -> Verdict:
        """Read the object.

        Raises:
            UnusableError: A member is missing, of another type or out of range.
        """
        ...


@dataclass(frozen=True, slots=True)
class ScoreForm:
    """A reason and a number.

    Attributes:
        scale: Where the number lies.
    """

    scale: Scale
    keys: tuple[str, ...] = ("score",)

    @property
    def schema(self) -> Schema:
        """The object with its two members."""
        return object_schema({"reason": {"type": "string"}, "score": score_schema(self.scale)})

    @property
    def example(self) -> str:
        """The object, its grades listed."""
        return f'{{{REASON}, "score": <{name_grades(self.scale)}>}}'

    def read(self, found: Found) -> Verdict:
        """Read `score`, and `reason` and `label` where they are."""
        return Verdict(read_score(found, self.scale), read_text(found, "label"), read_text(found, "reason"))


@dataclass(frozen=True, slots=True)
class LabelForm:
    """A reason and one of several labels, each worth a score.

    Attributes:
        scores: Label to score, in the order they are listed.
    """

    scores: Mapping[str, float]
    keys: tuple[str, ...] = ("label",)

    @property
    def schema(self) -> Schema:
        """The object with its two members."""
        return object_schema(
            {"reason": {"type": "string"}, "label": {"type": "string", "enum": [*self.scores]}}
        )

    @property
    def example(self) -> str:
        """The object, its labels listed."""
        return f'{{{REASON}, "label": "<{list_choices(list(self.scores))}>"}}'

    def read(self, found: Found) -> Verdict:
        """Read `label`, whatever its case, and `reason` where it is."""
        label = read_text(found, "label")
        if label is None:
            raise UnusableError("no text under `label`")
        known = {name.casefold(): name for name in self.scores}
        name = known.get(label.strip().casefold())
        if name is None:
            raise UnusableError(f"`label` is none of {list_choices(list(self.scores))}")
        return Verdict(self.scores[name], name, read_text(found, "reason"))


def object_schema(properties: Mapping[str, JsonValue]) -> Schema:
    """Return the schema of an object that has exactly these members."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [*properties],
        "additionalProperties": False,
    }


def score_schema(scale: Scale) -> Schema:
    """Return the schema of a score; whole grades are listed."""
    grades = list_grades(scale)
    return {"type": "integer", "enum": [*grades]} if grades else {"type": "number"}


def list_grades(scale: Scale) -> list[int]:
    """Return the grades of a scale of few whole numbers; none where fractions are the rule."""
    if scale.high is None or scale.low % 1 or scale.high % 1:
        return []
    grades = [*range(int(scale.low), int(scale.high) + 1)] if scale.high - scale.low < MOST_LISTED else []
    return grades if scale.whole or len(grades) > 2 else []  # noqa: PLR2004 - 0 and 1 are the ends of a share


def name_grades(scale: Scale) -> str:
    """Write the grades as `1, 2, 3, 4 or 5`, or as `a number from 0 to 1`."""
    grades = list_grades(scale)
    if grades:
        return list_choices([str(grade) for grade in grades])
    whole = "whole " if scale.whole else ""
    top = "up" if scale.high is None else f"to {scale.high:g}"
    return f"a {whole}number from {scale.low:g} {top}"


def list_choices(names: list[str]) -> str:
    """Write `a, b or c`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def read_score(found: Found, scale: Scale, key: str = "score") -> float:
    """Return a number, or a text that is nothing but one.

    Raises:
        UnusableError: It is missing, no number, or off the scale.
    """
    value = found.get(key)
    if isinstance(value, str) and re.fullmatch(NUMBER, value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UnusableError(f"no number under `{key}`")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if not math.isfinite(number) or number not in scale:
        raise UnusableError(f"`{key}` is off the scale {scale}")
    return number


def read_text(found: Found, key: str) -> str | None:
    """Return a text; None where it is missing or null.

    Raises:
        UnusableError: It is something else.
    """
    value = found.get(key)
    if value is not None and not isinstance(value, str):
        raise UnusableError(f"`{key}` is not a text")
    return value
