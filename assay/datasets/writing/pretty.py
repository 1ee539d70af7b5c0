"""JSON text with one member per line, numbers as they are spelt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.json_text import dump_json

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

_STEP = "  "


def write_pretty(value: JsonValue, level: int = 0) -> str:
    """Return a value as JSON text, indented by two spaces.

    Args:
        value: The value.
        level: How deep it stands in a document; its first line is not indented.
    """
    match value:
        case dict() if value:
            entries = [
                f"{dump_json(key)}: {write_pretty(member, level + 1)}" for key, member in value.items()
            ]
            opening, closing = "{}"
        case list() if value:
            entries = [write_pretty(member, level + 1) for member in value]
            opening, closing = "[]"
        case _:
            return dump_json(value)
    inner = "\n" + _STEP * (level + 1)
    return f"{opening}{inner}{f',{inner}'.join(entries)}\n{_STEP * level}{closing}"
