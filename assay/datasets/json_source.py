"""JSON out of a file, as one document or as lines, with a place for every fault."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.contracts.json_text import (
    PLAIN,
    DuplicateKeyError,
    JsonValue,
    NonFiniteError,
    UnstorableError,
    find_lone_surrogate,
    parse_json,
)
from assay.datasets.cells import name_kind
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.datasets.files import Source

BATCH_LINES = 4_000  # parsed objects held at once: few enough to stay in the cache
MAX_FAULTS = 20
BLANKS = " \t\r\n"
_TOKENS = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}\[\]]|NaN|-?Infinity', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Lines:
    """Objects of some lines of a file, in order; the lists run in parallel.

    Attributes:
        numbers: 1-based line of each object.
        texts: The line as written, without white space around it.
        values: The object; floats are plain, so `pick_columns` is how to read it.
    """

    numbers: list[int] = field(default_factory=list[int])
    texts: list[str] = field(default_factory=list[str])
    values: list[dict[str, JsonValue]] = field(default_factory=list["dict[str, JsonValue]"])


@dataclass(frozen=True, slots=True)
class LineFaults:
    """What is wrong with the lines of one file, gathered so that one message tells it all.

    Attributes:
        unit: What is counted: `line`, or `row` where a file has no lines.
        found: Line, column if known, and message of each fault.
    """

    unit: str = "line"
    found: list[tuple[int, int | None, str]] = field(default_factory=list["tuple[int, int | None, str]"])

    def add(self, line: int, message: str, column: int | None = None) -> None:
        """Note one fault."""
        self.found.append((line, column, message))

    def raise_any(self, shown: str) -> None:
        """Raise an InputError if a fault was noted: at the first line, with all lines in its text."""
        if not self.found:
            return
        faults = sorted(self.found, key=lambda fault: fault[0])
        line, column, message = faults[0]
        if len(faults) > 1:
            listed = "".join(f"\n  {self.unit} {number}: {text}" for number, _, text in faults[:MAX_FAULTS])
            rest = len(faults) - MAX_FAULTS
            message = f"{len(faults)} bad {self.unit}s:{listed}" + (
                f"\n  and {rest} more" if rest > 0 else ""
            )
        raise InputError(message, path=shown, line=line, column=column)


def parse_document(source: Source) -> JsonValue:
    """Parse a file that is one JSON value.

    Raises:
        InputError: It is not JSON, repeats a key, holds NaN, Infinity or half a surrogate pair;
            with line and column.
    """
    try:
        return parse_json(source.text)
    except ValueError as error:
        offset, message = _explain(error, source.text)
        raise source.error(message, offset=offset) from error


def parse_lines(source: Source, faults: LineFaults) -> Iterator[Lines]:
    """Parse a file that holds one JSON object per line, blank lines apart.

    Args:
        source: The file.
        faults: Takes every line that is not one object; such a line yields nothing.

    Yields:
        Batches of lines, in order.
    """
    batch = Lines()
    for number, raw in enumerate(source.text.split("\n"), start=1):
        line = raw.strip(BLANKS)
        value = _parse_line(line, number, raw, faults) if line else None
        if value is None:
            continue
        batch.numbers.append(number)
        batch.texts.append(line)
        batch.values.append(value)
        if len(batch.values) == BATCH_LINES:
            yield batch
            batch = Lines()
    if batch.values:
        yield batch


def _parse_line(line: str, number: int, raw: str, faults: LineFaults) -> dict[str, JsonValue] | None:
    value: JsonValue
    try:
        value, end = PLAIN.raw_decode(line)
    except (ValueError, RecursionError) as error:
        offset, message = _explain(error, line)
    else:
        if end != len(line):
            offset, message = end, "a second value on the line; one object per line is accepted"
        elif not isinstance(value, dict):
            offset, message = None, f"{name_kind(value)}, expected an object"
        else:
            lone = find_lone_surrogate(line)
            if lone is None:
                return value
            offset, message = lone
    faults.add(number, message, None if offset is None else raw.index(line) + offset + 1)
    return None


def pick_columns(lines: Lines, names: Mapping[str, Sequence[str]]) -> dict[str, list[JsonValue]]:
    """Pick one value per object and column, numbers with their source text.

    Args:
        lines: The objects.
        names: Column to the keys it may stand under; the first that is not null counts.

    Returns:
        The columns that any object has; a missing key is null.
    """
    columns = _pick_cells(lines.values, names)
    kinds: set[type] = set()
    for cells in columns.values():
        kinds.update(map(type, cells))
    if kinds & {float, list, dict}:
        exact = [value for text in lines.texts if isinstance(value := parse_json(text), dict)]
        return _pick_cells(exact, names)
    return columns


def _pick_cells(
    objects: Sequence[dict[str, JsonValue]], names: Mapping[str, Sequence[str]]
) -> dict[str, list[JsonValue]]:
    known = set[str]().union(*objects)
    columns: dict[str, list[JsonValue]] = {}
    for column, keys in names.items():
        for key in keys:
            if key not in known:
                continue
            cells = [value.get(key) for value in objects]
            first = columns.get(column)
            if first is not None:
                cells = [b if a is None else a for a, b in zip(first, cells, strict=True)]
            columns[column] = cells
    return columns


def outer_keys(head: str) -> set[str]:
    """Return the keys of the root object, or of the objects of a root array, in a text that may be cut."""
    level = 2 if head.lstrip().startswith("[") else 1
    depth = 0
    keys: set[str] = set()
    for token in _TOKENS.finditer(head):
        sign = token.group()
        if sign in "{[":
            depth += 1
        elif sign in "}]":
            depth -= 1
        elif token.group(2) and depth == level:
            keys.add(_unquote(token.group(1)))
    return keys


def _explain(error: Exception, text: str) -> tuple[int | None, str]:
    """Return where `text` is at fault, if that can be told, and what to say about it."""
    match error:
        case json.JSONDecodeError():
            return error.pos, f"not JSON: {error.msg}"
        case DuplicateKeyError() | NonFiniteError():
            return _find_repeat(text)
        case UnstorableError():
            return find_lone_surrogate(text) or (None, str(error))
        case RecursionError():
            return None, "nested too deeply"
        case _:
            return None, str(error)


def _find_repeat(text: str) -> tuple[int | None, str]:
    """Find the first repeated key or literal that JSON lacks."""
    open_keys: list[set[str]] = []
    for token in _TOKENS.finditer(text):
        sign = token.group()
        if sign == "{":
            open_keys.append(set())
        elif sign == "}":
            open_keys.pop()
        elif token.group(2):
            key = _unquote(token.group(1))
            if key in open_keys[-1]:
                return token.start(), f"key {key!r} appears twice"
            open_keys[-1].add(key)
        elif sign.endswith(("N", "y")) and not token.group(1):
            return token.start(), f"{sign} is not JSON"
    return None, "a key appears twice"


def _unquote(literal: str) -> str:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return literal[1:-1]
