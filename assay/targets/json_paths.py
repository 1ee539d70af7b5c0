"""Paths into JSON values, such as `choices[0].message.content`."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from assay.errors import ConfigError

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

Step: TypeAlias = "str | int | None"  # key, index, or every element

_STEP = re.compile(
    r"""\.(?P<key>[^\s.\[\]{}<>"']+)|\[\s*(?P<index>-?\d{1,9})\s*\]|\[\s*(?P<quoted>"(?:[^"\\]|\\.)*")\s*\]|"""
    r"""\[\s*(?P<every>\*)\s*\]"""
)
_FORMS = 'accepted: keys with dots, ["key with space"], [0], [-1], [*] for every element, $ for the whole'


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A path.

    Attributes:
        text: As it was written.
        steps: Keys, indexes, and None for every element of a list.
    """

    text: str
    steps: tuple[Step, ...]

    @property
    def is_many(self) -> bool:
        """Whether it may lead to several values."""
        return None in self.steps

    def find_all(self, value: JsonValue) -> list[JsonValue]:
        """Return the values that the path leads to; none where it leads nowhere."""
        found = [value]
        for step in self.steps:
            found = [member for each in found for member in _take(each, step)]
        return found

    def read(self, value: JsonValue) -> JsonValue:
        """Return the value, or the list of them for a path with `[*]`; None where there is nothing."""
        found = self.find_all(value)
        if self.is_many:
            return found or None
        return found[0] if found else None


def parse_path(text: str, where: str) -> JsonPath:
    """Parse a path; a `$` before it means the same as none.

    Args:
        text: The path.
        where: Names it in messages.

    Raises:
        ConfigError: It is malformed.
    """
    bare = text.strip()
    rest = bare[1:] if bare.startswith("$") else bare if bare.startswith("[") else f".{bare}"
    steps: list[Step] = []
    position = 0
    with suppress(ValueError):  # a quoted key that is no JSON text ends the path
        while match := _STEP.match(rest, position):
            steps.append(_read_step(match))
            position = match.end()
    if position < len(rest):
        raise ConfigError(f"{where}: malformed path {text!r}; {_FORMS}")
    return JsonPath(bare, tuple(steps))


def _read_step(match: re.Match[str]) -> Step:
    if match["every"]:
        return None
    if match["index"]:
        return int(match["index"])
    quoted: str | None = match["quoted"]
    return str(match["key"] if quoted is None else json.loads(quoted))


def _take(value: JsonValue, step: Step) -> list[JsonValue]:
    """Return the members of a value that one step leads to."""
    if isinstance(step, str):
        return [value[step]] if isinstance(value, dict) and step in value else []
    if not isinstance(value, list):
        return []
    if step is None:
        return value
    return [value[step]] if -len(value) <= step < len(value) else []
