"""Parsing: options of the command line that hold a name and a value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

from pydantic import JsonValue, TypeAdapter, ValidationError

from assay.errors import ConfigError


def parse_options(texts: tuple[str, ...]) -> dict[str, dict[str, JsonValue]]:
    """Parse `EVALUATOR.NAME=JSON`; a value that is not JSON is taken as text."""
    options: dict[str, dict[str, JsonValue]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        evaluator, dot, name = place.rpartition(".")
        if not equals or not dot or not evaluator or not name:
            raise ConfigError(
                f"--option {text!r}: write EVALUATOR.NAME=JSON, such as PartialMatch.threshold=0.7"
            )
        options.setdefault(evaluator, {})[name] = _read_value(value)
    return options


def parse_conditions(texts: tuple[str, ...]) -> dict[str, str]:
    """Parse `EVALUATOR=OTHER:STATE`."""
    conditions: dict[str, str] = {}
    for text in texts:
        name, equals, condition = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(
                f"--only-if {text!r}: write EVALUATOR=OTHER:STATE, such as Relevance=ExactMatch:fail"
            )
        conditions[name.strip()] = condition.strip()
    return conditions


def parse_params(texts: tuple[str, ...]) -> dict[str, JsonValue]:
    """Parse `NAME=JSON`; a value that is not JSON is taken as text."""
    params: dict[str, JsonValue] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--param {text!r}: write NAME=JSON, such as reasoning_effort=low")
        params[name.strip()] = _read_value(value)
    return params


def parse_mappings(texts: tuple[str, ...]) -> dict[str, str]:
    """Parse `[EVALUATOR.]FIELD=TEMPLATE` and JSON files of such pairs."""
    mapping: dict[str, str] = {}
    for text in texts:
        place, equals, template = text.partition("=")
        if equals:
            mapping[place.strip()] = template
            continue
        mapping |= _read_mapping(Path(text))
    return mapping


def _read_value(text: str) -> JsonValue:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is not JSON")


def _read_mapping(path: Path) -> dict[str, str]:
    try:
        return TypeAdapter(dict[str, str]).validate_json(path.read_bytes())
    except OSError as error:
        problem = error.strerror or "cannot be read"
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
    raise ConfigError(
        f"--mapping {path}: {problem}; write FIELD=TEMPLATE, or name a JSON file with one object of "
        "field to template text"
    )
