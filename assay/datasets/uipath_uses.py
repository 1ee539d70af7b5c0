"""What an evaluation of a UiPath set asks of one evaluator, as an evaluator use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.contracts.documents import EvaluatorUse
from assay.contracts.json_text import dump_json
from assay.datasets.cells import name_kind
from assay.datasets.uipath_evaluators import bind_reference, describe_evaluators, find_name, pick
from assay.datasets.uipath_templates import parse_target, value_at, write_literal, write_placeholder
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.json_text import JsonValue
    from assay.datasets.uipath_evaluators import Evaluator
    from assay.datasets.uipath_templates import Path

EXACT, CONTAINS = "uipath-exact-match", "uipath-contains"
# Settings that change the score and have no counterpart: handed on, so that the options refuse them.
UNMATCHED = ("lineByLineEvaluator", "lineByLineEvaluation", "aggregators")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of a set.

    Attributes:
        shown: The set's file.
        pointer: Its place in the file, such as `evaluations[2]`.
        label: Its id, for messages.
        value: The evaluation.
        criteria_name: How it spells `evaluationCriterias`; None in sets of the older generation, where
            every evaluator reads `expectedOutput`.
        criteria: Evaluator file to the key of its criteria, as written.
    """

    shown: str
    pointer: str
    label: str
    value: Mapping[str, JsonValue]
    criteria_name: str | None
    criteria: Mapping[str, str]

    def criteria_of(self, evaluator: Evaluator) -> Mapping[str, JsonValue]:
        """Return the criteria for an evaluator; null counts as an empty object."""
        key = self.criteria.get(evaluator.shown)
        holder = self.value.get(self.criteria_name or "")
        found = holder.get(key) if isinstance(holder, dict) and key is not None else None
        if not isinstance(found, dict | None):
            pointer = f"{self.pointer}.{self.criteria_name}.{key}"
            message = f"{name_kind(found)}, expected an object or null"
            raise InputError(message, path=self.shown, pointer=pointer)
        return found or {}


def bind_criteria(
    shown: str, pointer: str, value: Mapping[str, JsonValue], evaluators: Sequence[Evaluator]
) -> tuple[str, dict[str, str]]:
    """Return how an evaluation spells `evaluationCriterias`, and evaluator file to key in it.

    Raises:
        InputError: The criteria are missing or no object, or a key names no evaluator.
    """
    name = find_name(value, "evaluationCriterias") or "evaluationCriterias"
    holder = value.get(name)
    if not isinstance(holder, dict):
        message = f"{name_kind(holder)}, expected an object; an empty one uses no evaluator"
        raise InputError(message, path=shown, pointer=f"{pointer}.{name}")
    bound: dict[str, str] = {}
    for key in holder:
        evaluator = bind_reference(key, evaluators)
        if evaluator is None:
            message = f"unknown evaluator; known: {describe_evaluators(evaluators)}"
            raise InputError(message, path=shown, pointer=f"{pointer}.{name}.{key}")
        bound[evaluator.shown] = key
    return name, bound


def build_uses(evaluators: Sequence[Evaluator], evaluation: Evaluation) -> tuple[EvaluatorUse, ...]:
    """Say what the evaluators of a set read for one evaluation; without criteria there, one is not used.

    Exact match and contains get templates for both sides; any other type is handed on by its id.

    Raises:
        InputError: Neither the evaluation nor the evaluator says what is expected.
    """
    older = evaluation.criteria_name is None
    due = (evaluator for evaluator in evaluators if older or evaluator.shown in evaluation.criteria)
    return tuple(_build_use(evaluator, evaluation) for evaluator in due)


def _build_use(evaluator: Evaluator, evaluation: Evaluation) -> EvaluatorUse:
    type_id = evaluator.type_id
    if type_id not in (EXACT, CONTAINS):
        return EvaluatorUse(type_id, name=evaluator.name, where=evaluator.shown)
    options: dict[str, JsonValue] = {
        "case_sensitive": True if evaluator.legacy else pick(evaluator.config, "caseSensitive") or False,
        "negated": False if evaluator.legacy else pick(evaluator.config, "negated") or False,
    }
    options |= {name: value for name in UNMATCHED if (value := pick(evaluator.config, name))}
    target = pick(evaluator.config, "targetOutputKey") or "*"
    mapping: dict[str, str] = {}
    if isinstance(target, str):
        path = parse_target(target)
        field, inside = ("searchText", ()) if type_id == CONTAINS else ("expectedOutput", path)
        mapping = {
            "response": write_placeholder("sample.output_object", path),
            "expected_response": _expect(evaluator, evaluation, field, inside),
        }
    else:
        options["targetOutputKey"] = target
    return EvaluatorUse(type_id, options, evaluator.name, mapping, evaluator.shown)


def _spell_out(value: JsonValue, path: Path) -> str | None:
    """Return a literal where a placeholder cannot say it: a null that is expected, JSON inside a text."""
    try:
        found = value_at(value, path)
    except LookupError:
        return None
    return write_literal(found) if found is None or (path and isinstance(value, str)) else None


def _expect(evaluator: Evaluator, evaluation: Evaluation, field: str, path: Path) -> str:
    """Write where the expected value stands: in the criteria, the evaluation, or the evaluator's default."""
    criteria = evaluation.criteria_of(evaluator)
    own = find_name(criteria, field)
    if own is not None and evaluation.criteria_name is not None:
        literal = _spell_out(criteria[own], path)
        if literal is not None:
            return literal
        key = evaluation.criteria[evaluator.shown]
        return write_placeholder(f"item.{evaluation.criteria_name}[{dump_json(key)}]", (own, *path))
    shared = find_name(evaluation.value, field) if field == "expectedOutput" else None
    if shared is not None:
        return write_placeholder("item", (shared, *path))
    default = pick(evaluator.config, "defaultEvaluationCriteria")
    name = find_name(default, field) if isinstance(default, dict) else None
    if name is None or not isinstance(default, dict):
        message = f"no {field} for evaluator {evaluator.name!r} ({evaluator.shown}), and it has no default"
        raise InputError(message, path=evaluation.shown, pointer=f"{evaluation.pointer} ({evaluation.label})")
    try:
        return write_literal(value_at(default[name], path))
    except LookupError as error:
        message = f"the default {field} has no {error.args[0]!r}, which targetOutputKey names"
        raise InputError(message, path=evaluator.shown) from error
