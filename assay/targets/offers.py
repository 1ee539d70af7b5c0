"""What a turn offers to the function, program or service that answers it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast
from uuid import NAMESPACE_URL, uuid5

from assay.contracts.json_text import dump_json
from assay.datasets.messages import read_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from uuid import UUID

    from assay.contracts.chat import Message
    from assay.contracts.json_text import JsonValue
    from assay.targets.contract import Ask


def collect_offers(ask: Ask, names: Iterable[str]) -> dict[str, JsonValue]:
    """Return what a turn offers by name, as values of its own that may be changed.

    Args:
        ask: The turn.
        names: Some of `OFFERED`.
    """
    return {name: _READERS[name](ask) for name in names}


def name_conversation(ask: Ask, space: UUID = NAMESPACE_URL) -> str:
    """Return an id that all turns of a conversation share, and no other conversation or trial has.

    Args:
        ask: One of its turns.
        space: Makes the ids of one run differ from those of another.
    """
    return str(uuid5(space, dump_json([str(ask.row.get("item_id")), ask.trial])))


def _read_query(ask: Ask) -> JsonValue:
    """Return the text of the last message of the user, else the query of the row."""
    for message in reversed(ask.messages):
        if message.get("role") == "user":
            return read_message(dict(message)) or ""
    return _read_text(ask.row, "query")


def _read_messages(ask: Ask) -> JsonValue:
    return [_copy(message) for message in ask.messages]


def _copy(message: Message) -> JsonValue:
    return cast("JsonValue", json.loads(dump_json(dict(message))))


def _read_item(ask: Ask) -> JsonValue:
    text = ask.row.get("item_json")
    return cast("JsonValue", json.loads(text)) if isinstance(text, str) else {}


def _read_turn(ask: Ask) -> JsonValue:
    turn = ask.row.get("turn")
    return turn if isinstance(turn, int) else 0


def _read_system(ask: Ask) -> JsonValue:
    """Return the text of the first system message."""
    for message in ask.messages:
        if message.get("role") in {"system", "developer"}:
            return read_message(dict(message))
    return None


def _read_text(row: Mapping[str, object], name: str) -> JsonValue:
    value = row.get(name)
    return value if isinstance(value, str) else None


_READERS: Mapping[str, Callable[[Ask], JsonValue]] = {
    "query": _read_query,
    "messages": _read_messages,
    "item": _read_item,
    "context": lambda ask: _read_text(ask.row, "context"),
    "turn": _read_turn,
    "trial": lambda ask: ask.trial,
    "system": _read_system,
}
OFFERED = tuple(_READERS)
"""Names of what is offered: `query` is the last text of the user, `item` the source row, `messages` the
conversation so far in chat-completions form."""
