"""JSON fields: values of the form that an evaluator reads, or an error of the row that names the field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.json_text import parse_json
from assay.datasets.cells import name_kind
from assay.errors import CallError

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

BAD_FIELD = "bad_field"


def refuse_value(name: str, value: JsonValue, accepted: str) -> CallError:
    """Return the error for a value of the wrong kind: what it is, what is accepted, how texts are read."""
    hint = "; a column of texts that hold JSON is read with --json-column" if isinstance(value, str) else ""
    return CallError(BAD_FIELD, f"{name} is {name_kind(value)}, expected {accepted}{hint}")


def read_field(text: str | None, name: str) -> JsonValue:
    """Read a field that comes as JSON text; null where there is none.

    Raises:
        CallError: `bad_field`, when the text is not JSON.
    """
    try:
        return None if text is None else parse_json(text)
    except ValueError as error:
        raise CallError(BAD_FIELD, f"{name} is not JSON: {error}") from error


def read_objects(value: JsonValue, name: str, accepted: str) -> list[dict[str, JsonValue]]:
    """Return the objects of a list; none where there is none.

    Args:
        value: The list, or null.
        name: What to call it in a fault.
        accepted: What it is expected to be, such as `a list of objects with a name`.

    Raises:
        CallError: `bad_field`, when it is no list, or holds anything but objects.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise refuse_value(name, value, accepted)
    objects: list[dict[str, JsonValue]] = []
    for place, each in enumerate(value):
        if not isinstance(each, dict):
            raise CallError(BAD_FIELD, f"{name}[{place}] is {name_kind(each)}; expected is {accepted}")
        objects.append(each)
    return objects


def read_text(value: JsonValue, name: str) -> str | None:
    """Return a text, or None for null.

    Raises:
        CallError: `bad_field`, when it is anything else.
    """
    if value is not None and not isinstance(value, str):
        raise refuse_value(name, value, "text")
    return value


def read_whole(value: JsonValue, name: str) -> int | None:
    """Return a whole number, 11.0 as 11, or None for null.

    Raises:
        CallError: `bad_field`, when it is anything else; true is no number.
    """
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    shown = f" ({value})" if isinstance(value, float) else ""
    raise CallError(BAD_FIELD, f"{name} is {name_kind(value)}{shown}, expected a whole number")
