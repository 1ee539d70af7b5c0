"""Reply lists: replies with an entry for each of several numbered things."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluators.reply_forms import UnusableError, object_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.reply_forms import Found, Schema


def list_schema(members: Mapping[str, JsonValue]) -> Schema:
    """Return the schema of a list whose entries have a `number` and these members."""
    return {"type": "array", "items": object_schema({"number": {"type": "integer"}, **members})}


def read_entries(found: Found, key: str) -> Sequence[Found]:
    """Return the objects of a list.

    Raises:
        UnusableError: It is missing, no list, or holds something else.
    """
    value = found.get(key)
    if not isinstance(value, list):
        raise UnusableError(f"no list under `{key}`")
    entries = [entry for entry in value if isinstance(entry, dict)]
    if len(entries) < len(value):
        raise UnusableError(f"an entry of `{key}` is no object")
    return entries


def read_numbered(found: Found, key: str, count: int) -> dict[int, Found]:
    """Return the entries of a list by their number, from 1 up to `count`, each of which is there once.

    Raises:
        UnusableError: A number is missing, comes twice or is none of these.
    """
    entries = read_entries(found, key)
    numbers = [read_number(entry.get("number"), count) for entry in entries]
    if sorted(numbers) != [*range(1, count + 1)]:
        raise UnusableError(f"`{key}` has to hold each number from 1 to {count} once")
    return dict(sorted(zip(numbers, entries, strict=True)))


def read_numbers(found: Found, key: str, count: int) -> list[int]:
    """Return a list of different numbers from 1 up to `count`, sorted.

    Raises:
        UnusableError: It is missing, no list, or holds something else.
    """
    value = found.get(key)
    if not isinstance(value, list):
        raise UnusableError(f"no list under `{key}`")
    return sorted({read_number(each, count) for each in value})


def read_number(value: JsonValue, count: int) -> int:
    """Return a whole number from 1 up to `count`.

    Raises:
        UnusableError: It is something else.
    """
    whole = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, float) and value.is_integer():
        whole = int(value)
    if whole is None or not 1 <= whole <= count:
        raise UnusableError(f"a number is none from 1 to {count}")
    return whole
