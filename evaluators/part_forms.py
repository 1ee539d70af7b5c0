"""Reply forms of several grades: parts with a reason each, or one reason over flags and grades."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.contracts.json_text import dump_json
from evaluators.contract import Verdict
from evaluators.reply_forms import (
    REASON,
    UnusableError,
    list_grades,
    name_grades,
    object_schema,
    read_score,
    read_text,
    score_schema,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Scale
    from evaluators.reply_forms import Found, Schema

NOT_APPLICABLE = ("not applicable", "n/a")  # what stands for null where a schema does not bind the judge
_NAMED_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that is graded.

    Attributes:
        scale: Where its grade lies.
        required: Whether it has to have a grade; else null says that it does not apply.
    """

    scale: Scale
    required: bool = True


@dataclass(frozen=True, slots=True)
class Grade:
    """What a judge says about one part.

    Attributes:
        score: The grade; None: the part does not apply.
        reason: Why.
    """

    score: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class PartsForm:
    """An object of parts, each with a reason and a grade; the grades stand in the details.

    Attributes:
        root: The member that holds the parts, in replies and details.
        parts: Name to part, in the order they are answered.
    """

    root: str
    parts: Mapping[str, Part]

    @property
    def keys(self) -> tuple[str, ...]:
        """The member that holds the parts."""
        return (self.root,)

    @property
    def schema(self) -> Schema:
        """The object with an object for every part."""
        parts: dict[str, JsonValue] = {
            name: object_schema({"reason": {"type": "string"}, "score": _part_schema(part)})
            for name, part in self.parts.items()
        }
        return object_schema({self.root: object_schema(parts)})

    @property
    def example(self) -> str:
        """The object, the grades of every part listed."""
        lines = ",\n".join(
            f'  {dump_json(name)}: {{{REASON}, "score": <{_name_choices(part)}>}}'
            for name, part in self.parts.items()
        )
        return f"{{{dump_json(self.root)}: {{\n{lines}\n}}}}"

    def read(self, found: Found) -> Verdict:
        """Read every part; the details map its name to a Grade."""
        parts = found.get(self.root)
        if not isinstance(parts, dict):
            raise UnusableError(f"no object under `{self.root}`")
        grades = {name: _read_grade(name, parts.get(name), part) for name, part in self.parts.items()}
        return Verdict(None, details={self.root: grades})


@dataclass(frozen=True, slots=True)
class RecordForm:
    """A reason, things that are so or not, and grades; all of them stand in the details.

    Attributes:
        flags: Names of what is so or not.
        grades: Name to scale of what is graded.
    """

    flags: tuple[str, ...]
    grades: Mapping[str, Scale]

    @property
    def keys(self) -> tuple[str, ...]:
        """Flags and grades."""
        return (*self.flags, *self.grades)

    @property
    def schema(self) -> Schema:
        """The object with a member for each."""
        flags: dict[str, JsonValue] = {name: {"type": "boolean"} for name in self.flags}
        grades: dict[str, JsonValue] = {name: score_schema(scale) for name, scale in self.grades.items()}
        return object_schema({"reason": {"type": "string"}, **flags, **grades})

    @property
    def example(self) -> str:
        """The object, flags and grades listed."""
        flags = [f'"{name}": <true or false>' for name in self.flags]
        grades = [f'"{name}": <{name_grades(scale)}>' for name, scale in self.grades.items()]
        return f"{{{', '.join((REASON, *flags, *grades))}}}"

    def read(self, found: Found) -> Verdict:
        """Read every member; the details map its name to a bool or a number."""
        flags = {name: _read_flag(found, name) for name in self.flags}
        grades = {name: read_score(found, scale, name) for name, scale in self.grades.items()}
        return Verdict(None, reason=_read_reason(found), details={**flags, **grades})


def _part_schema(part: Part) -> JsonValue:
    if part.required:
        return score_schema(part.scale)
    grades = list_grades(part.scale)
    return {"type": ["integer", "null"], "enum": [*grades, None]} if grades else {"type": ["number", "null"]}


def _name_choices(part: Part) -> str:
    grades = name_grades(part.scale)
    return grades if part.required else f"{grades}; null where it is not applicable"


def _read_grade(name: str, found: JsonValue, part: Part) -> Grade:
    if not isinstance(found, dict):
        raise UnusableError(f"no object under `{name}`")
    absent = not part.required and "score" in found and _is_absent(found["score"])
    try:
        return Grade(None if absent else read_score(found, part.scale), _read_reason(found))
    except UnusableError as error:
        raise UnusableError(f"`{name}`: {error}") from error


def _is_absent(value: JsonValue) -> bool:
    return value is None or (isinstance(value, str) and value.strip().casefold() in NOT_APPLICABLE)


def _read_reason(found: Found) -> str:
    reason = read_text(found, "reason")
    if reason is None:
        raise UnusableError("no text under `reason`")
    return reason


def _read_flag(found: Found, name: str) -> bool:
    value = found.get(name)
    if isinstance(value, str):
        value = _NAMED_FLAGS.get(value.strip().casefold())
    if not isinstance(value, bool):
        raise UnusableError(f"neither true nor false under `{name}`")
    return value
