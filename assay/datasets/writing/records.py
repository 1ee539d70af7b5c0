"""Items as flat records under the standard names of rows, whatever form they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.json_text import JsonValue, dump_json, parse_json
from assay.datasets.cells import ROW_NAMES, tag_list, text_of
from assay.datasets.writing.cases import M365, UIPATH, name_place, read_rest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.datasets.contract import Dataset
    from assay.datasets.writing.cases import Case, JsonObject, Turn
    from assay.datasets.writing.contract import Losses

THREAD, TURNS, EXTENSIONS = "thread", "turns", "extensions"
SAID = ("prompt", "response")  # fields of a turn that messages hold
STANDARD = (
    "id",
    "name",
    "category",
    "tags",
    "notes",
    "query",
    "response",
    "ground_truth",
    "context",
    "messages",
    "tool_definitions",
    "tool_calls",
)
# Other names of a standard field; those of simulation seeds stay, as a seed is read by them.
ALIASES = {"prompt": "query", "expected_response": "ground_truth", "testId": "id"}
JSON_FIELDS = ("messages", "tool_definitions", "tool_calls", "simulation_configuration")
READ_NAMES = frozenset(name for names in ROW_NAMES.values() for name in names)
# Standard fields that a document may hold, unread, because it was made from rows.
_RESTORED = {
    M365: frozenset({"tool_definitions", "tool_calls"}),
    UIPATH: frozenset({"tool_definitions", "tool_calls", "context", "response", "category", "tags", "notes"}),
}
_LEFT_BEHIND = "left out; name evaluators on the command line"


class Records:
    """Makes one record per item of a dataset.

    A row keeps its fields and their order, those with another standard name renamed. Items of documents
    get the standard fields first, members of `extensions` become fields; what would be read as something
    it is not stays under `extensions`. A conversation becomes one record with `messages`.
    """

    def __init__(self, dataset: Dataset, losses: Losses, *, open_texts: bool = True) -> None:
        """Read nothing yet.

        Args:
            dataset: Where the items come from.
            losses: Takes what a record has no place for; evaluators are the caller's.
            open_texts: Whether texts of fields that hold JSON by their name are parsed.
        """
        self.dialect = dataset.dialect
        self._losses, self._open_texts = losses, open_texts
        self._restored = _RESTORED.get(dataset.dialect)

    def make(self, case: Case) -> JsonObject | None:
        """Return the record of an item; None for a conversation that no record can hold."""
        return self._make(case, case[-1].parse())

    def write(self, case: Case) -> str | None:
        """Return the record of an item as one line of JSON: its source text where that says the same."""
        fields = case[-1].parse()
        record = self._make(case, fields)
        if record is None:
            return None
        text = case[-1].item_json
        return text if record is fields and "\n" not in text and "\r" not in text else dump_json(record)

    def _make(self, case: Case, fields: JsonObject) -> JsonObject | None:
        if self._restored is None:
            return self._rename(fields)
        if THREAD in fields and self.dialect == M365:
            return self._join_thread(case, fields)
        return self._gather(case[-1], fields)

    def _rename(self, fields: JsonObject) -> JsonObject:
        if not fields.keys().isdisjoint(ALIASES):
            fields = {
                name if (name := ALIASES.get(key)) and name not in fields else key: value
                for key, value in fields.items()
            }
        if self._open_texts and not fields.keys().isdisjoint(JSON_FIELDS):
            opened = {key: _open(fields[key]) for key in JSON_FIELDS if isinstance(fields.get(key), str)}
            return fields | opened if opened else fields
        return fields

    def _gather(self, turn: Turn, fields: JsonObject) -> JsonObject:
        """Make a record of standard fields, and of all others as far as their names allow."""
        record = _standard_fields(turn)
        if turn.response is None and self.dialect == M365:
            fields.pop("response", None)  # the empty text of a call that failed
        if self.dialect == UIPATH:
            fields = _drop_said(turn, fields)
        extensions = fields.pop(EXTENSIONS, None)
        members: JsonObject = extensions if isinstance(extensions, dict) else {}
        if extensions is not None and not members:
            record[EXTENSIONS] = extensions
        apart: JsonObject = {}
        for key, value in (*fields.items(), *members.items()):
            if not self._place(record, key, value) and apart.setdefault(key, value) != value:
                outcome = f"left out, as another field of this name stands in {EXTENSIONS}"
                self._losses.add(key, outcome, name_place([turn]))
        if apart and EXTENSIONS in record:
            apart[EXTENSIONS] = record[EXTENSIONS]
        return {**record, EXTENSIONS: apart} if apart else record

    def _place(self, record: JsonObject, key: str, value: JsonValue) -> bool:
        """Put a field into a record if the record says so already, or nothing will misread it."""
        name = ALIASES.get(key, key)
        if name in record:
            if record[name] == value:
                return True
            if name == "tags" and record[name] == tag_list(value):
                record[name] = value
                return True
            if isinstance(value, str) or text_of(value) != record[name]:
                return False
            record[name] = value  # the same as it was before it became text
            return True
        if name in READ_NAMES and name not in (self._restored or ()):
            return value is None
        record[name] = value
        return True

    def _join_thread(self, case: Case, last: JsonObject) -> JsonObject | None:
        """Make one record of a conversation, unless an answer is missing in it."""
        turns = [*(turn.parse() for turn in case[:-1]), last]
        thread = last.get(THREAD)
        labels = thread if isinstance(thread, dict) else {}
        for fields in turns:
            fields.pop(THREAD, None)
        place = name_place(case)
        if any(turn.response is None for turn in case[:-1]):
            self._losses.add("conversation without all its answers", "left out", place)
            return None
        record = self._gather_thread(case, last, labels)
        hidden = _find_hidden(turns, labels)
        for key in hidden:
            self._losses.add(f"{key} of turns", f"without effect in the field {TURNS}", place)
        return {**record, TURNS: [*turns]} if hidden else record

    def _gather_thread(self, case: Case, last: JsonObject, labels: JsonObject) -> JsonObject:
        """Make a record of what was said, what is expected of the last answer, and the labels of all."""
        if len(case) == 1:
            return self._gather(case[0], last | labels)
        own = {key: value for key, value in last.items() if key not in SAID}
        record = self._gather(case[-1]._replace(query=None, response=None), own | labels)
        record["messages"] = list(_speak(case))
        return record


def _find_hidden(turns: list[JsonObject], labels: JsonObject) -> list[str]:
    """Return the fields of turns that one record has no effect for, or no place beside its labels."""
    earlier = [key for fields in turns[:-1] for key in fields if key not in SAID]
    return earlier + [key for key in turns[-1] if key in labels]


def note_evaluators(dataset: Dataset, losses: Losses) -> None:
    """Note the evaluators that a file applies to every item, for a form that names none."""
    for use in dataset.defaults or ():
        losses.add(f"evaluator {use.name or use.evaluator} of the file", _LEFT_BEHIND)


def note_own_evaluators(case: Case, losses: Losses) -> None:
    """Note evaluators that an item names for itself, for a form that names none."""
    if case[-1].evaluators_json is not None or any(turn.evaluators_json for turn in case[:-1]):
        is_field = "evaluators" in case[-1].parse()
        outcome = "without effect in the field evaluators" if is_field else _LEFT_BEHIND
        losses.add("evaluators of items", outcome, name_place(case))


def note_root(dataset: Dataset, losses: Losses) -> None:
    """Note what a document says beside its items, for a form that has items only."""
    for key in read_rest(dataset):
        losses.add(f"{key} of the file", "left out")


def _standard_fields(turn: Turn) -> JsonObject:
    fields: JsonObject = {
        "id": turn.id,
        "name": turn.name,
        "category": turn.category,
        "tags": None if turn.tags is None else [*turn.tags],
        "notes": turn.notes,
        "query": turn.query,
        "response": turn.response,
        "ground_truth": turn.expected_response,
        "context": turn.context,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _drop_said(turn: Turn, fields: JsonObject) -> JsonObject:
    """Return an evaluation without the inputs and the expected text that standard fields say."""
    said: JsonObject = {"inputs": {"query": turn.query}, "expectedOutput": turn.expected_response}
    return {key: value for key, value in fields.items() if key not in said or value != said[key]}


def _speak(case: Case) -> Iterator[JsonValue]:
    for turn in case:
        yield {"role": "user", "content": turn.query}
        if turn.response is not None:
            yield {"role": "assistant", "content": turn.response}


def _open(value: JsonValue) -> JsonValue:
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value
