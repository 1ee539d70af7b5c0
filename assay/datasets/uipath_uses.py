"""What the evaluations of a UiPath set ask of its evaluators, as evaluator uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.contracts.documents import EvaluatorUse, dump_uses
from assay.contracts.json_text import dump_json
from assay.datasets.cells import name_kind
from assay.datasets.uipath_evaluators import find_name, pick, to_snake
from assay.datasets.uipath_settings import BEHAVIOR, JUDGED, KINDS, NOTHING, OUTPUT, read_settings
from assay.datasets.uipath_templates import parse_target, value_at, write_literal, write_placeholder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.json_text import JsonValue
    from assay.datasets.m365_parts import Part
    from assay.datasets.uipath_evaluators import Evaluator, Evaluators
    from assay.datasets.uipath_templates import Path

    Uses = tuple[EvaluatorUse, ...]

CRITERIA = "evaluationCriterias"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of a set.

    Attributes:
        part: The evaluation.
        criteria_name: How it spells `evaluationCriterias`; None in sets of the older generation, where
            every evaluator reads `expectedOutput`.
        criteria: Evaluator file to the key of its criteria, as written.
    """

    part: Part
    criteria_name: str | None
    criteria: Mapping[str, str]

    def criteria_of(self, evaluator: Evaluator) -> Mapping[str, JsonValue]:
        """Return the criteria for an evaluator; null counts as an empty object.

        Raises:
            FormError: They are something else.
        """
        key = self.criteria.get(evaluator.shown)
        holder = self.part.members.get(self.criteria_name or "")
        found = holder.get(key) if isinstance(holder, dict) and key is not None else None
        if not isinstance(found, dict | None):
            raise self._error(f"{name_kind(found)}, expected an object or null", evaluator)
        return found or {}

    def lacks(self, field: str, evaluator: Evaluator) -> Exception:
        """Build the error about an expectation that is nowhere."""
        message = f"no {field} for evaluator {evaluator.name!r} ({evaluator.shown}), and it has no default"
        return self._error(message, evaluator)

    def _error(self, message: str, evaluator: Evaluator) -> Exception:
        key = self.criteria.get(evaluator.shown)
        return self.part.error(message, *(name for name in (self.criteria_name, key) if name is not None))


def bind_criteria(part: Part, evaluators: Evaluators) -> Evaluation:
    """Find the evaluators that an evaluation of today's generation has criteria for.

    Raises:
        FormError: The criteria are missing or no object, a key names no evaluator, or two keys the same.
    """
    value = part.members
    name = find_name(value, CRITERIA) or CRITERIA
    holder = value.get(name)
    if not isinstance(holder, dict):
        raise part.error(f"{name_kind(holder)}, expected an object; an empty one uses no evaluator", name)
    bound: dict[str, str] = {}
    if evaluators.files is not None:
        for key in holder:
            evaluator = evaluators.bind(key, part, name, key)
            other = bound.setdefault(evaluator.shown, key)
            if other is not key:
                raise part.error(f"means the same evaluator as {other!r}: {evaluator.shown}", name, key)
    return Evaluation(part, name, bound)


