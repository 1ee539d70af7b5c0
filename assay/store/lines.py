"""The lines of a call ledger: a key at a fixed place, then the payload, as one JSON object."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias, cast

import orjson

from assay.contracts.json_text import PLAIN, JsonValue, dump_json
from assay.errors import ContractError

if TYPE_CHECKING:
    from assay.store.layout import RunFolder

JsonObject: TypeAlias = dict[str, JsonValue]

PREFIX = b'{"key":"'  # what every line begins with, so that keys are found without parsing
KEY_DIGITS = 64
_KEY = re.compile(rf"[0-9a-f]{{{KEY_DIGITS}}}")
_HALVES = re.compile("[\ud800-\udfff]")
_SEGMENT = re.compile(r"part-(\d{5}|[1-9]\d{5,})\.jsonl")


def list_segments(folder: RunFolder) -> list[int]:
    """Return the indexes of the segments that exist, in order; files of any other name are ignored.

    Raises:
        OSError: The folder cannot be listed; an absent one holds none.
    """
    try:
        found = [_SEGMENT.fullmatch(path.name) for path in folder.calls.iterdir()]
    except FileNotFoundError:
        return []
    return sorted(int(match[1]) for match in found if match)


def check_key(key: str) -> None:
    """Refuse what is no key.

    Raises:
        ContractError: The key is not 64 lower-case hex digits.
    """
    if not _KEY.fullmatch(key):
        raise ContractError(f"call ledger: key {key!r} is not {KEY_DIGITS} lower-case hex digits")


def write_line(key: str, payload: JsonObject) -> bytes:
    """Return the line of an entry, line feed included; half a surrogate pair becomes U+FFFD.

    Raises:
        ContractError: The key is no key, or the payload has a member of that name.
        NonFiniteError: The payload holds NaN or an infinity.
    """
    check_key(key)
    if "key" in payload:
        raise ContractError("call ledger: a payload cannot have a member `key`")
    entry = {"key": key, **payload}
    if _is_finite(payload):
        with suppress(TypeError):  # integers beyond 64 bits, half surrogate pairs
            return orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)
    text = dump_json(entry) + "\n"
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _HALVES.sub("\ufffd", text).encode()


def _is_finite(value: JsonValue) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def parse_line(line: bytes) -> tuple[str, JsonObject] | None:
    """Return key and payload of a line, or nothing if it is torn or damaged."""
    if not line.startswith(PREFIX) or not line.endswith(b"}\n"):
        return None
    try:
        entry = PLAIN.decode(line.decode())
    except (ValueError, RecursionError):
        return None
    key = entry.pop("key")
    return (key, cast("JsonObject", entry)) if _KEY.fullmatch(key) else None
