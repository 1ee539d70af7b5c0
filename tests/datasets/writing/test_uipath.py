"""UiPath projects written: sets of both generations, and items of every other form as evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.documents import EvaluatorUse, parse_uses
from assay.contracts.json_text import Number, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.datasets.writing.conftest import Workshop, Written

DATA = Path(__file__).parents[3] / "data"
SET = "evaluations/eval-sets/out.json"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.sampled_from(
    ["{{x}}", "\u2028", "😀"]
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    TEXTS, st.integers(), st.sampled_from(["1.50", "1E400"]).map(Number), st.lists(TEXTS, max_size=2)
)
OBJECTS: st.SearchStrategy[Any] = st.dictionaries(TEXTS, VALUES, max_size=2)
EVALUATORS: dict[str, dict[str, Any]] = {
    "same.json": {"version": "1.0", "id": "same", "evaluatorTypeId": "uipath-exact-match"}
    | {"evaluatorConfig": {"name": "Same", "defaultEvaluationCriteria": {"expectedOutput": "d"}, "odd": 1}},
    "has.json": {"version": "1.0", "id": "HAS", "evaluatorTypeId": "uipath-contains"}
    | {"evaluatorConfig": {"name": "Has", "caseSensitive": True}},
    "judge.json": {
        "version": "1.0",
        "id": "j",
        "evaluatorTypeId": "uipath-llm-judge-output-semantic-similarity",
    }
    | {"evaluatorConfig": {"name": "Judge", "model": "m", "prompt": "{{ActualOutput}}"}},
}
CRITERIA: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "same": st.none() | st.fixed_dictionaries({"expectedOutput": VALUES | OBJECTS}),
        "has": st.fixed_dictionaries({"searchText": TEXTS}),
        "Judge": st.none(),
    },
)


def _name(evaluation: Any) -> str:
    return str(evaluation["id"])


EVALUATIONS: st.SearchStrategy[list[Any]] = st.lists(
    st.fixed_dictionaries(
        {"id": TEXTS.filter(bool), "inputs": OBJECTS, "evaluationCriterias": CRITERIA},
        optional={
            "name": TEXTS,
            "expectedOutput": TEXTS | OBJECTS,
            "expectedAgentBehavior": TEXTS,
            "context": TEXTS,
            "tags": st.lists(TEXTS.filter(bool), max_size=2),
            "mockingStrategy": OBJECTS,
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=_name,
)


def _uses(uses: Iterable[EvaluatorUse]) -> list[Any]:
    return [
        (use.evaluator, dict(use.options), use.name, dict(use.mapping), Path(use.where).name) for use in uses
    ]


def _rows(list_rows: Any, document: Any) -> list[Any]:
    rows = list_rows(document)
    return [row | {"evaluators_json": _uses(parse_uses(row["evaluators_json"] or "[]"))} for row in rows]


@given(evaluations=EVALUATIONS)
def test_a_project_comes_back_as_it_was(workshop: Any, list_rows: Any, evaluations: list[Any]) -> None:
    with workshop() as shop:
        for name, body in EVALUATORS.items():
            shop.put(f"evaluations/evaluators/{name}", body)
        root = {
            "version": "1.0",
            "id": "s",
            "evaluatorRefs": ["same", "HAS", "j"],
            "modelSettings": [{"id": "m"}],
        }
        path = shop.put(SET, {**root, "evaluations": evaluations})
        written = shop.convert(path, "uipath")
        assert _rows(list_rows, written.after) == _rows(list_rows, written.before)
        assert _uses(written.after.defaults or ()) == _uses(written.before.defaults or ())
        assert parse_json((written.out / SET).read_bytes().decode()) == parse_json(path.read_bytes().decode())
        assert written.account == {}


def _read_set(written: Written) -> dict[str, Any]:
    (path,) = written.out.glob("evaluations/eval-sets/*.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _read_evaluators(written: Written) -> dict[str, Any]:
    paths = sorted(written.out.glob("evaluations/evaluators/*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def test_an_older_project_is_brought_to_todays_generation(bench: Workshop) -> None:
    written = bench.convert(DATA / "uipath" / "refund-agent", "uipath")
    root, reference = _read_set(written), "5b0c1f2e-7a43-4d19-9c58-2e61f0a7d384"
    assert (root["version"], root["evaluatorRefs"]) == ("1.0", [reference])
    assert root["evaluations"][0]["evaluationCriterias"] == {reference: {}}
    assert _read_evaluators(written)["evaluator-exact"] == {
        "version": "1.0",
        "id": reference,
        "evaluatorTypeId": "uipath-exact-match",
        "evaluatorConfig": {
            "name": "Exact answer",
            "description": "Compares the whole answer with the expected one.",
            "caseSensitive": True,
            "targetOutputKey": "*",
        },
        "fileName": "evaluator-exact.json",
        "createdAt": "2026-03-02T08:00:00.000Z",
        "updatedAt": "2026-03-02T08:00:00.000Z",
    }
    assert _uses(written.after.defaults or ()) == _uses(written.before.defaults or ())


def test_evaluators_of_the_older_generation_keep_their_settings_or_are_named(bench: Workshop) -> None:
    judge = {"id": "j", "name": "J", "category": 3, "type": 7, "prompt": "{{AgentRunHistory}}", "model": "m"}
    columns = {"id": "c", "name": "C", "category": 0, "type": 10, "lineByLineEvaluation": True}
    unknown = {"id": "u", "name": "U", "category": 2, "type": 0}
    for body in (judge, columns, unknown):
        bench.put(f"evals/evaluators/{body['name']}.json", body)
    evaluation: dict[str, Any] = {
        "id": "e",
        "inputs": {},
        "expectedOutput": {},
        "expectedAgentBehavior": "ask first",
    }
    path = bench.put("evals/eval-sets/s.json", {"evaluatorRefs": ["j", "c"], "evaluations": [evaluation]})
    written = bench.convert(path, "uipath")
    bodies = _read_evaluators(written)
    assert bodies["J"]["evaluatorTypeId"] == "uipath-llm-judge-trajectory-similarity"
    assert bodies["J"]["evaluatorConfig"]["prompt"] == "{{AgentRunHistory}}"
    assert bodies["C"]["evaluatorConfig"]["lineByLineEvaluator"] is True
    assert bodies["U"] == unknown
    assert written.account == {"evaluator U": 1, "(evaluator C)": 1}
    behavior = {"expectedAgentBehavior": "ask first"}
    assert _read_set(written)["evaluations"][0]["evaluationCriterias"] == {"j": behavior, "c": behavior}


def test_the_class_of_a_custom_evaluator_is_named(bench: Workshop) -> None:
    custom: dict[str, Any] = {
        "version": "1.0",
        "id": "own",
        "evaluatorSchema": "file://own.py:Own",
        "evaluatorConfig": {},
    }
    bench.put("evaluations/evaluators/own.json", custom)
    path = bench.put(SET, {"version": "1.0", "evaluatorRefs": ["own"], "evaluations": []})
    written = bench.convert(path, "uipath")
    assert _read_evaluators(written) == {"own": custom}
    assert written.account == {"class of the evaluator own": 1}


def test_evaluators_of_a_document_become_those_of_uipath(bench: Workshop) -> None:
    items: list[Any] = [
        {"prompt": "a", "expected_response": "x", "testId": "1"},
        {"prompt": "b", "expected_response": "y", "evaluators": {"ExactMatch": {"case_sensitive": True}}},
        {
            "prompt": "c",
            "expected_response": "z",
            "evaluators": {"Contains": {}},
            "evaluators_mode": "replace",
        },
        {"prompt": "d", "testId": "4"},
    ]
    defaults = {"ExactMatch": {}, "PartialMatch": {"threshold": 0.5}}
    document = {"schemaVersion": "1.11.0", "default_evaluators": defaults, "items": items}
    written = bench.convert(bench.put("My doc.json", document), "uipath")
    root, evaluators = _read_set(written), _read_evaluators(written)
    assert (root["id"], root["evaluatorRefs"]) == ("my-doc", ["exact-match", "exact-match-2", "contains"])
    assert [each["evaluationCriterias"] for each in root["evaluations"]] == [
        {"exact-match": {}},
        {"exact-match-2": {}},
        {"contains": {"searchText": "z"}},
        {},
    ]
    assert [each["id"] for each in root["evaluations"]] == ["1", "item-1", "item-2", "4"]
    assert evaluators["exact-match-2"]["evaluatorConfig"]["caseSensitive"] is True
    assert written.account == {"evaluator PartialMatch": 3, "evaluator ExactMatch": 1}


def test_fields_of_rows_are_extra_keys_unless_they_would_be_misread(bench: Workshop) -> None:
    row: dict[str, Any] = {
        "id": "r",
        "query": "q",
        "ground_truth": {"a": 1},
        "inputs": "no",
        "evaluationCriterias": {"x": {}},
    }
    row |= {"response": "a", "category": "c", "deep": [1]}
    written = bench.convert(bench.put("rows.jsonl", [row]), "uipath")
    assert _read_set(written)["evaluations"] == [
        {
            "id": "r",
            "name": "r",
            "inputs": {"query": "q"},
            "expectedOutput": {"a": 1},
            "evaluationCriterias": {},
            "response": "a",
            "category": "c",
            "deep": [1],
            "extensions": {"inputs": "no", "evaluationCriterias": {"x": {}}},
        }
    ]
    assert written.losses.gone == []
    assert set(written.account) == {f"({key})" for key in row if key not in {"id", "query", "ground_truth"}}


def test_an_evaluation_that_was_a_row_in_between_is_the_same_again(bench: Workshop) -> None:
    rows = bench.convert(DATA / "uipath" / "refund-agent", "foundry", name="rows")
    back = _read_set(bench.convert(rows.out, "uipath", name="back"))["evaluations"]
    (source,) = (DATA / "uipath" / "refund-agent").rglob("eval-sets/*.json")
    for before, after in zip(
        json.loads(source.read_text(encoding="utf-8"))["evaluations"], back, strict=True
    ):
        assert {key: after[key] for key in before} == before


def test_inputs_that_are_not_the_question_do_not_replace_it(bench: Workshop) -> None:
    written = bench.convert(
        bench.put("rows.jsonl", [{"query": "q", "inputs": {"a": "x"}, "n": None}]), "uipath"
    )
    (evaluation,) = _read_set(written)["evaluations"]
    assert (evaluation["inputs"], evaluation["extensions"]) == ({"query": "q"}, {"inputs": {"a": "x"}})
    assert (evaluation["n"], written.account) == (None, {"(inputs)": 1})


def test_ids_that_repeat_are_numbered_and_named(bench: Workshop) -> None:
    rows = [
        {"id": "a", "query": "q"},
        {"query": "r"},
        {"id": "a", "query": "q"},
        {"id": "item-1", "query": None},
    ]
    written = bench.convert(bench.put("rows.jsonl", rows), "uipath")
    assert [each["id"] for each in _read_set(written)["evaluations"]] == ["a", "item-1-2", "a-2", "item-1"]
    assert written.account == {"item without a question": 1, "(id of several items)": 1}


@pytest.mark.parametrize("source", ["m365/support-desk.json", "foundry/conversations.jsonl", "csv/faq.csv"])
def test_every_sample_becomes_a_project_that_loads(bench: Workshop, source: str) -> None:
    written = bench.convert(DATA / source, "uipath")
    assert written.after.dialect == "uipath"
    assert written.after.notices == ()
