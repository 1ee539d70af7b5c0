"""Items of an eval document: carried over from another one, or made from rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.json_text import JsonValue, parse_json
from assay.datasets.cells import tag_list
from assay.datasets.writing.cases import name_place
from assay.datasets.writing.records import EXTENSIONS, THREAD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.datasets.writing.cases import Case, JsonObject, Turn
    from assay.datasets.writing.contract import Losses

MOST_TURNS = 20
# Fields that the published schema has; a document may hold more of them, and rows other things.
_TURN = frozenset(
    {
        "prompt",
        "expected_response",
        "response",
        "context",
        "evaluators",
        "evaluators_mode",
        "allowed_tools",
        "allowed_tools_mode",
        "citations",
        "scores",
        "diagnostics",
        "status",
        "error",
        "tags",
        EXTENSIONS,
    }
)
_THREAD = frozenset({"name", "description", "turns", "conversation_id", "summary", "tags", EXTENSIONS})
_LABELS = ("id", "name", "category", "notes", "tags")
_IDS = ("id", "testId")
_ASIDE = "kept in extensions of its item"


def carry_item(case: Case, losses: Losses) -> JsonObject:
    """Return an item of an eval document as it was; what the schema refuses goes to its `extensions`."""
    place = name_place(case)
    turns = [turn.parse() for turn in case]
    thread = turns[0].get(THREAD)
    if not isinstance(thread, dict):
        return _fit(turns[0], _TURN, losses, place)
    for fields in turns:
        fields.pop(THREAD)
    if len(turns) > MOST_TURNS:
        losses.add(
            f"more than {MOST_TURNS} turns", "written, though the schema refuses them", place, kept=True
        )
    item = _fit(thread, _THREAD, losses, place)
    extensions = item.pop(EXTENSIONS, None)
    item["turns"] = [_fit(fields, _TURN, losses, place) for fields in turns]
    return item if extensions is None else item | {EXTENSIONS: extensions}


def make_item(case: Case, record: JsonObject, losses: Losses) -> JsonObject | None:
    """Make an item from a row; None when it asks nothing.

    Args:
        case: The item; conversations of several rows are carried over instead.
        record: Its fields under standard names.
        losses: Takes the fields that go to `extensions`, and items left out.
    """
    row, place = case[-1], name_place(case)
    exchanges = _split_messages(row.messages_json) if "messages" in record else None
    if exchanges:
        record = {key: value for key, value in record.items() if key != "messages"}
    turns = [
        _keep_texts(prompt=said, response=heard) for said, heard in exchanges or [(row.query, row.response)]
    ]
    if not turns[-1].get("prompt"):
        losses.add("item without a question", "left out", place)
        return None
    turns[-1] |= _keep_texts(expected_response=row.expected_response, context=row.context)
    item: JsonObject = {**turns[0]} if len(turns) == 1 else {"turns": [*turns]}
    tags = record.get("tags")
    if tags is not None:
        item["tags"] = _list_tags(tags)
    extensions = _collect_extensions(row, record, losses, place)
    if extensions:
        item[EXTENSIONS] = extensions
    return item


def _fit(fields: JsonObject, known: frozenset[str], losses: Losses, place: str) -> JsonObject:
    """Move what the schema does not know to `extensions`; a field of the item wins over one there."""
    fitting = {key: value for key, value in fields.items() if key in known}
    tags = fitting.pop("tags", None)
    if tags is not None:
        fitting["tags"] = _list_tags(tags)
    apart = {key: value for key, value in fields.items() if key not in known}
    if apart:
        held = fitting.pop(EXTENSIONS, None)
        fitting[EXTENSIONS] = _extend(held if isinstance(held, dict) else {}, apart, losses, place)
    return fitting


def _extend(held: JsonObject, apart: JsonObject, losses: Losses, place: str) -> JsonObject:
    """Return `extensions` with fields of the item, which are read before those."""
    extensions = {**held}
    if apart.get("id") and not apart.get("testId") and extensions.pop("testId", None) is not None:
        losses.add(f"{EXTENSIONS}.testId", "left out, as the id of the item is read first", place)
    for key, value in apart.items():
        unread = value is None or (not value and key in _IDS)
        if unread and extensions.get(key) is not None:
            continue  # what stands in extensions is read in its place
        if extensions.get(key, value) != value:
            losses.add(f"{EXTENSIONS}.{key}", f"replaced by {key} of the item, which is read first", place)
        extensions[key] = value
        losses.add(key, _ASIDE, place, kept=True)
    return extensions


def _list_tags(tags: JsonValue) -> JsonValue:
    """Return tags as a list of texts, which is the only form the schema has."""
    is_plain = isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)
    return tags if is_plain else [*(tag_list(tags) or ())]


def _keep_texts(**texts: str | None) -> JsonObject:
    return {key: text for key, text in texts.items() if text is not None}


def _split_messages(messages_json: str | None) -> list[tuple[str, str | None]] | None:
    """Return questions with their answers; None where messages are more than texts of two in turn."""
    messages = parse_json(messages_json) if messages_json is not None else None
    if not isinstance(messages, list):
        return None
    texts = list(_read_texts(messages))
    if len(texts) != len(messages) or len(texts) > 2 * MOST_TURNS or not all(texts[::2]):
        return None
    answers: list[str | None] = [*texts[1::2]]
    return list(zip(texts[::2], [*answers, None][: len(texts[::2])], strict=True))


def _read_texts(messages: list[JsonValue]) -> Iterator[str]:
    """Yield texts as long as user and assistant speak in turn and say nothing else."""
    for number, message in enumerate(messages):
        role = "assistant" if number % 2 else "user"
        if not isinstance(message, dict) or message.keys() != {"role", "content"} or message["role"] != role:
            return
        content = message["content"]
        if not isinstance(content, str):
            return
        yield content


def _collect_extensions(row: Turn, record: JsonObject, losses: Losses, place: str) -> JsonObject:
    """Return the labels of an item, and every field that it has no other place for."""
    labels: JsonObject = {"testId": row.id, "name": row.name, "category": row.category, "notes": row.notes}
    extensions: JsonObject = {key: value for key, value in labels.items() if value is not None}
    texts = {
        "query": row.query,
        "response": row.response,
        "ground_truth": row.expected_response,
        "context": row.context,
    }
    for key, value in record.items():
        if key in extensions and isinstance(value, bool | list | dict):
            losses.add(key, "as text in extensions of its item", place, kept=True)
        if key in _LABELS or (key in texts and value in (None, texts[key])):
            continue
        if key in extensions:
            losses.add(key, "left out, as another field says the same", place)
            continue
        extensions[key] = value
        losses.add(key, _ASIDE, place, kept=True)
    return extensions