class Asker:
    """One evaluator, ready to be asked about any evaluation of a set."""

    def __init__(self, evaluator: Evaluator) -> None:
        """Work out what is the same for every evaluation.

        Raises:
            InputError: The evaluator is of no known type.
        """
        self.evaluator = evaluator
        self._type_id = evaluator.type_id
        self._kind = None if evaluator.custom else KINDS.get(self._type_id)
        self._options: dict[str, JsonValue] = {}
        self._path: Path | None = None
        if self._kind is None:
            return
        self._options = read_settings(self._kind, evaluator)
        if self._kind.listed:
            return
        target = pick(evaluator.config, "targetOutputKey") or "*"
        if isinstance(target, str):
            self._path = parse_target(target)
        else:
            self._options["target_output_key"] = target
            self._path = ()

    def ask(self, evaluation: Evaluation) -> EvaluatorUse:
        """Say what the evaluator reads for one evaluation.

        What compares outputs gets templates for both sides, a judge of the output alone for that, and what
        is about tool calls gets its criteria as an option. Any other type is handed on by its id, and a
        custom evaluator by its name.

        Raises:
            FormError: Neither the evaluation nor the evaluator says what is expected.
            InputError: The evaluator's own default lacks what its target key names.
        """
        evaluator, kind, options = self.evaluator, self._kind, self._options
        name = None if evaluator.custom else evaluator.name
        mapping: dict[str, str] = {}
        if kind is not None and self._path is not None:
            mapping = {"response": write_placeholder("sample.output_object", self._path)}
            if kind.criterion != NOTHING:
                mapping["expected_response"] = self._expect(evaluation, kind.criterion, self._path)
        elif kind is not None:
            options = {**options, to_snake(kind.criterion): self._list_calls(evaluation, kind.criterion)}
        return EvaluatorUse(self._type_id, options, name, mapping, evaluator.shown)

    def _expect(self, evaluation: Evaluation, field: str, path: Path) -> str:
        """Write where the expected value stands: in the criteria, the evaluation, or the own default."""
        inside = path if field == OUTPUT else ()
        criteria = evaluation.criteria_of(self.evaluator)
        own = find_name(criteria, field)
        if own is not None and evaluation.criteria_name is not None:
            literal = _spell_out(criteria[own], inside)
            if literal is not None:
                return literal
            key = evaluation.criteria[self.evaluator.shown]
            return write_placeholder(f"item.{evaluation.criteria_name}[{dump_json(key)}]", (own, *inside))
        shared = find_name(evaluation.part.members, field) if field in (OUTPUT, BEHAVIOR) else None
        if shared is not None:
            return write_placeholder("item", (shared, *inside))
        if self._type_id.startswith(JUDGED) and not self._has_default(field):
            return ""  # a judge is not asked about what nothing is expected of; the row is skipped
        value, place = self._find_default(evaluation, field)
        try:
            return write_literal(value_at(value, inside))
        except LookupError as error:
            message = f"the default {field} has no {error.args[0]!r}, which targetOutputKey names"
            raise self.evaluator.error(message, *place) from error

    def _list_calls(self, evaluation: Evaluation, field: str) -> JsonValue:
        """Return the tool calls that an evaluation expects, else those that the evaluator does."""
        criteria = evaluation.criteria_of(self.evaluator)
        own = find_name(criteria, field)
        return self._find_default(evaluation, field)[0] if own is None else criteria[own]

    def _has_default(self, field: str) -> bool:
        default = pick(self.evaluator.config, "defaultEvaluationCriteria")
        return isinstance(default, dict) and find_name(default, field) is not None

    def _find_default(self, evaluation: Evaluation, field: str) -> tuple[JsonValue, tuple[str, ...]]:
        """Return the evaluator's own default of a criterion and where it stands."""
        config = self.evaluator.config
        place = find_name(config, "defaultEvaluationCriteria") or ""
        default = config.get(place)
        name = find_name(default, field) if isinstance(default, dict) else None
        if name is None or not isinstance(default, dict):
            raise evaluation.lacks(field, self.evaluator)
        return default[name], (*self.evaluator.path, place, name)


def build_uses(askers: Sequence[Asker], evaluation: Evaluation) -> Uses:
    """Say what the evaluators of a set read for one evaluation; without criteria there, one is not used.

    Raises:
        FormError: Neither the evaluation nor the evaluator says what is expected.
    """
    older = evaluation.criteria_name is None
    return tuple(
        asker.ask(evaluation) for asker in askers if older or asker.evaluator.shown in evaluation.criteria
    )


def spread_uses(records: Sequence[dict[str, object]], uses: Sequence[Uses]) -> Uses:
    """Return the uses that all rows share; where they differ, write to each row its own."""
    alike = all(use == uses[0] for use in uses)
    texts: dict[object, str] = {}
    for record, own in zip(records, uses, strict=True):
        record["evaluators_mode"] = "extend" if alike else "replace"
        if not alike:
            key = tuple((use.where, *use.mapping.values(), dump_json(dict(use.options))) for use in own)
            record["evaluators_json"] = texts.get(key) or texts.setdefault(key, dump_uses(own))
    return uses[0] if alike and uses else ()


def _spell_out(value: JsonValue, path: Path) -> str | None:
    """Return a literal where a placeholder cannot say it: what stands in JSON that is written as text."""
    if not path or not isinstance(value, str):
        return None
    try:
        return write_literal(value_at(value, path))
    except LookupError:
        return None
