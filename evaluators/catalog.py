"""The catalog: which evaluators exist, and the check of what a user asks of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import orjson
from pydantic import ValidationError

from assay.contracts.json_text import dump_json
from assay.errors import ConfigError
from evaluators.built_in import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Evaluator, Options


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluator with checked options and threshold.

    Attributes:
        evaluator: What scores.
        options: How.
        threshold: The score that passes; None: no verdict.
        label: Canonical name, followed by a colon and the file's own name for this use if it has one.
        mapping: Field to template, as far as the options say where fields come from.
    """

    evaluator: Evaluator
    options: Options
    threshold: float | None
    label: str
    mapping: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def options_json(self) -> str:
        """All options, defaults included and the threshold left out, as JSON with sorted keys."""
        options = dict(sorted(self.options.model_dump(mode="json").items()))
        try:
            return orjson.dumps(options).decode()
        except TypeError:  # an integer of more than 64 bits
            return dump_json(options)

    @property
    def needs(self) -> tuple[str, ...]:
        """Fields without which a row is skipped, under these options."""
        return _join(self.evaluator.needs, self.options.extra_needs)

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that are read when they are there."""
        evaluator, options = self.evaluator, self.options
        return _join(evaluator.needs, options.extra_needs, evaluator.wants, options.extra_wants)

    @property
    def json_fields(self) -> tuple[str, ...]:
        """Those of the fields that come as JSON text."""
        return _select(self.fields, self.evaluator.json_fields)


class Catalog:
    """The evaluators that can be named: the built-in ones and a user's own.

    Attributes:
        evaluators: All that are known from the start, the built-in ones first.
        own: Those of the user among them.
    """

    def __init__(
        self, own: Sequence[Evaluator] = (), find_more: Callable[[str], Evaluator | None] | None = None
    ) -> None:
        """Take a user's own evaluators on top of the built-in ones.

        Args:
            own: Evaluators from files; a name that is taken belongs to the last.
            find_more: Looks for a name that is not known; what it returns is remembered.
        """
        self.own = tuple(own)
        self.evaluators = (*BUILT_IN, *own)
        self._known = {alias: each for each in self.evaluators for alias in (each.name, *each.aliases)}
        self._find_more = find_more

    def find(self, name: str, *, where: str = "") -> Evaluator:
        """Return the evaluator with this canonical name or alias, spelt exactly.

        Raises:
            ConfigError: No such evaluator; the message names the nearest.
        """
        if name not in self._known:
            more = self._find_more(name) if self._find_more is not None else None
            if more is None:
                names = {each.name for each in self.evaluators}
                aliases = {alias: each.name for alias, each in self._known.items()}
                raise ConfigError.unknown("evaluator", name, names, where=where, aliases=aliases)
            self._known[name] = more
        return self._known[name]

    def label(self, name: str, *, where: str = "") -> str:
        """Return `CanonicalName` for a name or alias, `CanonicalName:Instance` for `alias:Instance`.

        Raises:
            ConfigError: No such evaluator.
        """
        base, colon, instance = name.partition(":")
        return f"{self.find(base, where=where).name}{colon}{instance}"

    def resolve(self, name: str, options: Mapping[str, JsonValue], *, where: str = "") -> Evaluation:
        """Check a use of an evaluator.

        Args:
            name: Name or alias; two uses of one evaluator are told apart as `Name:Instance`.
            options: Options as written, the threshold among them.
            where: Place for messages.

        Raises:
            ConfigError: An unknown evaluator or option, or a value that is not acceptable; the message
                names `Evaluator.option`, what was given and what is accepted.
        """
        base, colon, instance = name.partition(":")
        evaluator = self.find(base, where=where)
        given, mapping = dict(options), dict[str, str]()
        threshold = _take_threshold(evaluator, given, where)
        for option, filled in evaluator.templates.items():
            if option in given:
                mapping[filled] = _check_template(evaluator, option, given.pop(option), where)
        try:
            checked: Options = evaluator.options.model_validate(given)
        except ValidationError as error:
            raise _explain(evaluator, error.errors()[0], where) from error
        mapping |= checked.extra_mapping
        if threshold is None:
            threshold = checked.default_threshold
        if checked.asks_model and evaluator.asking is not None:
            evaluator = evaluator.asking
        return Evaluation(evaluator, checked, threshold, f"{evaluator.name}{colon}{instance}", mapping)


@lru_cache(maxsize=1024)  # asked for every use, and hardly ever anything new
def _join(*names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in names for name in part))


@lru_cache(maxsize=1024)
def _select(fields: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in fields if name.rpartition(".")[2] in wanted)


def _take_threshold(evaluator: Evaluator, given: dict[str, JsonValue], where: str) -> float | None:
    """Return the threshold among options, and take it out unless it is an option too."""
    named = [option for option in evaluator.threshold_names if option in given]
    if len(named) > 1:
        place = f"{where}: " if where else ""
        raise ConfigError(f"{place}{evaluator.name}: {' and '.join(named)} are one thing; give one of them")
    if not named:
        return evaluator.threshold
    (option,) = named
    value = given[option] if option in evaluator.options.model_fields else given.pop(option)
    return _check_threshold(evaluator, option, value, where)


def _check_threshold(evaluator: Evaluator, option: str, value: JsonValue, where: str) -> float:
    accepted = evaluator.thresholds or evaluator.scale
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and number in accepted:
            return number
    raise _refuse(f"{evaluator.name}.{option}", value, f"a number within {accepted}", where)


def _check_template(evaluator: Evaluator, option: str, value: JsonValue, where: str) -> str:
    if isinstance(value, str):
        return value
    raise _refuse(f"{evaluator.name}.{option}", value, "a text such as {{item.ground_truth}}", where)


def _explain(evaluator: Evaluator, problem: ErrorDetails, where: str) -> ConfigError:
    name = ".".join(map(str, (evaluator.name, *problem["loc"])))
    if problem["type"] == "extra_forbidden":
        names = (*evaluator.options.model_fields, *evaluator.templates, *evaluator.threshold_names)
        options = dict.fromkeys(names)
        known = [f"{evaluator.name}.{option}" for option in options]
        return ConfigError.unknown("option", name, known, where=where)
    if problem["type"] == "missing":
        place = f"{where}: " if where else ""
        raise ConfigError(f"{place}{name} is required; `assay evaluators {evaluator.name}` explains it")
    accepted = problem["msg"].removeprefix("Input should be ")
    for wordy, plain in _PLAINER.items():
        accepted = accepted.replace(wordy, plain)
    return _refuse(name, problem["input"], accepted, where)


_PLAINER = {"List should have at least": "a list of at least", " item after validation, not 0": " item"}


def _refuse(option: str, value: object, accepted: str, where: str) -> ConfigError:
    place = f"{where}: " if where else ""
    return ConfigError(f"{place}{option}: got {value!r}, accepted is {accepted}")


CATALOG = Catalog()
find_evaluator, resolve_evaluation = CATALOG.find, CATALOG.resolve
