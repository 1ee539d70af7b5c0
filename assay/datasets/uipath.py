"""UiPath eval sets of both generations, with the evaluators that lie beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.contracts.documents import Document, EvaluatorUse, dump_uses
from assay.contracts.json_text import JsonValue, dump_json, sha_text, walk_json
from assay.datasets.cells import frame_rows, name_kind, text_of
from assay.datasets.contract import Dialect
from assay.datasets.files import find_lines, plain_suffix
from assay.datasets.json_source import outer_keys, parse_document
from assay.datasets.uipath_evaluators import bind_reference, describe_evaluators, pick, read_evaluators
from assay.datasets.uipath_uses import Evaluation, bind_criteria, build_uses
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.datasets.files import Source
    from assay.datasets.uipath_evaluators import Evaluator

SETS, EVALUATORS = "eval-sets", "evaluators"
LAYOUTS = (SETS, f"*/{SETS}", f"evals/*/{SETS}", f"evaluations/*/{SETS}")
SET_KEYS = frozenset({"evaluations", "evaluatorRefs", "evaluatorConfigs"})


def find_eval_sets(folder: Path) -> list[Path]:
    """Return the set files of a project, or of its `evals` or `evaluations` folder, sorted."""
    found = {path for layout in LAYOUTS for path in folder.glob(f"{layout}/*.json") if path.is_file()}
    return sorted(found)


def claims(path: Path, head: str) -> bool:
    """Whether a JSON file has the keys of an eval set."""
    return plain_suffix(path) == ".json" and bool(outer_keys(head) & SET_KEYS)


def read(source: Source) -> Document:
    """Read an eval set and its evaluators, which lie in the folder `evaluators` beside that of the set.

    An evaluation is one row: its inputs as query, `expectedOutput` as expected response. When all
    evaluations use their evaluators alike, these are the document's defaults, else each row holds its own.

    Raises:
        InputError: The set breaks its format, refers to an unknown evaluator, repeats an evaluation
            id, or gives an evaluator nothing to compare with.
    """
    root, coded = _parse_set(source)
    sets = Path(source.shown).parent
    shown = str((sets.parent if sets.name else Path("..")) / EVALUATORS)
    known = read_evaluators(source.path.resolve().parent.parent / EVALUATORS, shown=shown)
    used, warnings = _bind_references(source, root, known, shown)
    spans = _find_evaluations(source, root)
    evaluations = _read_evaluations(source, root, known, coded=coded)
    lines = find_lines(source.text, [start for start, _ in spans])
    records = [
        _read_record(evaluation)
        | {"item_index": index, "source_line": line, "item_json": source.text[start:end]}
        for index, (evaluation, line, (start, end)) in enumerate(zip(evaluations, lines, spans, strict=True))
    ]
    defaults = _spread_uses(records, [build_uses(used, evaluation) for evaluation in evaluations])
    rows = frame_rows(records)
    if not used:
        return Document(source.shown, "uipath", rows, None, source.sha256, warnings)
    digest = sha_text(source.sha256, *(evaluator.sha256 for evaluator in used))
    return Document(source.shown, "uipath", rows, defaults, digest, warnings)


def _parse_set(source: Source) -> tuple[dict[str, JsonValue], bool]:
    """Return a set, and whether it is of today's generation, which has a version."""
    root = parse_document(source)
    if not isinstance(root, dict):
        raise source.error(f"{name_kind(root)}, expected an object with evaluations")
    version = root.get("version")
    if version not in (None, "1.0"):
        message = f'{dump_json(version)} is not supported; accepted: the text "1.0", or none in older sets'
        raise source.error(message, pointer="version")
    return root, version is not None


