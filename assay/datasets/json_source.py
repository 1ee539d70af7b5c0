"""JSON out of a text, as one document or one line, with a place for every fault."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from assay.contracts.documents import Notice
from assay.contracts.json_text import (
    PLAIN,
    TOO_DEEP,
    DuplicateKeyError,
    JsonValue,
    NonFiniteError,
    UnstorableError,
    dump_json,
    find_lone_surrogate,
    is_deep,
    parse_json,
    parse_lenient,
)
from assay.datasets.cells import name_kind
from assay.datasets.faults import Fault

if TYPE_CHECKING:
    from assay.config import Reading
    from assay.datasets.faults import Faults
    from assay.datasets.files import Source

BLANKS = " \t\r\n"
_TOKENS = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?|[{}\[\]]|NaN|-?Infinity', re.DOTALL)


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


def parse_line(
    raw: str, number: int, faults: Faults, reading: Reading
) -> tuple[dict[str, JsonValue], str] | None:
    """Parse a line that should be one JSON object.

    Args:
        raw: The line; white space around the object is allowed.
        number: Its number, for faults.
        faults: Takes what is wrong with the line, and notices of what a lenient reading lets pass.
        reading: Whether it is lenient, and which members are texts that hold JSON.

    Returns:
        The object, floats without their source text, and the line without white space around it: as it
        was, or written anew where something was changed. None for a fault.
    """
    line = raw.strip(BLANKS)
    indent = raw.index(line)
    value: JsonValue
    try:
        value, end = PLAIN.raw_decode(line)
    except (DuplicateKeyError, NonFiniteError) as error:
        if reading.lenient:
            return _parse_leniently(line, number, faults, reading)
        offset, message = _explain(error, line)
    except (ValueError, RecursionError) as error:
        offset, message = _explain(error, line)
    else:
        if end != len(line):
            offset, message = end, "a second value on the line; one object per line is accepted"
        elif not isinstance(value, dict):
            offset, message = None, f"{name_kind(value)}, expected an object"
        else:
            lone = find_lone_surrogate(line)
            if lone is None and not is_deep(line, value):
                return open_json_members(value, line, number, faults, reading)
            offset, message = lone or (None, TOO_DEEP)
    column = None if offset is None else indent + offset + 1
    faults.add_fault(Fault(number, message, column, text=raw))
    return None


def _parse_leniently(
    line: str, number: int, faults: Faults, reading: Reading
) -> tuple[dict[str, JsonValue], str] | None:
    """Read NaN and infinities as null and repeated keys as their last value, with a notice."""
    message = _find_repeat(line)[1]
    try:
        value = parse_lenient(line)
    except (ValueError, RecursionError) as error:
        offset, message = _explain(error, line)
        faults.add_fault(Fault(number, message, None if offset is None else offset + 1, text=line))
        return None
    if not isinstance(value, dict):
        faults.add_fault(Fault(number, f"{name_kind(value)}, expected an object", text=line))
        return None
    taken = "the last one counts" if "twice" in message else "read as null"
    faults.note(Notice("lenient", f"{message}; {taken}", faults.shown, number))
    return open_json_members(value, dump_json(value), number, faults, reading)


def open_json_members(
    value: dict[str, JsonValue], line: str, number: int, faults: Faults, reading: Reading
) -> tuple[dict[str, JsonValue], str] | None:
    """Replace the texts of the columns that hold JSON by their values."""
    named = [name for name in reading.json_columns if isinstance(value.get(name), str)]
    if not named:
        return value, line
    exact = parse_json(line)
    opened = dict(exact) if isinstance(exact, dict) else value
    for name in named:
        try:
            opened[name] = parse_json(str(value[name]))
        except ValueError as error:
            faults.add_fault(Fault(number, f"column {name} is text that is not JSON: {error}", text=line))
            return None
    return opened, dump_json(opened)


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
