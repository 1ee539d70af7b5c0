"""Published UiPath files: every set is read with its evaluators, and every evaluator is understood."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from assay.config import Reading
from assay.contracts.documents import parse_uses
from assay.datasets.reader import read_documents
from assay.datasets.uipath_evaluators import read_evaluators
from assay.errors import InputError

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "uipath"
FILES = sorted(SAMPLES.glob("*.json"))
READING = Reading(allow_empty=True)  # a set is empty as `init` writes it
STUB: dict[str, Any] = {"evaluatorTypeId": "uipath-llm-judge-trajectory-similarity", "evaluatorConfig": {}}

pytestmark = pytest.mark.skipif(not FILES, reason="../shared is not there")


def _kind(path: Path) -> str:
    keys = json.loads(path.read_text(encoding="utf-8")).keys()
    return "set" if "evaluations" in keys else "results" if "evaluationSetResults" in keys else "evaluator"


SETS = [path for path in FILES if _kind(path) == "set"]
RESULTS = [path for path in FILES if _kind(path) == "results"]


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """Lay the flat files out as the projects they come from; missing evaluators are made up."""
    for path in FILES:
        project = path.name.removeprefix("sdk-").split("__")[0] if "__" in path.name else path.stem[:7]
        folder = {"set": "eval-sets", "evaluator": "evaluators"}.get(_kind(path), "results")
        target = tmp_path / project / "evaluations" / folder / path.name.rpartition("__")[2]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for path in sorted(tmp_path.rglob("eval-sets/*.json")):
        folder = path.parents[1] / "evaluators"
        folder.mkdir(exist_ok=True)
        known = {json.loads(file.read_text(encoding="utf-8"))["id"] for file in folder.glob("*.json")}
        for name in sorted({*json.loads(path.read_text(encoding="utf-8"))["evaluatorRefs"]} - known):
            (folder / f"{name}.json").write_text(json.dumps({"id": name, **STUB}), encoding="utf-8")
    return tmp_path


def test_every_set_is_read_with_its_evaluators(projects: Path) -> None:
    sets = sorted(projects.rglob("eval-sets/*.json"))
    assert len(sets) == len(SETS)
    for path, document in zip(sets, read_documents([str(path) for path in sets], READING), strict=True):
        root = json.loads(path.read_text(encoding="utf-8"))
        assert [json.loads(text) for text in document.rows["item_json"]] == root["evaluations"], path
        uses = list(document.defaults or ())
        for text in document.rows["evaluators_json"].drop_nulls():
            uses += parse_uses(text)
        unused = sum("no evaluation has criteria" in warning for warning in document.warnings)
        if root["evaluations"]:
            assert len({use.where for use in uses}) + unused == len(root["evaluatorRefs"]), path


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.name)
def test_a_set_is_read_without_its_project_too(path: Path) -> None:
    (document,) = read_documents([str(path)], READING)
    assert document.dialect == "uipath"
    assert "evaluators_missing" in {notice.code for notice in document.notices}
    assert all(notice.line and notice.column and notice.pointer for notice in document.notices)


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.name)
def test_results_are_no_dataset(path: Path) -> None:
    with pytest.raises(InputError, match="the results of a run, not a dataset"):
        read_documents([str(path)])


def test_every_evaluator_file_has_a_type(projects: Path) -> None:
    folders = sorted(projects.rglob("evaluators"))
    found = [each for folder in folders for each in read_evaluators(folder, "e", READING).files or ()]
    types = {each.source.path.name: each.type_id for each in found}
    assert {"uipath-exact-match", "uipath-contains", "uipath-json-similarity"} < set(types.values())
    assert types["csv_name_match.json"] == types["csv_line_by_line_name.json"] == "uipath-csv-column-match"
    assert types["context-precision-claude.json"] == "uipath-context-precision"
    assert types["faithfulness-claude.json"] == "uipath-faithfulness"
    assert types["correct-operator-evaluator.json"] == "CorrectOperatorEvaluator"
    assert types["legacy-trajectory.json"] == "uipath-llm-judge-trajectory-similarity"


def test_expected_output_of_the_evaluation_stands_in_for_null_criteria(projects: Path) -> None:
    name = "calculator/evaluations/eval-sets/eval-level-expected-output.json"
    (document,) = read_documents([str(projects / name)])
    assert document.rows["item_json"].len() == 4
    assert '"{{item.expectedOutput.result}}"' in document.rows["evaluators_json"][0]
    own = r'"{{item.evaluationCriterias[\"ExactMatchEvaluator\"].expectedOutput.result}}"'
    assert own in document.rows["evaluators_json"][2]


def test_simulated_inputs_of_the_greeter_are_no_questions(projects: Path) -> None:
    (document,) = read_documents([str(projects / "greeter")])
    assert document.rows["query"].null_count() == document.rows.height == 3


def test_the_set_that_init_writes_holds_no_rows() -> None:
    path = SAMPLES / "lowcode-init-evaluation-set-default.json"
    with pytest.raises(InputError, match="no rows in lowcode-init-evaluation-set-default"):
        read_documents([str(path)])