def _bind_references(
    source: Source, root: Mapping[str, JsonValue], known: Sequence[Evaluator], folder: str
) -> tuple[list[Evaluator], tuple[str, ...]]:
    """Return the evaluators a set refers to, in its order, and warnings about what is not used."""
    field = "evaluatorConfigs" if pick(root, "evaluatorConfigs") else "evaluatorRefs"
    references = pick(root, field) or []
    if not isinstance(references, list):
        raise source.error(f"{name_kind(references)}, expected a list", pointer=field)
    used: dict[tuple[str, str], Evaluator] = {}
    warnings: list[str] = []
    for index, entry in enumerate(references):
        reference = entry.get("ref") if isinstance(entry, dict) else entry
        pointer = f"{field}[{index}]"
        if not isinstance(reference, str):
            raise source.error(f"{name_kind(entry)}, expected text or an object with ref", pointer=pointer)
        evaluator = bind_reference(reference, known)
        if evaluator is None:
            names = describe_evaluators(known)
            message = f"unknown evaluator {reference!r}; known in {folder}: {names}"
            raise source.error(message, pointer=pointer)
        other = used.setdefault((evaluator.type_id, evaluator.name), evaluator)
        if other is not evaluator:
            message = f"{evaluator.shown} has the name {evaluator.name!r}, as has {other.shown}; rename one"
            raise source.error(message, pointer=pointer)
        if isinstance(entry, dict) and entry.get("weight") not in (None, 1):
            warnings.append(f"{source.shown}: {pointer}.weight is not used; every evaluator stands alone")
    return list(used.values()), tuple(warnings)


def _find_evaluations(source: Source, root: Mapping[str, JsonValue]) -> list[tuple[int, int]]:
    """Return start and end of every evaluation in the text."""
    evaluations = root.get("evaluations")
    if not isinstance(evaluations, list):
        raise source.error(f"{name_kind(evaluations)}, expected a list", pointer="evaluations")
    begin = next(start for key, start, _ in walk_json(source.text) if key == "evaluations")
    return [(start, end) for _, start, end in walk_json(source.text, begin)]


def _read_evaluations(
    source: Source, root: Mapping[str, JsonValue], known: Sequence[Evaluator], *, coded: bool
) -> list[Evaluation]:
    values = root["evaluations"]
    evaluations: dict[str, Evaluation] = {}
    for index, value in enumerate(values if isinstance(values, list) else []):
        pointer = f"evaluations[{index}]"
        if not isinstance(value, dict):
            raise source.error(f"{name_kind(value)}, expected an object", pointer=pointer)
        label = text_of(value.get("id"))
        if not label:
            raise source.error("no id", pointer=pointer)
        if label in evaluations:
            message = f"id {label!r} is also that of {evaluations[label].pointer}"
            raise source.error(message, pointer=f"{pointer}.id")
        name, criteria = bind_criteria(source.shown, pointer, value, known) if coded else (None, {})
        evaluations[label] = Evaluation(source.shown, pointer, label, value, name, criteria)
    return list(evaluations.values())


def _read_record(evaluation: Evaluation) -> dict[str, object]:
    inputs = evaluation.value.get("inputs")
    if not isinstance(inputs, dict):
        message, pointer = f"{name_kind(inputs)}, expected an object", f"{evaluation.pointer}.inputs"
        raise InputError(message, path=evaluation.shown, pointer=pointer)
    only = next(iter(inputs.values())) if len(inputs) == 1 else None
    return {
        "turn": 0,
        "turn_count": 1,
        "source_file": evaluation.shown,
        "id": evaluation.label,
        "name": text_of(evaluation.value.get("name")),
        "query": only if isinstance(only, str) else dump_json(inputs),
        "expected_response": text_of(pick(evaluation.value, "expectedOutput")),
    }


def _spread_uses(
    records: Sequence[dict[str, object]], uses: Sequence[tuple[EvaluatorUse, ...]]
) -> tuple[EvaluatorUse, ...]:
    """Return the uses that all rows share; where they differ, write to each row its own."""
    alike = all(use == uses[0] for use in uses)
    for record, own in zip(records, uses, strict=True):
        record["evaluators_mode"] = "extend" if alike else "replace"
        record["evaluators_json"] = None if alike else dump_uses(own)
    return uses[0] if alike and uses else ()


DIALECT = Dialect("uipath", "UiPath eval set (.json with evaluations) or project folder", claims, read)
