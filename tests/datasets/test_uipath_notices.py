"""UiPath eval sets: every fault and notice at its place, older spellings, and what is kept but not run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import Reading
from assay.contracts.json_text import parse_json
from assay.datasets.faults import Faults
from assay.datasets.files import Source
from assay.datasets.reader import read_documents
from assay.datasets.uipath import find_eval_sets, read
from assay.errors import InputError
from transforms.templates import look_up, parse_template

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.contracts.documents import Document

    Write = Callable[[str, str | bytes], str]
    Build = Callable[..., Document]

GUID = "7c1e0000-aaaa-4000-8000-000000000001"
EXACT: dict[str, Any] = {
    "version": "1.0",
    "id": GUID,
    "evaluatorTypeId": "uipath-exact-match",
    "evaluatorConfig": {"name": "Same", "defaultEvaluationCriteria": {"expectedOutput": "x"}},
}
CUSTOM: dict[str, Any] = {
    "id": "own",
    "evaluatorTypeId": "file://types/own.json",
    "evaluatorSchema": "file://own.py:Own",
    "evaluatorConfig": {"name": "Own"},
}
SETS = "evaluations/eval-sets"


def _evaluation(key: str = "e1", **fields: Any) -> dict[str, Any]:
    return {"id": key, "inputs": {"q": "Hi"}, "evaluationCriterias": {}, **fields}


@pytest.fixture
def build(write: Write) -> Build:
    """Write a project with its evaluators and read its only set."""

    def build_project(*evaluators: Any, reading: Reading | None = None, **fields: Any) -> Document:
        for evaluator in evaluators:
            write(f"evaluations/evaluators/{evaluator['id']}.json", json.dumps(evaluator, indent=1))
        path = write(f"{SETS}/set.json", json.dumps({"version": "1.0", "id": "s", **fields}, indent=1))
        return read_documents([path], reading)[0]

    return build_project


def _said(document: Document) -> list[tuple[str, int | None, int | None, str]]:
    return [(each.code, each.line, each.column, each.pointer) for each in document.notices]


def test_every_bad_evaluation_is_named_at_once_with_line_and_column(build: Build) -> None:
    items = [_evaluation("a", inputs=1), _evaluation("b"), _evaluation("b"), "text", _evaluation("")]
    with pytest.raises(InputError) as caught:
        build(EXACT, evaluations=items)
    error = caught.value
    assert (error.line, error.column) == (7, 14)
    assert error.message.splitlines() == [
        "4 bad items:",
        "  item 7: evaluations[0].inputs: a number, expected an object",
        "  item 18: evaluations[2].id: id 'b' is also that of evaluations[1]",
        "  item 24: evaluations[3]: text, expected an object",
        "  item 25: evaluations[4]: no id",
    ]


def test_bad_evaluations_are_set_aside_and_the_others_keep_their_place(build: Build) -> None:
    items = [_evaluation("a", inputs=1), _evaluation("b"), _evaluation("c")]
    document = build(EXACT, evaluations=items, reading=Reading(on_bad_row="quarantine"))
    assert document.rows["item_index"].to_list() == [1, 2]
    assert document.rows["id"].to_list() == ["b", "c"]


def test_a_fault_keeps_the_evaluation_as_written(tmp_path: Path) -> None:
    text = '{"evaluations": [{"id": 1.10, "inputs": []}]}'
    faults = Faults("set.json", "item")
    assert read(
        Source(tmp_path / "p" / "eval-sets" / "set.json", "set.json", text, ""), faults
    ).rows.is_empty()
    (fault,) = faults.take()
    assert (fault.text, fault.row, fault.column) == ('{"id": 1.10, "inputs": []}', 0, 41)
    assert fault.pointer == "evaluations[0].inputs"


@pytest.mark.parametrize("version", [1, "1", 1.0, "1.1"], ids=repr)
def test_a_version_that_uipath_refuses_is_read_with_a_strict_notice(version: Any, build: Build) -> None:
    document = build(evaluations=[_evaluation()], version=version)
    assert _said(document) == [("version_form", 2, 13, "version")]
    assert document.schema_version == str(version)
    with pytest.raises(InputError, match=r"set\.json:2:13: version: not the text \"1\.0\""):
        build(evaluations=[_evaluation()], version=version, reading=Reading(strict=True))


def test_the_version_of_an_evaluator_is_told_at_its_own_file(build: Build) -> None:
    items = [_evaluation(evaluationCriterias={GUID: None})]
    document = build(EXACT | {"version": 1}, evaluatorRefs=[GUID], evaluations=items)
    (notice,) = document.notices
    assert Path(notice.path).name == f"{GUID}.json"
    assert (notice.code, notice.line, notice.pointer, notice.strict) == ("version_form", 2, "version", True)


def test_simulated_inputs_are_no_question(build: Build) -> None:
    asks = {"inputMockingStrategy": {"prompt": "a greeting"}}
    items = [_evaluation("a", inputs={}, **asks), _evaluation("b", **asks), _evaluation("c", inputs={})]
    document = build(evaluations=items)
    assert document.rows["query"].to_list() == [None, "Hi", "{}"]
    assert [notice.code for notice in document.notices] == ["not_run_yet"]
    assert "2 times in this file" in document.warnings[0]


def test_an_older_set_that_simulates_its_input_has_no_question(build: Build) -> None:
    item: Any = {"id": "a", "inputs": {}, "expectedOutput": {}, "simulateInput": True}
    document = build(version=None, evaluations=[item])
    assert document.rows["query"].to_list() == [None]
    assert [notice.pointer for notice in document.notices] == ["evaluations[0].simulateInput"]
    assert document.schema_version is None


def test_what_is_not_run_yet_is_named_once_with_its_count_and_kept(build: Build) -> None:
    asks = {"mockingStrategy": {"type": "llm"}, "simulate_tools": True, "toolsToSimulate": [{"name": "t"}]}
    off: Any = {"simulateInput": False, "toolsToSimulate": [], "conversationalInputs": None}
    items = [_evaluation("a", **asks), _evaluation("b", **off), _evaluation("c", **asks)]
    document = build(evaluations=items, modelSettings=[{"id": "default"}], agentMemorySettings=[])
    assert {(notice.code, notice.strict) for notice in document.notices} == {("not_run_yet", False)}
    assert [notice.pointer for notice in document.notices] == [
        "evaluations[0].mockingStrategy",
        "evaluations[0].simulate_tools",
        "evaluations[0].toolsToSimulate",
        "modelSettings",
    ]
    assert ["2 times" in text for text in document.warnings] == [True, True, True, False]
    assert [json.loads(text) for text in document.rows["item_json"]] == items


def test_a_custom_evaluator_is_handed_on_by_its_name(build: Build) -> None:
    items = [_evaluation(evaluationCriterias={"own": {"operator": "+"}})]
    document = build(CUSTOM, evaluatorRefs=["own"], evaluations=items)
    (use,) = list(document.defaults or ())
    assert (use.evaluator, use.name, use.mapping) == ("Own", None, {})
    (notice,) = document.notices
    assert (notice.code, notice.line, notice.pointer) == ("custom_evaluator", 4, "evaluatorSchema")


def test_weights_and_settings_that_do_nothing_are_told(build: Build) -> None:
    configs = [{"ref": GUID, "weight": 2}]
    quiet = EXACT | {"evaluatorConfig": {"name": "Same", "ignoreCase": False}}
    items = [_evaluation(evaluationCriterias={GUID: {"expectedOutput": "x"}})]
    document = build(quiet, evaluatorConfigs=configs, evaluations=items)
    assert _said(document)[0] == ("weight_unused", 7, 14, "evaluatorConfigs[0].weight")
    assert _said(document)[1][0::3] == ("unknown_setting", "evaluatorConfig.ignoreCase")


def test_criteria_for_an_evaluator_that_the_set_does_not_name_are_told(build: Build) -> None:
    items = [_evaluation(key, evaluationCriterias={GUID: None}) for key in ("a", "b")]
    document = build(EXACT, evaluations=items)
    assert document.defaults is None
    assert _said(document) == [("criteria_unused", 11, 45, f"evaluations[0].evaluationCriterias.{GUID}")]
    assert "2 times" in document.warnings[0]


def test_an_evaluator_that_no_evaluation_has_criteria_for_is_told(build: Build) -> None:
    document = build(EXACT, evaluatorRefs=[GUID], evaluations=[_evaluation()])
    assert _said(document) == [("evaluator_unused", 5, 3, "evaluatorRefs[0]")]


def test_criteria_given_twice_for_one_evaluator_are_refused(build: Build) -> None:
    items = [_evaluation(evaluationCriterias={"Same": None, GUID: None})]
    with pytest.raises(InputError, match=r"means the same evaluator as 'Same': .*\.json"):
        build(EXACT, evaluatorRefs=[GUID], evaluations=items)


def test_a_name_that_two_evaluators_share_does_not_choose_between_them(build: Build) -> None:
    with pytest.raises(InputError, match=r"'Same' is the name of several evaluators: .*; use the id"):
        build(EXACT, EXACT | {"id": "other"}, evaluatorRefs=["Same"], evaluations=[])


def test_a_set_without_its_project_is_read_and_says_so(write: Write) -> None:
    items = [_evaluation(evaluationCriterias={GUID: None})]
    text = json.dumps({"version": "1.0", "evaluatorRefs": [GUID], "evaluations": items})
    (document,) = read_documents([write("lone/sets/set.json", text)])
    assert document.defaults is None
    assert document.rows["evaluators_json"].null_count() == 1
    assert [(notice.code, notice.strict) for notice in document.notices] == [("evaluators_missing", True)]


def test_ids_are_bound_and_repeated_in_either_case(build: Build) -> None:
    items = [_evaluation(GUID, evaluationCriterias={GUID.upper(): None}), _evaluation(GUID.upper())]
    with pytest.raises(InputError, match=r"evaluations\[1\]\.id: .* also that of evaluations\[0\]$"):
        build(EXACT, evaluatorRefs=[GUID.upper()], evaluations=items)


def test_snake_case_is_read_as_camel_case(write: Write) -> None:
    config = {"target_output_key": "r", "case_sensitive": True}
    evaluator = {"id": "E", "evaluator_type_id": "uipath-exact-match", "evaluator_config": config}
    write("evaluations/evaluators/e.json", json.dumps(evaluator))
    item = {"id": "a", "inputs": {}, "evaluation_criterias": {"E": {"expected_output": {"r": 1}}}}
    root = {"version": "1.0", "evaluator_refs": ["E"], "evaluations": [item | {"expected_output": "w"}]}
    (document,) = read_documents([write(f"{SETS}/set.json", json.dumps(root))])
    (use,) = list(document.defaults or ())
    assert use.options["case_sensitive"] is True
    assert use.mapping["expected_response"] == '{{item.evaluation_criterias["E"].expected_output.r}}'
    assert document.rows["expected_response"].to_list() == ["w"]


def test_the_expected_behaviour_is_reachable_by_a_template(build: Build) -> None:
    rows = build(evaluations=[_evaluation(expectedAgentBehavior="asks for the order number")]).rows
    sole = parse_template("{{item.expectedAgentBehavior}}", where="test").sole
    assert sole is not None
    assert look_up(parse_json(rows["item_json"][0]), sole.path) == "asks for the order number"


def test_labels_and_a_stored_answer_beside_the_format_are_read(build: Build) -> None:
    extra: dict[str, Any] = {
        "category": "returns",
        "tags": ["a", "b"],
        "notes": "n",
        "context": "c",
        "response": "r",
    }
    rows = build(evaluations=[_evaluation(**extra)]).rows
    assert rows.select(*extra).to_dicts() == [extra]


def test_the_results_of_a_run_are_refused_as_what_they_are(write: Write) -> None:
    path = write("out.json", json.dumps({"evaluationSetName": "S", "evaluationSetResults": []}))
    with pytest.raises(InputError, match=r"out\.json:1:\d+: evaluationSetResults: .*results of a run"):
        read_documents([path])


@pytest.mark.parametrize(
    "layout", ["eval-sets", "evals/eval-sets", "evaluations/a/eval-sets", "agent/evals/eval-sets"]
)
def test_sets_are_found_in_every_layout(layout: str, write: Write, tmp_path: Path) -> None:
    path = write(f"{layout}/set.json", "{}")
    write(f".venv/{layout}/set.json", "{}")
    assert find_eval_sets(tmp_path) == [Path(path)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(inputs=st.dictionaries(st.text(), JSON, max_size=3), fields=st.dictionaries(st.text(min_size=4), JSON))
def test_any_value_survives_in_the_item(inputs: dict[str, Any], fields: dict[str, Any]) -> None:
    item = {"id": "a", "inputs": inputs, "expectedOutput": inputs} | {
        f"x{key}": fields[key] for key in fields
    }
    text = json.dumps({"evaluations": [item]}, ensure_ascii=False)
    faults = Faults("s.json", "item")
    rows = read(Source(Path("/nowhere/sets/s.json"), "s.json", text, ""), faults).rows
    assert not len(faults)
    assert rows["item_json"].to_list() == [json.dumps(item, ensure_ascii=False)]
    assert json.loads(rows["expected_response"][0]) == inputs
