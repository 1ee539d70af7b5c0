"""Items as a dataset holds them: their turns, their source fields, and what their file says of all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from assay.contracts.json_text import JsonValue, Number, parse_json
from assay.datasets.files import read_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.datasets.contract import Dataset
    from assay.datasets.files import Input

JsonObject: TypeAlias = "dict[str, JsonValue]"

M365, UIPATH = "m365", "uipath"  # dialects whose files are documents; files of all others are rows
PAIRS = frozenset({"prompts", "expected_responses"})  # the items of an older eval document
REFERENCES = ("evaluatorConfigs", "evaluator_configs", "evaluatorRefs", "evaluator_refs")
# Fields of a document that its rows and defaults hold.
_SPENT = {
    M365: frozenset({"schemaVersion", "items", "default_evaluators"}) | PAIRS,
    UIPATH: frozenset({"version", "evaluations", *REFERENCES}),
}

_EXACT = json.JSONDecoder(parse_float=Number)


class Turn(NamedTuple):
    """One row of table ROWS, the columns that writers need."""

    item_index: int
    turn: int
    source_line: int | None
    id: str | None
    name: str | None
    category: str | None
    tags: list[str] | None
    notes: str | None
    query: str | None
    expected_response: str | None
    context: str | None
    response: str | None
    messages_json: str | None
    item_json: str
    evaluators_json: str | None
    evaluators_mode: str

    def parse(self) -> JsonObject:
        """Return the fields of the source row, floats as they are spelt; the reader checked the rest."""
        fields: JsonObject = _EXACT.raw_decode(self.item_json.lstrip())[0]
        return fields


Case: TypeAlias = "list[Turn]"


def read_cases(dataset: Dataset) -> Iterator[list[Case]]:
    """Yield the items of a dataset block by block, each as the list of its turns."""
    for block in dataset.blocks:
        cases: list[Case] = []
        for turn in map(Turn._make, block.select(Turn._fields).iter_rows()):
            if turn.turn and cases:
                cases[-1].append(turn)
            else:
                cases.append([turn])
        yield cases


def name_place(case: Case) -> str:
    """Return the id of an item, else its line, else its number."""
    first = case[0]
    if first.id:
        return first.id
    return f"item {first.item_index + 1}" if first.source_line is None else f"line {first.source_line}"


def read_root(file: Input) -> JsonObject:
    """Return the root of a document; an empty object where it is none.

    Raises:
        InputError: The file cannot be read any more.
    """
    root = parse_json(read_source(file).text)
    return root if isinstance(root, dict) else {}


def read_rest(dataset: Dataset) -> JsonObject:
    """Return what a document says beside its items and evaluators; a file of rows says nothing.

    Raises:
        InputError: The file cannot be read any more.
    """
    if dataset.dialect not in _SPENT:
        return {}
    root = read_root(dataset.file)
    spent = _SPENT[dataset.dialect] - (PAIRS if "items" in root else frozenset())
    return {key: value for key, value in root.items() if key not in spent}
