"""UiPath eval sets: references, criteria, target keys, and both generations of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.documents import EvaluatorUse, parse_uses
from assay.datasets.reader import read_documents
from assay.datasets.uipath_templates import parse_target, write_literal, write_placeholder
from assay.errors import InputError
from transforms.templates import parse_template

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.contracts.documents import Document

    Write = Callable[[str, str | bytes], str]
    Build = Callable[..., Document]

EXACT: dict[str, Any] = {
    "version": "1.0",
    "id": "7C1E",
    "name": "Same",
    "evaluatorTypeId": "uipath-exact-match",
    "evaluatorConfig": {"targetOutputKey": "*"},
}
CONTAINS: dict[str, Any] = {
    "version": "1.0",
    "id": "has",
    "evaluatorTypeId": "uipath-contains",
    "evaluatorConfig": {"name": "Has", "targetOutputKey": "a.b[0].c-d", "case_sensitive": True},
}
DEFAULTS: dict[str, Any] = {"targetOutputKey": "a", "defaultEvaluationCriteria": {"expectedOutput": "b"}}
LEGACY: dict[str, Any] = {"id": "eq", "name": "Equal", "category": 0, "type": 1, "targetOutputKey": "sum"}


def _evaluation(key: str = "e1", **fields: Any) -> dict[str, Any]:
    return {"id": key, "name": "case", "inputs": {"n": 85}, "evaluationCriterias": {}, **fields}


def _ids(evaluators: Any) -> list[str]:
    return [evaluator["id"] for evaluator in evaluators if isinstance(evaluator, dict)]


@pytest.fixture
def build(write: Write) -> Build:
    """Write a project and read its only set; evaluators lie in files `first.json`, `second.json`."""

    def build_project(*evaluators: Any, items: list[Any], **fields: Any) -> Document:
        for stem, evaluator in zip(("first", "second", "third"), evaluators, strict=False):
            write(f"evaluations/evaluators/{stem}.json", json.dumps(evaluator))
        refs: Any = _ids(evaluators)
        root: dict[str, Any] = {
            "version": "1.0",
            "id": "s",
            "evaluatorRefs": refs,
            "evaluations": items,
            **fields,
        }
        root = {key: value for key, value in root.items() if value is not None}
        path = write("evaluations/eval-sets/set.json", json.dumps(root, indent=1, ensure_ascii=False))
        return read_documents([path])[0]

    return build_project


def _only(document: Document) -> EvaluatorUse:
    uses = list(document.defaults or ())
    assert len(uses) == 1
    return uses[0]


def _expected(document: Document) -> list[str]:
    return [use.mapping["expected_response"] for use in document.defaults or ()]


def test_an_evaluation_is_a_row(build: Build) -> None:
    items = [
        _evaluation("e1", inputs={"text": "Hi"}, expectedOutput={"g": "PÄSS", "n": 1.50}),
        _evaluation("e2", expectedOutput="raw"),
        _evaluation("e3", inputs={"a": "x", "b": 2.0}),
    ]
    rows = build(EXACT, items=items).rows
    assert rows["id"].to_list() == ["e1", "e2", "e3"]
    assert rows["query"].to_list() == ["Hi", '{"n":85}', '{"a":"x","b":2.0}']
    assert rows["expected_response"].to_list() == ['{"g":"PÄSS","n":1.5}', "raw", None]
    assert [json.loads(text) for text in rows["item_json"]] == items
    assert rows["source_line"].to_list() == [8, 20, 29]


@pytest.mark.parametrize("reference", ["7c1e", "first", "Same"])
@pytest.mark.parametrize("field", ["evaluatorRefs", "evaluatorConfigs"])
def test_evaluators_are_bound_by_id_stem_and_name(reference: str, field: str, build: Build) -> None:
    item = _evaluation(evaluationCriterias={reference: {"expectedOutput": {"grade": "PASS"}}})
    entry: Any = reference if field == "evaluatorRefs" else {"ref": reference, "weight": 2}
    document = build(EXACT, items=[item], **({"evaluatorRefs": []} | {field: [entry]}))
    template = f'{{{{item.evaluationCriterias["{reference}"].expectedOutput}}}}'
    use = _only(document)
    assert use.evaluator == "uipath-exact-match"
    assert use.name == "Same"
    assert use.options == {"case_sensitive": False, "negated": False}
    assert use.mapping == {"response": "{{sample.output_object}}", "expected_response": template}
    assert Path(use.where).name == "first.json"
    assert len(document.warnings) == (field == "evaluatorConfigs")


def test_contains_reads_the_search_text_and_the_target_of_the_answer(build: Build) -> None:
    document = build(CONTAINS, items=[_evaluation(evaluationCriterias={"has": {"searchText": "8"}})])
    assert document.defaults == (
        EvaluatorUse(
            "uipath-contains",
            {"case_sensitive": True, "negated": False},
            "Has",
            {
                "response": '{{sample.output_object.a.b[0]["c-d"]}}',
                "expected_response": '{{item.evaluationCriterias["has"].searchText}}',
            },
            str(Path(document.path).parents[1] / "evaluators" / "first.json"),
        ),
    )


def test_a_target_key_goes_into_the_expected_output_as_well(build: Build) -> None:
    evaluator = EXACT | {"evaluatorConfig": {"targetOutputKey": "sum.x"}}
    item = _evaluation(evaluationCriterias={"7C1E": {"expectedOutput": {"sum": {"x": 1}}}})
    assert _expected(build(evaluator, items=[item])) == [
        '{{item.evaluationCriterias["7C1E"].expectedOutput.sum.x}}'
    ]


@pytest.mark.parametrize("criteria", [None, {}])
def test_missing_criteria_fall_back_to_the_evaluation_and_then_to_the_default(
    criteria: Any, build: Build
) -> None:
    config = {"targetOutputKey": "r", "defaultEvaluationCriteria": {"expectedOutput": {"r": "{{x}}"}}}
    item = _evaluation(evaluationCriterias={"7C1E": criteria})
    evaluator = EXACT | {"evaluatorConfig": config}
    assert _expected(build(evaluator, items=[item])) == ["\\{{x}}"]
    assert _expected(build(evaluator, items=[item | {"expectedOutput": {"r": 2}}])) == [
        "{{item.expectedOutput.r}}"
    ]


def test_a_default_that_is_no_text_is_compact_json(build: Build) -> None:
    config = {"default_evaluation_criteria": {"expected_output": {"r": [1, "ö"]}}}
    item = _evaluation(evaluationCriterias={"7C1E": None})
    assert _expected(build(EXACT | {"evaluatorConfig": config}, items=[item])) == ['{"r":[1,"ö"]}']


def test_an_evaluator_without_criteria_in_an_evaluation_is_not_used_there(build: Build) -> None:
    items = [
        _evaluation("e1", evaluationCriterias={"7C1E": {"expectedOutput": 1}, "has": {"searchText": "a"}}),
        _evaluation("e2", evaluationCriterias={"has": {"searchText": "b"}}),
        _evaluation("e3"),
    ]
    document = build(EXACT, CONTAINS, items=items)
    uses = [[use.name for use in parse_uses(text)] for text in document.rows["evaluators_json"]]
    assert uses == [["Same", "Has"], ["Has"], []]
    assert document.rows["evaluators_mode"].to_list() == ["replace"] * 3
    assert document.defaults == ()


def test_several_target_keys_and_lines_are_options(build: Build) -> None:
    config = {"targetOutputKey": ["a", "b"], "lineByLineEvaluator": True, "lineDelimiter": ";"}
    item = _evaluation(evaluationCriterias={"7C1E": {"expectedOutput": {"a": 1}}})
    use = _only(build(EXACT | {"evaluatorConfig": config}, items=[item]))
    assert use.options == {
        "case_sensitive": False,
        "negated": False,
        "line_by_line": True,
        "line_delimiter": ";",
        "target_output_key": ["a", "b"],
    }
    assert use.mapping == {
        "response": "{{sample.output_object}}",
        "expected_response": '{{item.evaluationCriterias["7C1E"].expectedOutput}}',
    }


def test_other_types_are_handed_on_by_their_id(build: Build) -> None:
    evaluator: dict[str, Any] = {"id": "t", "evaluatorTypeId": "uipath-of-tomorrow", "evaluatorConfig": {}}
    use = _only(build(evaluator, items=[_evaluation(evaluationCriterias={"t": None})]))
    assert use.evaluator == "uipath-of-tomorrow"
    assert (use.name, use.options, use.mapping) == ("t", {}, {})
    assert use.where.endswith("first.json")


@pytest.mark.parametrize(
    ("category", "kind", "type_id"),
    [
        (0, 6, "uipath-json-similarity"),
        (0, 10, "uipath-csv-column-match"),
        (1, 5, "uipath-llm-judge-output-semantic-similarity"),
        (1, 8, "uipath-context-precision"),
        (1, 9, "uipath-faithfulness"),
        (3, 7, "uipath-llm-judge-trajectory-similarity"),
    ],
)
def test_older_evaluators_have_a_type_of_today(category: int, kind: int, type_id: str, build: Build) -> None:
    evaluator = LEGACY | {"category": category, "type": kind}
    document = build(evaluator, items=[_evaluation(expectedOutput={})], version=None)
    assert [use.evaluator for use in document.defaults or ()] == [type_id]


def test_an_older_set_compares_the_expected_output_with_respect_to_case(build: Build) -> None:
    document = build(LEGACY, items=[_evaluation(expectedOutput={"sum": 2})], version=None)
    use = _only(document)
    assert use.options == {"case_sensitive": True, "negated": False}
    assert use.mapping == {
        "response": "{{sample.output_object.sum}}",
        "expected_response": "{{item.expectedOutput.sum}}",
    }
    assert document.rows["evaluators_json"].null_count() == 1


def test_an_older_evaluator_in_a_set_of_today_reads_the_criteria(build: Build) -> None:
    item = _evaluation(evaluationCriterias={"eq": {"expectedOutput": {"sum": 2}}})
    assert _expected(build(LEGACY, items=[item])) == ['{{item.evaluationCriterias["eq"].expectedOutput.sum}}']


def test_a_set_without_references_names_no_evaluator(build: Build) -> None:
    assert build(EXACT, items=[_evaluation()], evaluatorRefs=None).defaults is None


@pytest.mark.parametrize(
    ("items", "fields", "message"),
    [
        ([_evaluation("a"), _evaluation("a")], {}, r"\[1\]\.id: id 'a' is also that of evaluations\[0\]"),
        ([_evaluation("")], {}, r"evaluations\[0\]: no id"),
        ([_evaluation(inputs=None)], {}, r"evaluations\[0\]\.inputs: null, expected an object"),
        ([_evaluation(evaluationCriterias=None)], {}, r"evaluations\[0\]\.evaluationCriterias: null"),
        ([_evaluation(evaluationCriterias={"7C1E": 1})], {}, r"Criterias\.7C1E: a number, expected"),
        ([_evaluation(evaluationCriterias={"no": {}})], {}, r"\.no: unknown evaluator 'no'; known in"),
        ([_evaluation(evaluationCriterias={"7C1E": {}})], {}, r"\.7C1E: no expectedOutput for .*'Same'"),
        (["text"], {}, r"evaluations\[0\]: text, expected an object"),
        ({}, {}, "evaluations: an object, expected a list"),
        ([], {"version": "2.0"}, 'version: "2.0" is not supported; accepted: the text "1.0"'),
        ([], {"version": True}, 'version: true is not supported; accepted: the text "1.0"'),
        ([], {"evaluations": None}, "no evaluations; found: version, id, evaluatorRefs"),
        ([], {"evaluatorRefs": ["nope"]}, r"evaluatorRefs\[0\]: unknown evaluator 'nope'; known in .*: 7C1E"),
        ([], {"evaluatorRefs": [1]}, r"evaluatorRefs\[0\]: a number, expected text or an object with ref"),
        ([], {"evaluatorRefs": "7C1E"}, "evaluatorRefs: text, expected a list"),
    ],
)  # fmt: skip
def test_a_set_that_breaks_its_format_is_refused_with_a_pointer(
    items: Any, fields: dict[str, Any], message: str, build: Build
) -> None:
    with pytest.raises(InputError, match=message):
        build(EXACT, items=items, **fields)


@pytest.mark.parametrize(
    ("evaluators", "message"),
    [
        ([LEGACY | {"type": 2}], r"first\.json:1:\d+: type: category 0 with type 2 is not supported"),
        ([{"id": "x"}], r"first\.json:1:1: no evaluatorTypeId, and no category"),
        ([EXACT, EXACT | {"id": "7c1e"}], r"second\.json:1:26: id: id '7c1e' is also that of .*first"),
        ([EXACT, EXACT | {"id": "other"}], r"second\.json has the name 'Same', as has .*first\.json"),
        ([EXACT | {"evaluatorConfig": [1]}], r"first\.json:1:\d+: evaluatorConfig: a list, expected an"),
        ([[1]], r"first\.json:1:1: a list; an evaluator file holds one object"),
        ([EXACT | {"evaluatorConfig": DEFAULTS}], r"Criteria\.expectedOutput: the default .* 'a'"),
    ],
)  # fmt: skip
def test_an_evaluator_file_that_cannot_be_used_is_named(
    evaluators: list[Any], message: str, build: Build
) -> None:
    criteria = dict.fromkeys(_ids(evaluators))
    with pytest.raises(InputError, match=message):
        build(*evaluators, items=[_evaluation(evaluationCriterias=criteria)])


@given(text=st.text() | st.text(st.sampled_from("\\{<$a.}dtr"), max_size=12))
def test_a_literal_reads_nothing_and_gives_back_its_text(text: str) -> None:
    assert parse_template(write_literal(text), where="test").parts == (text,)


@given(steps=st.lists(st.text(min_size=1, max_size=4) | st.integers(0, 9), max_size=4))
def test_a_placeholder_is_read_back_as_its_path(steps: list[str | int]) -> None:
    sole = parse_template(write_placeholder("item", steps), where="test").sole
    assert sole is not None
    assert sole.path == tuple(steps)


def test_target_keys_are_split_at_dots_and_brackets() -> None:
    assert parse_target("*") == ()
    assert parse_target("a.b[0].c d") == ("a", "b", 0, "c d")


def test_the_hash_covers_the_evaluators(build: Build) -> None:
    item = _evaluation(evaluationCriterias={"7C1E": {"expectedOutput": 1}})
    first, second = build(EXACT, items=[item]), build(EXACT | {"description": "new"}, items=[item])
    assert first.sha256 != second.sha256
