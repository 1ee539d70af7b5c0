"""Canaries: rows whose verdict is known, by which a judge is watched while it works."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from assay.contracts.json_text import dump_json, parse_json
from assay.errors import ConfigError
from evaluators.contract import JudgeEvaluator, Options
from evaluators.prompt_files import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evaluators.catalog import Catalog, Evaluation
    from evaluators.contract import Fields

BUILT_IN = "built-in"
SHAPE = '{"evaluator": "Relevance", "name": "off_topic", "fields": {…}, "low": 1, "high": 2}'
_PLACE = "prompts/canaries.jsonl"


class Canary(BaseModel):
    """One row with a known verdict.

    Attributes:
        evaluator: Name or alias of the judge that it is for.
        name: What it is called; no other one of the evaluator may be called so.
        fields: Field to text, or to JSON where the judge reads a field as JSON.
        options: Options of the judge for this row.
        low: Lowest score that is right; None: any up to `high`.
        high: Highest score that is right; None: any from `low`.
        label: The label that is right, where that is what the judge answers.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    evaluator: str = Field(min_length=1)
    name: str = Field(min_length=1)
    fields: dict[str, JsonValue] = Field(min_length=1)
    options: dict[str, JsonValue] = {}
    low: float | None = Field(default=None, allow_inf_nan=False)
    high: float | None = Field(default=None, allow_inf_nan=False)
    label: str | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        bounds = [each for each in (self.low, self.high) if each is not None]
        if bool(bounds) == (self.label is not None):
            raise PydanticCustomError("expected", "either `low` and `high` or a `label`")
        if bounds != sorted(bounds):
            raise PydanticCustomError("expected", "a `low` that is not above `high`")
        return self

    @property
    def expected(self) -> str:
        """The known verdict, such as `1..2`, `4..` or a label."""
        if self.label is not None:
            return self.label
        low, high = ("" if bound is None else f"{bound:g}" for bound in (self.low, self.high))
        return low if low == high else f"{low}..{high}"

    def holds(self, score: float | None, label: str | None) -> bool:
        """Whether a verdict is the known one; labels are compared whatever their case."""
        if self.label is not None:
            return label is not None and label.casefold() == self.label.casefold()
        if score is None:
            return False
        return (self.low is None or score >= self.low) and (self.high is None or score <= self.high)


@dataclass(frozen=True, slots=True)
class Probe:
    """A canary that can be asked.

    Attributes:
        canary: The row.
        judge: Whom it is for.
        options: Its options.
        fields: What the judge reads.
    """

    canary: Canary
    judge: JudgeEvaluator[Any]
    options: Options
    fields: Fields


def read_shipped() -> tuple[tuple[str, Canary], ...]:
    """Read the built-in canaries, each with its place."""
    return _read_shipped()


@cache
def _read_shipped() -> tuple[tuple[str, Canary], ...]:
    return parse_canaries(files(SHIPPED).joinpath(_PLACE).read_text(encoding="utf-8"), _PLACE)


def parse_canaries(text: str, place: str) -> tuple[tuple[str, Canary], ...]:
    """Read canaries from JSON Lines; blank lines are passed over.

    Args:
        text: The file.
        place: What messages call it.

    Returns:
        Every canary with its place, such as `mine.jsonl:3`.

    Raises:
        ConfigError: A line is no canary, or there is none; the message names the line and what is accepted.
    """
    lines = enumerate(text.removeprefix("\ufeff").split("\n"), start=1)  # JSON may hold other line breaks
    places = ((f"{place}:{number}", line) for number, line in lines if line.strip())
    found = tuple((each, _parse(line, each)) for each, line in places)
    if not found:
        raise ConfigError(f"{place}: holds no canary; write one per line, such as {SHAPE}")
    return found


def _parse(line: str, place: str) -> Canary:
    try:
        value = parse_json(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: no JSON: {error}; a canary is such as {SHAPE}") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{place}: no JSON object; a canary is such as {SHAPE}")
    try:
        return Canary.model_validate(value)
    except ValidationError as error:
        raise _explain(error, place) from error


def _explain(error: ValidationError, place: str) -> ConfigError:
    found = error.errors()
    problem = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    key = ".".join(map(str, problem["loc"]))
    if problem["type"] == "extra_forbidden":
        return ConfigError.unknown("key of a canary", key, Canary.model_fields, where=place)
    if problem["type"] == "missing":
        return ConfigError(f"{place}: no {key}; a canary is such as {SHAPE}")
    what = f"{key}: " if key else ""
    return ConfigError(f"{place}: {what}give {problem['msg'].removeprefix('Input should be ')}")


def resolve_canaries(canaries: Iterable[tuple[str, Canary]], catalog: Catalog) -> tuple[Probe, ...]:
    """Check canaries against the judges they are for.

    Raises:
        ConfigError: An unknown evaluator, field or option, an evaluator that asks no judge, a field that is
            missing, or a name that comes twice; the message names the line.
    """
    probes: dict[tuple[str, str], Probe] = {}
    for place, canary in canaries:
        probe = _resolve(canary, place, catalog)
        key = (probe.judge.name, canary.name)
        if key in probes:
            raise ConfigError(f"{place}: {key[0]} has a canary {canary.name!r} already; give it another name")
        probes[key] = probe
    return tuple(probes.values())


def _resolve(canary: Canary, place: str, catalog: Catalog) -> Probe:
    evaluation = catalog.resolve(canary.evaluator, canary.options, where=place)
    if not isinstance(evaluation.evaluator, JudgeEvaluator):
        raise ConfigError(f"{place}: {evaluation.label} asks no judge, so a canary has nothing to watch")
    for name in canary.fields:
        if name not in evaluation.fields:
            raise ConfigError.unknown(f"field of {evaluation.label}", name, evaluation.fields, where=place)
    for name in evaluation.needs:
        if canary.fields.get(name) is None:
            raise ConfigError(f"{place}: {evaluation.label} needs {name}; add it to `fields`")
    fields = {name: _fill(canary.fields.get(name), name, evaluation) for name in evaluation.fields}
    return Probe(canary, evaluation.evaluator, evaluation.options, fields)


def _fill(value: JsonValue, name: str, evaluation: Evaluation) -> str | None:
    """Return a field as the judge gets it: JSON where it reads JSON, else text."""
    if value is None:
        return None
    return value if isinstance(value, str) and name not in evaluation.json_fields else dump_json(value)
