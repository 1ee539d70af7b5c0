"""Templates that say where a UiPath evaluator finds the expected and the actual value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from assay.contracts.json_text import JsonValue, dump_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

Path: TypeAlias = "tuple[str | int, ...]"

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPENING = re.compile(r"(\\*)(\{\{|<<|\$\{(?=data\.|target\.))")


def parse_target(key: str) -> Path:
    """Parse a `targetOutputKey` such as `a.b[0].c`; `*` and an empty one mean the whole output."""
    if key in ("", "*"):
        return ()
    return tuple(int(step[1]) if step[1] else step[2] for step in _STEP.finditer(key))


def write_placeholder(root: str, path: Iterable[str | int]) -> str:
    """Write `{{root.a["b c"][0]}}`."""
    return "{{" + root + "".join(map(_write_step, path)) + "}}"


def write_literal(value: JsonValue) -> str:
    """Write a value as template text that reads nothing: openings of placeholders are escaped."""
    text = value if isinstance(value, str) else dump_json(value)
    return _OPENING.sub(lambda found: found[1] * 2 + "\\" + found[2], text)


def value_at(value: JsonValue, path: Path) -> JsonValue:
    """Return the value at a path; text is read as JSON when the path goes into it.

    Raises:
        LookupError: There is no such place.
    """
    if path and isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError as error:
            raise LookupError(path[0]) from error
    for step in path:
        match value, step:
            case dict(), str() if step in value:
                value = value[step]
            case list(), int() if step < len(value):
                value = value[step]
            case _:
                raise LookupError(step)
    return value


def _write_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN.fullmatch(step) else f"[{dump_json(step)}]"
