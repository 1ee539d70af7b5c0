"""What a conversation is to be simulated from, in the newer of its two forms."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assay.contracts.json_text import JsonValue, dump_json, parse_json
from assay.datasets.cells import name_kind

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_DESCRIPTION = 2_500  # characters, by the published schema
_DESCRIPTION, _CONFIGURATION, _DESIRED = (
    "test_case_description",
    "simulation_configuration",
    "desired_num_turns",
)
_DIGITS = re.compile(r"[ \t]*[0-9]{1,9}[ \t]*")
_COUNTS = (_DESIRED, "max_num_turns", "conversation_repetitions")


def seed_text(values: Mapping[str, JsonValue]) -> str | None:
    """Return a simulation seed as compact JSON.

    The older form has `desired_num_turns` beside the description, the newer one inside
    `simulation_configuration`; both give the newer, known counts first, and the configuration is
    absent when it says nothing. Id and category of a test case are labels, so they are not part of it.
    Text counts and a text configuration, as cells of CSV are, are read as what they say.

    Args:
        values: The cells of one row by name; null and missing are the same.

    Returns:
        An object of `test_case_description` (1 to 2,500 characters) and `simulation_configuration`
        (keys that are not known are kept); None when the row holds no seed.

    Raises:
        ValueError: A description of another length or kind, a configuration without one, counts that
            are not positive whole numbers, two that differ, or a desired one above the maximum.
    """
    description = values.get(_DESCRIPTION)
    given = [key for key in (_CONFIGURATION, _DESIRED) if values.get(key) is not None]
    if description is None:
        if given:
            raise ValueError(f"{given[0]} without {_DESCRIPTION}; a simulation needs the description")
        return None
    if not isinstance(description, str) or not 1 <= len(description) <= MAX_DESCRIPTION:
        found = (
            f"{len(description)} characters long" if isinstance(description, str) else name_kind(description)
        )
        raise ValueError(f"{_DESCRIPTION} is {found}, expected text of 1 to {MAX_DESCRIPTION} characters")
    configuration = _merge_configuration(values)
    seed: dict[str, JsonValue] = {_DESCRIPTION: description}
    if configuration:
        seed[_CONFIGURATION] = configuration
    return dump_json(seed)


def _merge_configuration(values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the configuration with the count that stands beside it in the older form."""
    given = _read_configuration(values.get(_CONFIGURATION))
    counts = {key: _read_count(given[key], key) for key in _COUNTS if given.get(key) is not None}
    flat = values.get(_DESIRED)
    if flat is not None:
        desired = _read_count(flat, _DESIRED)
        if counts.setdefault(_DESIRED, desired) != desired:
            raise ValueError(
                f"{_DESIRED} is {desired} and in {_CONFIGURATION} {counts[_DESIRED]}; give one of them"
            )
    most = counts.get("max_num_turns")
    if most is not None and counts.get(_DESIRED, 0) > most:
        raise ValueError(f"{_DESIRED} is {counts[_DESIRED]}, above max_num_turns {most}")
    known: dict[str, JsonValue] = {key: counts[key] for key in _COUNTS if key in counts}
    return known | {key: value for key, value in given.items() if key not in _COUNTS}


def _read_configuration(value: JsonValue) -> dict[str, JsonValue]:
    if isinstance(value, str):
        try:
            value = parse_json(value) if value else None
        except ValueError as error:
            raise ValueError(f"{_CONFIGURATION} is text that is not JSON: {error}") from error
    if isinstance(value, dict):
        return value
    if value is not None:
        raise ValueError(f"{_CONFIGURATION} is {name_kind(value)}, expected an object")
    return {}


def _read_count(value: JsonValue, name: str) -> int:
    """Return a positive whole number; `6.0` and the text `6` are 6."""
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    shown = name_kind(value) if isinstance(value, dict | list) else dump_json(value)
    raise ValueError(f"{name} is {shown}, expected a positive whole number")
