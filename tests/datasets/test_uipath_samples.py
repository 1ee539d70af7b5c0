"""Published UiPath files: each is read, or refused with a message that names the reason."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from assay.datasets.reader import read_documents
from assay.datasets.uipath_evaluators import read_evaluators
from assay.errors import InputError

SAMPLES = Path(__file__).parents[3] / "shared" / "samples" / "uipath"
FILES = sorted(SAMPLES.glob("*"))
REFUSALS = ("unknown evaluator", "no dialect reads this file", "no rows in", "is not supported")

pytestmark = pytest.mark.skipif(not FILES, reason="../shared is not there")


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    """Lay the flat sample files out as the projects they come from."""
    for path in FILES:
        if path.name.startswith("sdk-") and "__" in path.name:
            project, folder, name = path.name.removeprefix("sdk-").split("__")
            target = tmp_path / project / "evaluations" / folder / name
        else:
            folder = "evaluators" if "evaluator-" in path.name else "eval-sets"
            target = tmp_path / "lowcode" / "evals" / folder / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return tmp_path


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_sample_is_read_or_refused_clearly(path: Path) -> None:
    try:
        outcome = read_documents([str(path)])[0].dialect
    except InputError as error:
        outcome = next(refusal for refusal in REFUSALS if refusal in error.message)
    assert outcome == "uipath" or outcome in REFUSALS


def test_every_evaluator_file_is_understood_or_names_its_type(projects: Path) -> None:
    refused: set[str] = set()
    types: set[str] = set()
    for folder in sorted(projects.rglob("evaluators")):
        for evaluator in read_evaluators(folder, shown=str(folder)):
            try:
                types.add(evaluator.type_id)
            except InputError as error:
                refused.add(f"{evaluator.stem}: {error.message[:28]}")
    assert refused == {
        f"csv_{name}: category 0 with type 10 is n" for name in ("line_by_line_name", "name_match")
    }
    assert {"uipath-exact-match", "uipath-contains", "uipath-json-similarity"} < types


def test_expected_output_of_the_evaluation_stands_in_for_null_criteria(projects: Path) -> None:
    name = "calculator/evaluations/eval-sets/eval-level-expected-output.json"
    (document,) = read_documents([str(projects / name)])
    assert document.rows["item_json"].len() == 4
    assert '"{{item.expectedOutput.result}}"' in document.rows["evaluators_json"][0]
    own = r'"{{item.evaluationCriterias[\"ExactMatchEvaluator\"].expectedOutput.result}}"'
    assert own in document.rows["evaluators_json"][2]


def test_the_set_that_init_writes_holds_no_rows(projects: Path) -> None:
    path = projects / "lowcode" / "evals" / "eval-sets" / "lowcode-init-evaluation-set-default.json"
    with pytest.raises(InputError, match="no rows in lowcode-init-evaluation-set-default"):
        read_documents([str(path)])
