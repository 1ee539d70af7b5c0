"""The catalog: which evaluators exist, and the check of what a user asks of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from assay.contracts.json_text import dump_json
from assay.errors import ConfigError
from evaluators import citations, coherence, contains, exact_match, json_equals, partial_match, relevance

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Evaluator, Options

BUILT_IN: tuple[Evaluator, ...] = (
    exact_match.EVALUATOR,
    partial_match.EVALUATOR,
    contains.EVALUATOR,
    citations.EVALUATOR,
    json_equals.EVALUATOR,
    relevance.EVALUATOR,
    coherence.EVALUATOR,
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluator with checked options and threshold.

    Attributes:
        evaluator: What scores.
        options: How.
        threshold: The score that passes; None: no verdict.
        label: Canonical name, followed by a colon and the file's own name for this use if it has one.
    """

    evaluator: Evaluator
    options: Options
    threshold: float | None
    label: str

    @property
    def options_json(self) -> str:
        """All options, defaults included and the threshold left out, as JSON with sorted keys."""
        return dump_json(dict(sorted(self.options.model_dump(mode="json").items())))

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields without which a row is skipped, under these options."""
        return tuple(dict.fromkeys((*self.evaluator.needs, *self.options.extra_needs)))

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that are read when they are there."""
        return tuple(dict.fromkeys((*self.needs, *self.evaluator.wants)))


def find_evaluator(name: str, *, where: str = "") -> Evaluator:
    """Return the evaluator with this canonical name or alias, spelt exactly.

    Raises:
        ConfigError: No such evaluator; the message names the nearest.
    """
    known = {alias: each for each in BUILT_IN for alias in (each.name, *each.aliases)}
    if name not in known:
        names = {each.name for each in BUILT_IN}
        aliases = {alias: each.name for alias, each in known.items()}
        raise ConfigError.unknown("evaluator", name, names, where=where, aliases=aliases)
    return known[name]


def evaluation_label(name: str, *, where: str = "") -> str:
    """Return `CanonicalName` for a name or alias, `CanonicalName:Instance` for `alias:Instance`.

    Raises:
        ConfigError: No such evaluator.
    """
    base, colon, instance = name.partition(":")
    return f"{find_evaluator(base, where=where).name}{colon}{instance}"


def resolve_evaluation(name: str, options: Mapping[str, JsonValue], *, where: str = "") -> Evaluation:
    """Check a use of an evaluator.

    Args:
        name: Name or alias; two uses of one evaluator are told apart as `Name:Instance`.
        options: Options as written, `threshold` among them.
        where: Place for messages.

    Raises:
        ConfigError: An unknown evaluator or option, or a value that is not acceptable; the message names
            `Evaluator.option`, what was given and what is accepted.
    """
    evaluator = find_evaluator(name.partition(":")[0], where=where)
    given = {key: value for key, value in options.items() if key != "threshold"}
    try:
        checked: Options = evaluator.options.model_validate(given)
    except ValidationError as error:
        raise _explain(evaluator, error.errors()[0], where) from error
    threshold = evaluator.threshold
    if "threshold" in options:
        threshold = _check_threshold(evaluator, options["threshold"], where)
    return Evaluation(evaluator, checked, threshold, evaluation_label(name, where=where))


def _check_threshold(evaluator: Evaluator, value: JsonValue, where: str) -> float:
    accepted = evaluator.thresholds or evaluator.scale
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and number in accepted:
            return number
    raise _refuse(f"{evaluator.name}.threshold", value, f"a number within {accepted}", where)


def _explain(evaluator: Evaluator, problem: ErrorDetails, where: str) -> ConfigError:
    name = ".".join(map(str, (evaluator.name, *problem["loc"])))
    if problem["type"] == "extra_forbidden":
        known = [f"{evaluator.name}.{option}" for option in (*evaluator.options.model_fields, "threshold")]
        return ConfigError.unknown("option", name, known, where=where)
    return _refuse(name, problem["input"], problem["msg"].removeprefix("Input should be "), where)


def _refuse(option: str, value: object, accepted: str, where: str) -> ConfigError:
    place = f"{where}: " if where else ""
    return ConfigError(f"{place}{option}: got {value!r}, accepted is {accepted}")
