"""JSON text, read strictly and written canonically: compact, source key order, numbers as they were."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

JsonValue: TypeAlias = "bool | int | float | str | Number | list[JsonValue] | dict[str, JsonValue] | None"

_encode_text = json.JSONEncoder(ensure_ascii=False).encode
_SPACE = re.compile(r"[ \t\r\n]*")
_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
MAX_DEPTH = 253  # levels of nesting; orjson writes no more
TOO_DEEP = f"nested too deeply, beyond {MAX_DEPTH} levels"


class Number(float):
    """A float that remembers its source text, so `1.10` stays `1.10`."""

    text: str

    def __new__(cls, text: str) -> Self:
        """Parse `text` as a float and keep it."""
        value = super().__new__(cls, text)
        value.text = text
        return value


class DuplicateKeyError(ValueError):
    """An object names one key twice."""


class UnstorableError(ValueError):
    """JSON that no table can hold: half a character, or a depth no reader follows."""


class NonFiniteError(ValueError):
    """A literal NaN or Infinity, which JSON does not have."""


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKeyError(f"key {key!r} appears twice")
            seen.add(key)
    return result


def _refuse_constant(literal: str) -> NoReturn:
    raise NonFiniteError(f"{literal} is not JSON")


STRICT = json.JSONDecoder(
    object_pairs_hook=_unique_object, parse_constant=_refuse_constant, parse_float=Number
)

# The same without `Number`, half again as fast: for readers that keep the source text beside the values.
PLAIN = json.JSONDecoder(object_pairs_hook=_unique_object, parse_constant=_refuse_constant)

# What Python's own writer may leave behind, for a reading that is asked to take it.
LENIENT = json.JSONDecoder(parse_constant=lambda _literal: None, parse_float=Number)

# What models write: line breaks inside texts. Floats stay plain, as nothing is written back.
MENDING = json.JSONDecoder(object_pairs_hook=_unique_object, parse_constant=_refuse_constant, strict=False)

_TEXT_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|,(?=\s*[}\]])', re.DOTALL)


def mend_commas(text: str) -> str:
    """Drop commas that stand before a closing bracket, outside of texts."""
    return _TEXT_OR_COMMA.sub(lambda match: "" if match.group() == "," else match.group(), text)


def parse_json(text: str) -> JsonValue:
    """Parse one JSON value.

    Args:
        text: JSON text; surrounding white space is allowed.

    Returns:
        Objects as dicts in source order, floats as `Number`, integers of any size exactly.

    Raises:
        json.JSONDecodeError: The text is not JSON; `lineno` and `colno` say where.
        DuplicateKeyError: An object repeats a key.
        NonFiniteError: A NaN or Infinity literal.
        UnstorableError: An escape is half a surrogate pair, or the value is nested too deep. Like the
            others it is a ValueError.
    """
    return _decode(text, STRICT)


def parse_lenient(text: str) -> JsonValue:
    """Parse JSON as Python writes it: NaN and infinities become null, of repeated keys the last counts.

    Raises:
        ValueError: As `parse_json`, for everything else.
    """
    return _decode(text, LENIENT)


def _decode(text: str, decoder: json.JSONDecoder) -> JsonValue:
    lone = find_lone_surrogate(text)
    if lone is not None:
        raise UnstorableError(lone[1])
    try:
        value: JsonValue = decoder.decode(text)
    except RecursionError as error:
        raise UnstorableError(TOO_DEEP) from error
    if is_deep(text, value):
        raise UnstorableError(TOO_DEEP)
    return value


def is_deep(text: str, value: JsonValue) -> bool:
    """Whether a value is nested beyond `MAX_DEPTH`; its text tells that of most at once."""
    return text.count("[") + text.count("{") > MAX_DEPTH and _is_deep(value, MAX_DEPTH)


def find_lone_surrogate(text: str) -> tuple[int, str] | None:
    """Return the offset of the first escape in JSON text that is half a surrogate pair, with a message."""
    if "\\u" not in text:
        return None
    for escape in _ESCAPES.finditer(text):
        if escape.group(1):
            return escape.start(), f"{escape.group()} is half of a surrogate pair, not a character"
    return None


def _is_deep(value: JsonValue, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    members = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deep(member, levels - 1) for member in members)


def walk_json(text: str, start: int = 0) -> Iterator[tuple[str | int, int, int]]:
    """Yield key or index, start and end of each direct member of an object or array.

    `text[start:end]` is the member exactly as the source spells it.

    Args:
        text: JSON that `parse_json` accepts.
        start: Where the object or array begins, white space before it included. A value that is
            neither has no members.
    """
    position = _skip_space(text, start)
    closing = {"{": "}", "[": "]"}.get(text[position])
    if closing is None:
        return
    position, index = _skip_space(text, position + 1), 0
    while text[position] != closing:
        key: str | int = index
        if closing == "}":
            key, position = STRICT.raw_decode(text, position)
            position = _skip_space(text, _skip_space(text, position) + 1)
        end = STRICT.raw_decode(text, position)[1]
        yield key, position, end
        position, index = _skip_space(text, end), index + 1
        if text[position] == ",":
            position = _skip_space(text, position + 1)


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def dump_json(value: object) -> str:
    """Write a value as canonical JSON text: compact, key order kept, characters unescaped.

    Raises:
        TypeError: The value holds something JSON has no form for.
        NonFiniteError: The value holds NaN or an infinity.
    """
    parts: list[str] = []
    _write(value, parts)
    return "".join(parts)


def _write(value: object, parts: list[str]) -> None:
    match value:
        case str():
            parts.append(_encode_text(value))
        case dict():
            _write_object(value, parts)  # pyright: ignore[reportUnknownArgumentType] - keys are checked below
        case list() | tuple():
            _write_array(value, parts)  # pyright: ignore[reportUnknownArgumentType] - any element is accepted
        case Number():
            parts.append(value.text)
        case float() if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
            raise NonFiniteError(f"{value} is not JSON")
        case _:
            parts.append(json.dumps(value))


def _write_object(value: dict[object, object], parts: list[str]) -> None:
    separator = "{"
    for key, member in value.items():
        parts.extend((separator, _encode_text(str(key)), ":"))
        _write(member, parts)
        separator = ","
    parts.append("}" if value else "{}")


def _write_array(value: list[object] | tuple[object, ...], parts: list[str]) -> None:
    separator = "["
    for member in value:
        parts.append(separator)
        _write(member, parts)
        separator = ","
    parts.append("]" if value else "[]")


def sha_text(*parts: str | None) -> str:
    """Hash texts so that no two different lists of parts share a value; null differs from empty.

    Returns:
        The SHA-256 of the parts as 64 hex digits.
    """
    digest = hashlib.sha256()
    for part in parts:
        data = b"" if part is None else part.encode("utf-8", "surrogatepass")
        digest.update(b"-" if part is None else b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()
