"""Evaluator files of a UiPath project: carried over from another one, or made for evaluators in use."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from assay.datasets.uipath import EVALUATORS
from assay.datasets.uipath_evaluators import VERSION, read_evaluators
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.contracts.documents import EvaluatorUse
    from assay.datasets.files import Input
    from assay.datasets.uipath_evaluators import Evaluator
    from assay.datasets.writing.cases import JsonObject
    from assay.datasets.writing.contract import Losses

EXACT, CONTAINS = "uipath-exact-match", "uipath-contains"
OURS = ("uipath-csv-column-match", "uipath-context-precision", "uipath-faithfulness")
# Evaluator to its counterpart, and whether that compares case where nothing is said.
_COUNTERPARTS: Mapping[str, tuple[str, bool]] = {
    "ExactMatch": (EXACT, False),
    "exactMatch": (EXACT, False),
    "exact_match": (EXACT, False),
    "JsonEquals": (EXACT, True),
    "json_equals": (EXACT, True),
    "Contains": (CONTAINS, False),
    "contains": (CONTAINS, False),
}
_PLACED = ("id", "fileName", "name", "description", "category", "type", "createdAt", "updatedAt", "version")


class Asked(NamedTuple):
    """What is asked of one evaluator file.

    Attributes:
        name: Name of the evaluator as its file named it.
        type_id: Type id of its counterpart.
        case_sensitive: Whether case counts.
        negated: Whether the outcome is turned round.
    """

    name: str
    type_id: str
    case_sensitive: bool
    negated: bool


class EvaluatorFiles:
    """Evaluator files for the evaluators that items use, one per set of options."""

    def __init__(self, losses: Losses) -> None:
        """Start without any."""
        self._losses = losses
        self._ids: dict[Asked, str] = {}

    @property
    def ids(self) -> list[str]:
        """Ids of all evaluators, in the order they were asked for."""
        return list(self._ids.values())

    def ask(self, uses: Iterable[EvaluatorUse], expected: str | None, place: str) -> JsonObject:
        """Return the criteria of one evaluation, by evaluator id.

        Args:
            uses: The evaluators that hold for it.
            expected: What is expected; without it nothing can be compared.
            place: The item, for the account of losses.
        """
        criteria: JsonObject = {}
        for use in uses:
            name = use.evaluator.partition(":")[0]
            if name not in _COUNTERPARTS:
                self._losses.add(f"evaluator {use.evaluator}", "left out; UiPath has no counterpart", place)
                continue
            asked = self._read(use, *_COUNTERPARTS[name], place)
            search = use.options.get("search_text")
            sought = search if isinstance(search, str) else expected
            if sought is None:
                outcome = "left out where nothing is expected"
                self._losses.add(f"evaluator {use.evaluator}", outcome, place)
                continue
            # An exact match reads the expectedOutput of its evaluation.
            criteria[self._name(asked)] = {"searchText": sought} if asked.type_id == CONTAINS else {}
        return criteria

    def write(self) -> dict[str, JsonObject]:
        """Return the files, by name."""
        return {f"{name}.json": _write_body(asked, name) for asked, name in self._ids.items()}

    def _read(self, use: EvaluatorUse, type_id: str, sensitive: bool, place: str) -> Asked:
        for option in use.options:
            if option not in {"case_sensitive", "negated", "search_text"}:
                outcome = "left out; UiPath has no such setting"
                self._losses.add(f"option {option} of {use.evaluator}", outcome, place)
        chosen = use.options.get("case_sensitive", sensitive) is True
        return Asked(use.evaluator, type_id, chosen, use.options.get("negated") is True)

    def _name(self, asked: Asked) -> str:
        if asked not in self._ids:
            base = re.sub(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z0-9]+", "-", asked.name).lower()
            alike = sum(known.name == asked.name for known in self._ids)
            self._ids[asked] = f"{base}-{alike + 1}" if alike else base
        return self._ids[asked]


def _write_body(asked: Asked, name: str) -> JsonObject:
    return {
        "version": VERSION,
        "id": name,
        "description": f"{asked.name}, as its dataset uses it.",
        "evaluatorTypeId": asked.type_id,
        "evaluatorConfig": {
            "name": name,
            "targetOutputKey": "*",
            "caseSensitive": asked.case_sensitive,
            "negated": asked.negated,
        },
    }


def carry_evaluators(file: Input, losses: Losses) -> dict[str, JsonObject]:
    """Return the evaluator files beside an eval set by name, older ones in the form of today's generation.

    Raises:
        InputError: One of them cannot be read.
    """
    folder = file.path.resolve().parent.parent / EVALUATORS
    known = read_evaluators(folder, str(folder), file.reading)
    carried: dict[str, JsonObject] = {}
    for each in known.files or ():
        if each.custom:
            losses.add(f"class of the evaluator {each.name}", "left out; copy its Python file")
        carried[each.source.path.name] = _renew(each, losses) if each.legacy else each.root.members
    return carried


def _renew(evaluator: Evaluator, losses: Losses) -> JsonObject:
    """Write an evaluator of the older generation in the form of today's."""
    body = evaluator.root.members
    try:
        type_id = evaluator.type_id
    except InputError:
        losses.add(
            f"evaluator {evaluator.name}", "kept as it was, of a category and type without a counterpart"
        )
        return body
    if type_id in OURS:
        losses.add(f"evaluator {evaluator.name}", f"of type {type_id}, which UiPath does not have", kept=True)
    config: JsonObject = {"name": evaluator.name, "description": body.get("description") or evaluator.name}
    if type_id == EXACT:
        config["caseSensitive"] = True
    config |= {key: value for key, value in body.items() if key not in _PLACED}
    if "lineByLineEvaluation" in config:
        config["lineByLineEvaluator"] = config.pop("lineByLineEvaluation")
    head: JsonObject = {"version": VERSION, "id": evaluator.id or evaluator.source.path.stem}
    dates = {key: body[key] for key in ("fileName", "createdAt", "updatedAt") if key in body}
    return {**head, "evaluatorTypeId": type_id, "evaluatorConfig": config, **dates}
