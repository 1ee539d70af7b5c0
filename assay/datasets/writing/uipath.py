"""UiPath projects written: an eval set of today's generation, and the evaluators it refers to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assay.contracts.documents import parse_uses
from assay.datasets.uipath import EVALUATORS, SETS
from assay.datasets.uipath_evaluators import VERSION
from assay.datasets.writing.cases import M365, UIPATH, read_cases, read_rest, read_root
from assay.datasets.writing.contract import Writer
from assay.datasets.writing.pretty import write_pretty
from assay.datasets.writing.records import Records
from assay.datasets.writing.uipath_evaluations import Ids, find_references, make_evaluation, renew_evaluation
from assay.datasets.writing.uipath_evaluators import EvaluatorFiles, carry_evaluators

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from assay.contracts.documents import EvaluatorUse
    from assay.contracts.json_text import JsonValue
    from assay.datasets.contract import Dataset
    from assay.datasets.files import Input
    from assay.datasets.writing.cases import Case, JsonObject
    from assay.datasets.writing.contract import Losses

FOLDER = "evaluations"
NAMELESS = "dataset"
_OWN = frozenset({"version", "id", "name", "evaluatorRefs", "evaluatorConfigs", FOLDER, "$schema"})


def write(dataset: Dataset, out: Path, losses: Losses) -> None:
    """Write a project folder: `evaluations/eval-sets` and `evaluations/evaluators`.

    A UiPath set keeps its fields and file names; one of the older generation is brought to today's, and
    so are its evaluators. An item of another form becomes an evaluation with the input `query`; exact match
    and contains become evaluators of UiPath, others have no counterpart. Fields that UiPath does not know
    stand as extra keys of the evaluation.
    """
    if dataset.dialect == UIPATH:
        name = dataset.file.path.name
        root, evaluators = _carry_set(dataset, losses)
    else:
        name = f"{_name_set(dataset.file)}.json"
        root, evaluators = _make_set(dataset, losses)
    _write_files(out / FOLDER / SETS, {name: root})
    _write_files(out / FOLDER / EVALUATORS, evaluators)


def _carry_set(dataset: Dataset, losses: Losses) -> tuple[JsonObject, dict[str, JsonObject]]:
    root = read_root(dataset.file)
    rows = [case[0].parse() for cases in read_cases(dataset) for case in cases]
    if root.get("version") is None:
        references = find_references(root)
        rows = [renew_evaluation(fields, references) for fields in rows]
    head: JsonObject = {"version": VERSION, **root, FOLDER: [*rows]}
    return {**head, "version": VERSION}, carry_evaluators(dataset.file, losses)


def _make_set(dataset: Dataset, losses: Losses) -> tuple[JsonObject, dict[str, JsonObject]]:
    records, files, ids = Records(dataset, losses), EvaluatorFiles(losses), Ids(losses)
    evaluations: list[JsonValue] = []
    for cases in read_cases(dataset):
        for case in cases:
            record = records.make(case)
            if record is None:
                continue
            uses: Mapping[str, EvaluatorUse] = {}
            if dataset.dialect == M365:
                record = {key: value for key, value in record.items() if not key.startswith("evaluators")}
                uses = _resolve_uses(case, dataset.defaults or ())
            criteria = files.ask(uses.values(), case[-1].expected_response, case[0].id or "")
            evaluation = make_evaluation(case, record, criteria, losses)
            ids.claim(evaluation)
            evaluations.append(evaluation)
    ids.close()
    title = _name_set(dataset.file)
    root: JsonObject = {"version": VERSION, "id": title, "name": title, "evaluatorRefs": [*files.ids]}
    for key, value in read_rest(dataset).items():
        if key in _OWN:
            losses.add(f"{key} of the file", "left out")
        else:
            root[key] = value
            losses.add(f"{key} of the file", "an extra key of the set, which UiPath does not read", kept=True)
    return {**root, FOLDER: evaluations}, files.write()


def _resolve_uses(case: Case, defaults: tuple[EvaluatorUse, ...]) -> dict[str, EvaluatorUse]:
    """Return the evaluators that hold for the last turn of an item, by name."""
    row = case[-1]
    own = parse_uses(row.evaluators_json) if row.evaluators_json is not None else ()
    held = (*(defaults if row.evaluators_mode == "extend" else ()), *own)
    return {use.evaluator: use for use in held}


def _name_set(file: Input) -> str:
    """Name a set after its file."""
    stem = NAMELESS if file.keep is not None else file.path.name.partition(".")[0]
    return re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-") or NAMELESS


def _write_files(folder: Path, files: Mapping[str, JsonObject]) -> None:
    if files:
        folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_text(f"{write_pretty(content)}\n", encoding="utf-8", newline="\n")


WRITER = Writer("uipath", (), write, is_folder=True)
