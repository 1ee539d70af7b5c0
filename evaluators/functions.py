"""Plain functions as evaluators: parameters are fields, parameters with other names are options."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any, Protocol, get_type_hints, runtime_checkable

import orjson
from pydantic import BaseModel, Field, FiniteFloat, JsonValue, ValidationError, create_model

from assay.errors import ConfigError, list_names
from evaluators.contract import FIELDS, Options, RowEvaluator, Scale, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from evaluators.contract import Fields

TEXT_FIELDS = frozenset({"query", "response", "expected_response", "context"})


@runtime_checkable
class _NumpyNumber(Protocol):
    def item(self) -> object: ...


class _Returned(BaseModel):
    """What a function may return in a dict."""

    score: FiniteFloat | None = None
    reason: str | None = None
    label: str | None = None
    details: dict[str, JsonValue] | None = None
    error: JsonValue = None


ANY_NUMBER = Scale(-math.inf, None)
_PASSING = 0.5  # what a bool or a share passes at when nobody says otherwise


def wrap_function(function: Callable[..., object], name: str, *, where: str) -> RowEvaluator[Any]:
    """Make an evaluator of a function.

    A parameter named like a field gets that field: texts as str, everything else as the value its JSON
    holds, None where a field with a default is missing. Any other parameter must have a default and is an
    option of that name. The function returns a bool, a number, None for no score, a Verdict, or a dict with
    `score` and, as it likes, `reason`, `label` and `details`, or with `error`. That, and whatever it raises,
    is the error of its row.

    Args:
        function: The function; its first docstring line is the summary.
        name: Name of the evaluator.
        where: Place for messages.

    Raises:
        ConfigError: A parameter is neither a field nor has a default, or the function is a coroutine.
    """
    if inspect.iscoroutinefunction(function):
        raise ConfigError(f"{where}: {name} is a coroutine; an evaluator function is a plain one")
    parameters = inspect.signature(function).parameters
    fields = [field for field in parameters if field in FIELDS]
    needs = tuple(field for field in fields if parameters[field].default is inspect.Parameter.empty)
    if not fields:
        raise ConfigError(f"{where}: {name} reads no field; its parameters may be {list_names(FIELDS)}")
    summary = (inspect.getdoc(function) or f"The function {name}.").splitlines()[0]

    def judge(options: Options, given: Fields) -> Verdict:
        values = {field: _read(field, given[field]) for field in fields}
        return make_verdict(function(**values, **options.model_dump()))

    return RowEvaluator(
        name=name,
        summary=summary if summary.endswith(".") else f"{summary}.",
        needs=needs,
        wants=tuple(field for field in fields if field not in needs),
        json_fields=tuple(field for field in fields if field not in TEXT_FIELDS),
        options=_make_options(function, name, where),
        scale=ANY_NUMBER,
        threshold=_PASSING,
        judge=judge,
    )


def make_verdict(returned: object) -> Verdict:
    """Read what an evaluator function returned.

    Raises:
        TypeError: It is nothing of the kind.
        ValueError: The score is NaN or infinite, or a part of a dict has the wrong type.
        RuntimeError: A dict says `error`.
    """
    if isinstance(returned, Verdict):
        return returned
    if type(returned).__module__ == "numpy" and isinstance(returned, _NumpyNumber):
        returned = returned.item()
    if not isinstance(returned, dict | int | float | None):
        kind = type(returned).__name__
        raise TypeError(f"returned {kind}; expected a bool, a number, None, a dict or a Verdict")
    try:
        told = _Returned.model_validate(returned if isinstance(returned, dict) else {"score": returned})
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(f"returned `{problem['loc'][0]}` {problem['input']!r}: {problem['msg']}") from error
    if told.error is not None:
        raise RuntimeError(f"{told.error}")
    if told.score is None and told.label is None and isinstance(returned, dict):
        raise ValueError("returned a dict without `score` and `error`")
    return Verdict(score=told.score, reason=told.reason, label=told.label, details=told.details)


def _read(field: str, text: str | None) -> object:
    return text if text is None or field in TEXT_FIELDS else orjson.loads(text)


def _read_hints(function: Callable[..., object]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError:  # a name that only type checkers import; the defaults tell the types
        return {}


def _make_options(function: Callable[..., object], name: str, where: str) -> type[Options]:
    """Return a model of the parameters that are no field."""
    options: dict[str, Any] = {}
    hints = _read_hints(function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in FIELDS or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.default is parameter.empty:
            raise ConfigError(
                f"{where}: {name} has a parameter {parameter.name!r} that is no field and has no default; "
                f"fields are {list_names(FIELDS)}"
            )
        text = f"parameter of {name}"
        options[parameter.name] = (
            hints.get(parameter.name, type(parameter.default)),
            Field(parameter.default, description=text),
        )
    return create_model(f"{name}Options", __base__=Options, **options)
