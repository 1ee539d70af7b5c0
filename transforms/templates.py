"""Templates: text with placeholders such as `{{item.a.b}}`, parsed once and never again."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection

    from assay.contracts.json_text import JsonValue

ROOTS = {"item": "item", "sample": "sample", "data": "item", "target": "sample"}
Path: TypeAlias = "tuple[str | int, ...]"

_OPEN = re.compile(r"(\\*)(\{\{|<<|\$\{(?=data\.|target\.))")
_CLOSE = {"{{": "}}", "<<": ">>", "${": "}"}
_STEP = re.compile(
    r"""\.(?P<key>[^\s.\[\]{}<>"']+)|\[\s*(?P<index>-?\d{1,9})\s*\]|\[\s*(?P<quoted>"(?:[^"\\]|\\.)*")\s*\]"""
)
_ROOT = re.compile(r"\s*(?P<root>[^\s.\[\]{}<>\"']+)")


@dataclass(frozen=True, slots=True)
class Reference:
    """One placeholder.

    Attributes:
        root: `item` (the source row) or `sample` (the answer).
        path: Keys and indexes below the root; empty means the whole object.
    """

    root: str
    path: Path

    def __str__(self) -> str:
        """Write the reference as a user would: `item.a[0]["b c"]`."""
        return self.root + "".join(map(_write_step, self.path))


@dataclass(frozen=True, slots=True)
class Template:
    """A parsed template: literal texts and references in order."""

    parts: tuple[str | Reference, ...]

    @property
    def sole(self) -> Reference | None:
        """The reference, when the template is nothing else; its value keeps its JSON type."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, Reference) else None

    @property
    def references(self) -> tuple[Reference, ...]:
        """All placeholders, in order."""
        return tuple(part for part in self.parts if isinstance(part, Reference))


def parse_template(text: str, *, where: str, columns: Collection[str] = ()) -> Template:
    r"""Parse a template.

    Forms: `{{item.a.b}}`, `<<item.a.b>>`, `["key with space"]`, `[0]`, `[-1]`, `{{item}}`, the older
    `${data.x}` and `${target.x}`, and a bare column name. A backslash before `{{` or `<<` makes it
    plain text. `<<` that does not open a well-formed placeholder is plain text as well.

    Args:
        text: The template.
        where: Names the mapping in messages, such as `mapping query`.
        columns: Top-level fields of the data; a template that is just one of them reads it.

    Raises:
        ConfigError: A placeholder is malformed or starts from an unknown root.
    """
    if text in columns:
        return Template((Reference("item", (text,)),))
    parts: list[str | Reference] = []
    literal, position = "", 0
    while match := _OPEN.search(text, position):
        slashes, opening = len(match[1]), match[2]
        literal += text[position : match.start()] + "\\" * (slashes // 2)
        position = match.end()
        placed = None if slashes % 2 else _read_placeholder(text, position, opening, where)
        if placed is None:
            literal += opening
            continue
        if literal:
            parts.append(literal)
        literal, (reference, position) = "", placed
        parts.append(reference)
    literal += text[position:]
    if literal or not parts:
        parts.append(literal)
    return Template(tuple(parts))


def _read_placeholder(text: str, start: int, opening: str, where: str) -> tuple[Reference, int] | None:
    root, position = _ROOT.match(text, start), start
    path: list[str | int] = []
    if root:
        position = root.end()
        with suppress(ValueError):  # a broken key ends the path, so the closing is not found
            while step := _STEP.match(text, position):
                path.append(_read_step(step))
                position = step.end()
        while text[position : position + 1].isspace():
            position += 1
    closing = _CLOSE[opening]
    if not root or not text.startswith(closing, position):
        if opening == "<<":
            return None
        shown = text[start - len(opening) : start + 40]
        raise ConfigError(
            f"{where}: malformed placeholder at {shown!r}; write {{{{item.field}}}} or "
            f"{{{{sample.output_text}}}}, or \\{{{{ for literal braces"
        )
    if root["root"] not in ROOTS:
        raise ConfigError(f"{where}: unknown root {root['root']} (item, sample)")
    return Reference(ROOTS[root["root"]], tuple(path)), position + len(closing)


def _write_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _ROOT.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"


def _read_step(step: re.Match[str]) -> str | int:
    """Return the key or index of a step.

    Raises:
        ValueError: A quoted key is not JSON text.
    """
    if step["index"] is not None:
        return int(step["index"])
    quoted: str | None = step["quoted"]
    return step["key"] if quoted is None else str(json.loads(quoted))


class Missing:
    """The type of `MISSING`, which is not the same as a JSON null."""


MISSING = Missing()


def look_up(value: JsonValue, path: Path) -> JsonValue | Missing:
    """Walk a path through a JSON value.

    A key with dots in it is found too; where `a` holds `b` and a key `a.b` exists beside it, the nested
    value wins (the order of the Azure evaluation SDK).

    Returns:
        The value, None for a JSON null, or `MISSING`.
    """
    if not path:
        return value
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        return _look_up_key(value, path) if isinstance(value, dict) else MISSING
    if isinstance(value, list) and -len(value) <= step < len(value):
        return look_up(value[step], rest)
    return MISSING


def _look_up_key(value: dict[str, JsonValue], path: Path) -> JsonValue | Missing:
    """Try the first key alone, then joined with the keys after it by dots."""
    names = list(takewhile(lambda step: isinstance(step, str), path))
    for used in range(1, len(names) + 1):
        key = ".".join(map(str, names[:used]))
        found = look_up(value[key], path[used:]) if key in value else MISSING
        if not isinstance(found, Missing):
            return found
    return MISSING
