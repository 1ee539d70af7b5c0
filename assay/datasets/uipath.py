"""UiPath eval sets of both generations, with the evaluators that lie beside them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from assay.contracts.documents import Document
from assay.contracts.json_text import dump_json, sha_text
from assay.datasets.cells import frame_rows, name_kind, tag_list, text_of
from assay.datasets.contract import Dialect, open_document
from assay.datasets.faults import Fault
from assay.datasets.files import find_lines, plain_suffix
from assay.datasets.json_source import outer_keys, parse_document
from assay.datasets.m365_parts import FormError, Part, Remarks, find_places
from assay.datasets.uipath_evaluators import VERSION, Evaluators, find_name, pick, read_evaluators
from assay.datasets.uipath_features import (
    EVALUATION_FEATURES,
    SET_FEATURES,
    is_simulated,
    remark_features,
)
from assay.datasets.uipath_uses import Asker, Evaluation, bind_criteria, build_uses, spread_uses
from assay.errors import list_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.json_text import JsonValue
    from assay.datasets.faults import Faults
    from assay.datasets.files import Source
    from assay.datasets.uipath_uses import Uses

SETS, EVALUATORS = "eval-sets", "evaluators"
LAYOUTS = (
    SETS,
    f"*/{SETS}",
    *(f"{outer}{folder}/{SETS}" for outer in ("", "*/") for folder in ("evals/*", "evaluations/*")),
    *(f"*/{folder}/{SETS}" for folder in ("evals", "evaluations")),
)
SET_KEYS = frozenset(
    {"evaluations", "evaluatorRefs", "evaluator_refs", "evaluatorConfigs", "evaluator_configs"}
)
RESULTS = "evaluationSetResults"
LABELS = ("category", "notes", "context", "response")  # fields the format allows and does not have
_FIRST = re.compile(r"1(\.\d+)*")
_GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class _Set(NamedTuple):
    """What the evaluations of one set are read with."""

    source: Source
    root: Part
    coded: bool
    known: Evaluators
    askers: Sequence[Asker]
    remarks: Remarks


def find_eval_sets(folder: Path) -> list[Path]:
    """Return the set files of a project, its `evals` or `evaluations` folder, or a solution, sorted."""
    found = {path for layout in LAYOUTS for path in folder.glob(f"{layout}/*.json") if path.is_file()}
    return sorted(path for path in found if not _is_hidden(path.relative_to(folder)))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def claims(path: Path, head: str) -> bool:
    """Whether a JSON file has the keys of an eval set, or of the results of one."""
    return plain_suffix(path) == ".json" and bool(outer_keys(head) & {*SET_KEYS, RESULTS})


def read(source: Source, faults: Faults) -> Document:
    """Read an eval set and its evaluators, which lie in the folder `evaluators` beside that of the set.

    An evaluation is one row: its inputs as query (null where they are to be generated), `expectedOutput`
    as expected response. When all evaluations use their evaluators alike, these are the document's
    defaults, else each row holds its own. Without such a folder no evaluator is named, with a notice.

    Args:
        source: The set.
        faults: Takes every evaluation that breaks the form, repeats an id, or gives an evaluator nothing
            to compare with; such an evaluation has no row.

    Returns:
        The document. Its notices name what the set asks for that is not done.

    Raises:
        InputError: The set as a whole breaks its format, refers to an unknown evaluator, or an evaluator
            file cannot be used; with line, column and a pointer.
    """
    root = Part(parse_document(source), "", 0, source.text)
    remarks = Remarks()
    try:
        version = _read_version(root, remarks)
        known = _read_known(source)
        named = _bind_references(root, known, remarks)
        remark_features(root, SET_FEATURES, remarks)
        askers = [asker for asker, _ in named]
        each = _Set(source, root, version is not None, known, askers, remarks)
        records, uses = _read_evaluations(each, faults)
        _remark_unused(named, uses, remarks)
    except FormError as error:
        raise source.error(error.message, offset=error.offset, pointer=error.pointer) from error
    defaults = spread_uses(records, uses)
    rows = frame_rows(records)
    notices = remarks.list_notices(source.shown, source.text)
    for asker in askers:
        notices += tuple(asker.evaluator.list_notices())
    digest = source.sha256
    if askers:
        digest = sha_text(digest, *(asker.evaluator.source.sha256 for asker in askers))
    return Document(source.shown, "uipath", rows, defaults if askers else None, digest, notices, version)


def _read_version(root: Part, remarks: Remarks) -> str | None:
    """Return the version of a set; None for one of the older generation, which has none.

    Raises:
        FormError: It is no set, or of a version that is not known.
    """
    if not isinstance(root.value, dict):
        raise root.error(f"{name_kind(root.value)}, expected an object with evaluations")
    if RESULTS in root.value:
        message = "these are the results of a run, not a dataset; name the eval set or the project folder"
        raise root.error(message, RESULTS)
    version = root.value.get("version")
    text = None if isinstance(version, bool | dict | list) else text_of(version)
    if version is not None and (text is None or not _FIRST.fullmatch(text)):
        message = (
            f'{dump_json(version)} is not supported; accepted: the text "{VERSION}", or none in older sets'
        )
        raise root.error(message, "version")
    if version not in (None, VERSION):
        message = f'not the text "{VERSION}", the only version UiPath itself reads; read all the same'
        remarks.add("version_form", message, root, "version")
    return text


def _read_known(source: Source) -> Evaluators:
    sets = Path(source.shown).parent
    shown = str((sets.parent if sets.name else Path("..")) / EVALUATORS)
    return read_evaluators(source.path.resolve().parent.parent / EVALUATORS, shown, source.reading)


def _bind_references(root: Part, known: Evaluators, remarks: Remarks) -> list[tuple[Asker, Part]]:
    """Return the evaluators a set refers to, in its order, each with the reference."""
    value = root.members
    name = find_name(value, "evaluatorConfigs" if pick(value, "evaluatorConfigs") else "evaluatorRefs")
    entries = list(root.iterate(name)) if name else []
    if entries and known.files is None:
        message = f"{known.folder} is not there, so no evaluator is known; name some with --evaluators"
        remarks.add("evaluators_missing", message, root, str(name))
        return []
    used: dict[tuple[str, str], tuple[Asker, Part]] = {}
    for entry in entries:
        settings = entry.value if isinstance(entry.value, dict) else {"ref": entry.value}
        reference = settings.get("ref")
        if not isinstance(reference, str):
            raise entry.error(f"{name_kind(entry.value)}, expected text or an object with ref")
        asker = Asker(known.bind(reference, entry))
        evaluator = asker.evaluator
        other = used.setdefault((evaluator.type_id, evaluator.name), (asker, entry))[0].evaluator
        if other is not evaluator:
            message = f"{evaluator.shown} has the name {evaluator.name!r}, as has {other.shown}; rename one"
            raise entry.error(message)
        if settings.get("weight") not in (None, 1):
            message = "not used; every evaluator stands alone"
            remarks.add("weight_unused", message, entry, "weight", strict=False)
    return list(used.values())


def _remark_unused(named: Sequence[tuple[Asker, Part]], uses: Sequence[Uses], remarks: Remarks) -> None:
    """Remark on evaluators that no evaluation has criteria for."""
    used = {use.where for own in uses for use in own}
    for asker, entry in named:
        if uses and asker.evaluator.shown not in used:
            message = "no evaluation has criteria for this evaluator, so it scores nothing"
            remarks.add("evaluator_unused", message, entry, strict=False)


def _read_evaluations(each: _Set, faults: Faults) -> tuple[list[dict[str, object]], list[Uses]]:
    """Read the evaluations as records with what they ask of evaluators; note those that break the form."""
    if "evaluations" not in each.root.members:
        raise each.root.error(f"no evaluations; found: {list_names(each.root.members) or 'nothing'}")
    records: list[dict[str, object]] = []
    uses: list[Uses] = []
    found: list[tuple[FormError, int, str]] = []
    labels: dict[str, str] = {}
    for index, part in enumerate(each.root.iterate("evaluations")):
        try:
            label = _read_label(part, labels)
            own, record = _read_uses(part, each), _read_record(part)
        except FormError as error:
            found.append((error, index, part.text))
        else:
            uses.append(own)
            records.append({**record, "id": label, "item_index": index, "source_file": each.source.shown})
    found.sort(key=lambda fault: fault[0].offset)
    places = find_places(each.source.text, (error.offset for error, _, _ in found))
    for (error, index, text), (line, column) in zip(found, places, strict=True):
        faults.add_fault(Fault(line, error.message, column, error.pointer, text=text, row=index))
    lines = find_lines(each.source.text, [int(str(record["source_line"])) for record in records])
    for record, line in zip(records, lines, strict=True):
        record["source_line"] = line
    return records, uses


def _read_label(part: Part, labels: dict[str, str]) -> str:
    """Return the id of an evaluation; of GUIDs the case makes no difference."""
    label = text_of(part.members.get("id"))
    if not label:
        raise part.error("no id")
    key = label.lower() if _GUID.fullmatch(label) else label
    other = labels.setdefault(key, part.pointer)
    if other != part.pointer:
        raise part.error(f"id {label!r} is also that of {other}", "id")
    return label


def _read_uses(part: Part, each: _Set) -> Uses:
    remark_features(part, EVALUATION_FEATURES, each.remarks)
    if not each.coded:
        return build_uses(each.askers, Evaluation(part, None, {}))
    evaluation = bind_criteria(part, each.known)
    uses = build_uses(each.askers, evaluation)
    if len(uses) < len(evaluation.criteria):
        used = {use.where for use in uses}
        for shown, key in evaluation.criteria.items():
            if shown not in used:
                message = f"not used, as the set does not refer to this evaluator: {shown}"
                keys = (str(evaluation.criteria_name), key)
                each.remarks.add("criteria_unused", message, part, *keys, strict=False)
    return uses


def _read_record(part: Part) -> dict[str, object]:
    value = part.members
    inputs = value.get("inputs")
    if not isinstance(inputs, dict):
        raise part.error(f"{name_kind(inputs)}, expected an object", "inputs")
    labels = {name: text_of(value.get(name)) for name in LABELS if name in value}
    return {
        "turn": 0,
        "turn_count": 1,
        "name": text_of(value.get("name")),
        "query": None if not inputs and is_simulated(part) else _read_query(inputs),
        "expected_response": text_of(pick(value, "expectedOutput")),
        "tags": tag_list(value.get("tags")),
        **labels,
        "source_line": part.offset,  # a line once all evaluations are read
        "item_json": part.text,
    }


def _read_query(inputs: dict[str, JsonValue]) -> str:
    only = next(iter(inputs.values())) if len(inputs) == 1 else None
    return only if isinstance(only, str) else dump_json(inputs)


DIALECT = Dialect(
    "uipath",
    "UiPath eval set (.json with evaluations) or project folder",
    claims,
    open_document("uipath", read),
)
