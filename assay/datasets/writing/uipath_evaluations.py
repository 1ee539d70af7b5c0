"""Evaluations of a UiPath set: carried over from another one, or made from items."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.json_text import dump_json
from assay.datasets.cells import text_of
from assay.datasets.uipath_evaluators import pick
from assay.datasets.writing.cases import REFERENCES, name_place
from assay.datasets.writing.records import EXTENSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assay.contracts.json_text import JsonValue
    from assay.datasets.writing.cases import Case, JsonObject, Turn
    from assay.datasets.writing.contract import Losses

CRITERIA = "evaluationCriterias"
# Names that mean something in an evaluation, where a field of another form would be taken for it.
_RESERVED = frozenset({"inputs", "expectedOutput", "expected_output", CRITERIA, "evaluation_criterias"})
_ASIDE = "an extra key of the evaluation, which UiPath does not read"


def find_references(root: JsonObject) -> list[str]:
    """Return how a set refers to its evaluators."""
    entries = next((found for name in REFERENCES if (found := root.get(name))), None)
    listed = entries if isinstance(entries, list) else []
    named = (entry.get("ref") if isinstance(entry, dict) else entry for entry in listed)
    return [reference for reference in named if isinstance(reference, str)]


def renew_evaluation(fields: JsonObject, references: Iterable[str]) -> JsonObject:
    """Return an evaluation of the older generation in the form of today's: each evaluator has criteria.

    What is expected stays in the evaluation, where evaluators without own criteria read it.
    """
    behavior = pick(fields, "expectedAgentBehavior")
    criteria: JsonObject = {"expectedAgentBehavior": behavior} if behavior else {}
    return {**fields, CRITERIA: {reference: {**criteria} for reference in references}}


def make_evaluation(case: Case, record: JsonObject, criteria: JsonObject, losses: Losses) -> JsonObject:
    """Make an evaluation from an item; its id is null where it has none.

    Args:
        case: The item.
        record: Its fields under standard names, without its evaluators.
        criteria: What its evaluators compare with.
        losses: Takes the fields that UiPath does not read.
    """
    row, place = case[-1], name_place(case)
    evaluation: JsonObject = {"id": case[0].id, "name": _choose_name(case)}
    evaluation["inputs"] = _choose_inputs(row.query, record.get("inputs"))
    if row.query is None and not evaluation["inputs"]:
        losses.add("item without a question", "written with empty inputs", place)
    expected = _find_expected(row, record)
    if expected is not None:
        evaluation["expectedOutput"] = expected
    evaluation[CRITERIA] = criteria
    reference = expected if isinstance(record.get("ground_truth"), dict) else row.expected_response
    said: JsonObject = {**evaluation, "query": row.query, "ground_truth": reference}
    if row.response is not None:
        evaluation["response"] = row.response
    texts: JsonObject = {"response": row.response, "context": row.context}
    apart = _copy_members(record.get(EXTENSIONS))
    for key, value in _find_rest(record, said):
        if value is not None:
            losses.add(key, _ASIDE, place, kept=True)
        misread = key in said or key in _RESERVED or (key in texts and text_of(value) != texts[key])
        (apart if misread else evaluation)[key] = value
    return {**evaluation, EXTENSIONS: apart} if apart else evaluation


def _choose_name(case: Case) -> str:
    """Return the name of an item; one that has none is called by its id or place, as a name must be."""
    first = case[0]
    return name_place(case) if first.name is None else first.name


def _find_rest(record: JsonObject, said: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields that an evaluation does not say yet."""
    for key, value in record.items():
        is_said = key in said and value in (None, said[key])
        if key not in {"id", "name", EXTENSIONS} and not is_said:
            yield key, value


def _copy_members(extensions: JsonValue) -> JsonObject:
    if isinstance(extensions, dict):
        return {**extensions}
    return {} if extensions is None else {EXTENSIONS: extensions}


def _choose_inputs(query: str | None, given: JsonValue) -> JsonObject:
    """Return the inputs that a field holds if the question was made of them, else the question as input."""
    if isinstance(given, dict) and query in (*given.values(), dump_json(given)):
        return given
    return {} if query is None else {"query": query}


def _find_expected(row: Turn, record: JsonObject) -> JsonValue:
    """Return the expected output: an object where a field holds one, else text."""
    for name in ("expectedOutput", "ground_truth"):
        value = record.get(name)
        if isinstance(value, dict) or (isinstance(value, str) and name == "expectedOutput"):
            return value
    return row.expected_response


class Ids:
    """Ids of the evaluations of one set, all different."""

    def __init__(self, losses: Losses) -> None:
        """Start without any."""
        self._losses = losses
        self._taken: set[str] = set()
        self._nameless: list[JsonObject] = []

    def claim(self, evaluation: JsonObject) -> None:
        """Make the id of an evaluation its own; one that has none waits until all others are known."""
        base = evaluation["id"]
        if not isinstance(base, str):
            self._nameless.append(evaluation)
            return
        if base in self._taken:
            self._losses.add("id of several items", "numbered, as ids of evaluations differ", base, kept=True)
        evaluation["id"] = self._number(base)

    def close(self) -> None:
        """Give an id to every evaluation that has none."""
        for count, evaluation in enumerate(self._nameless, start=1):
            evaluation["id"] = self._number(f"item-{count}")

    def _number(self, base: str) -> str:
        count, label = 1, base
        while label in self._taken:
            count += 1
            label = f"{base}-{count}"
        self._taken.add(label)
        return label
