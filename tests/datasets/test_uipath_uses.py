"""UiPath eval sets: what each type of evaluator gets as options and reads, and that ours take it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.contracts.documents import parse_uses
from assay.datasets.reader import read_documents
from assay.errors import InputError
from evaluators.binary_classification import BinaryClassificationOptions
from evaluators.csv_columns import CsvColumnsOptions
from evaluators.json_equals import JsonEqualsOptions
from evaluators.json_similarity import JsonSimilarityOptions
from evaluators.multiclass_classification import MulticlassClassificationOptions
from evaluators.tool_call_args import ToolCallArgsOptions
from evaluators.tool_call_count import ToolCallCountOptions
from evaluators.tool_call_order import ToolCallOrderOptions
from evaluators.tool_call_output import ToolCallOutputOptions
from evaluators.uipath_contains import UiPathContainsOptions
from evaluators.uipath_faithfulness import FaithfulnessOptions
from evaluators.uipath_semantic import OutputJudgeOptions
from evaluators.uipath_trajectory import TrajectoryOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.contracts.documents import Document, EvaluatorUse
    from evaluators.contract import Options

    Write = Callable[[str, str | bytes], str]
    Build = Callable[..., Document]

OUTPUT = {"expectedOutput": {"k": "a"}}
CALL = {"name": "search", "args": {"q": 1}}
RESULT = {"name": "search", "output": "x"}
SPECS = [{"type": "fscore", "classes": ["a", "b"], "averaging": "micro", "fValue": 2}]
TAKEN: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], type[Options]]] = [
    (
        "uipath-exact-match",
        {"aggregators": SPECS},
        OUTPUT,
        {"case_sensitive": False, "negated": False, "aggregators": SPECS},
        JsonEqualsOptions,
    ),
    (
        "uipath-contains",
        {"negated": True, "lineByLineEvaluator": True},
        {"searchText": "x"},
        {"case_sensitive": False, "negated": True, "line_by_line": True},
        UiPathContainsOptions,
    ),
    ("uipath-json-similarity", {"lineDelimiter": "\n"}, OUTPUT, {}, JsonSimilarityOptions),
    (
        "uipath-binary-classification",
        {"positiveClass": "a", "metricType": "f-score", "fValue": 0.5},
        {"expectedClass": "a"},
        {"positive_class": "a", "metric_type": "f-score", "f_value": 0.5},
        BinaryClassificationOptions,
    ),
    (
        "uipath-multiclass-classification",
        {"classes": ["a", "b"], "averaging": "macro"},
        {"expectedClass": "a"},
        {"classes": ["a", "b"], "averaging": "macro"},
        MulticlassClassificationOptions,
    ),
]
CALLED: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], type[Options]]] = [
    (
        "uipath-tool-call-order",
        {"strict": True},
        {"toolCallsOrder": ["a"]},
        {"strict": True, "tool_calls_order": ["a"]},
        ToolCallOrderOptions,
    ),
    (
        "uipath-tool-call-count",
        {"strict": False},
        {"tool_calls_count": {"a": ["=", 1]}},
        {"tool_calls_count": {"a": ["=", 1]}},
        ToolCallCountOptions,
    ),
    (
        "uipath-tool-call-args",
        {"subset": True},
        {"toolCalls": [CALL]},
        {"subset": True, "tool_calls": [CALL]},
        ToolCallArgsOptions,
    ),
    (
        "uipath-tool-call-output",
        {},
        {"toolOutputs": [RESULT]},
        {"tool_outputs": [RESULT]},
        ToolCallOutputOptions,
    ),
]


@pytest.fixture
def build(write: Write) -> Build:
    """Write a project with one evaluator of id `e` and read its only set."""

    def build_project(evaluator: dict[str, Any], *criteria: Any, **fields: Any) -> Document:
        write("evaluations/evaluators/e.json", json.dumps({"id": "e", **evaluator}))
        items = [
            {"id": f"i{n}", "inputs": {}, "evaluationCriterias": {"e": each}} | fields
            for n, each in enumerate(criteria)
        ]
        root: dict[str, Any] = {"evaluatorRefs": ["e"], "evaluations": items}
        if "category" not in evaluator:
            root["version"] = "1.0"
        return read_documents([write("evaluations/eval-sets/set.json", json.dumps(root))])[0]

    return build_project


def _only(document: Document) -> EvaluatorUse:
    (use,) = list(document.defaults or ())
    return use


@pytest.mark.parametrize(
    ("type_id", "config", "criteria", "options", "model"), TAKEN, ids=[each[0] for each in TAKEN]
)
def test_what_compares_outputs_reads_the_target_and_the_criterion(
    type_id: str,
    config: dict[str, Any],
    criteria: dict[str, Any],
    options: dict[str, Any],
    model: type[Options],
    build: Build,
) -> None:
    use = _only(
        build({"evaluatorTypeId": type_id, "evaluatorConfig": {"targetOutputKey": "k", **config}}, criteria)
    )
    (field,) = criteria
    path = f"{field}.k" if field == "expectedOutput" else field
    assert (use.evaluator, use.options) == (type_id, options)
    assert use.mapping == {
        "response": "{{sample.output_object.k}}",
        "expected_response": f'{{{{item.evaluationCriterias["e"].{path}}}}}',
    }
    model.model_validate(use.options).check_setup()


@pytest.mark.parametrize(
    ("type_id", "config", "criteria", "options", "model"), CALLED, ids=[each[0] for each in CALLED]
)
def test_what_is_about_tool_calls_gets_its_criterion_as_an_option(
    type_id: str,
    config: dict[str, Any],
    criteria: dict[str, Any],
    options: dict[str, Any],
    model: type[Options],
    build: Build,
) -> None:
    use = _only(build({"evaluatorTypeId": type_id, "evaluatorConfig": config}, criteria))
    assert (use.evaluator, use.options, use.mapping) == (type_id, options, {})
    default = {"evaluatorConfig": {**config, "defaultEvaluationCriteria": criteria}}
    assert _only(build({"evaluatorTypeId": type_id, **default}, None)).options == options
    model.model_validate(use.options).check_setup()


def test_calls_that_are_expected_nowhere_are_a_fault_of_the_evaluation(build: Build) -> None:
    with pytest.raises(InputError, match=r"evaluationCriterias\.e: no toolCallsOrder for evaluator 'e'"):
        build({"evaluatorTypeId": "uipath-tool-call-order", "evaluatorConfig": {}}, {})


def test_each_evaluation_has_its_own_calls(build: Build) -> None:
    criteria = [{"toolCallsOrder": ["a"]}, {"toolCallsOrder": ["b"]}, {"toolCallsOrder": ["a"]}]
    document = build({"evaluatorTypeId": "uipath-tool-call-order", "evaluatorConfig": {}}, *criteria)
    uses = [parse_uses(text)[0].options for text in document.rows["evaluators_json"]]
    assert uses == [{"tool_calls_order": ["a"]}, {"tool_calls_order": ["b"]}, {"tool_calls_order": ["a"]}]


def test_columns_of_the_older_csv_evaluator_are_a_list(build: Build) -> None:
    evaluator = {"category": 0, "type": 10, "targetOutputKey": "csv", "targetSubOutputKey": "Name, Age,"}
    use = _only(build(evaluator | {"lineByLineEvaluation": True}, None, expectedOutput={"csv": "Name\nA"}))
    assert (use.evaluator, use.options) == (
        "uipath-csv-column-match",
        {"line_by_line": True, "columns": ["Name", "Age"]},
    )
    assert use.mapping["expected_response"] == "{{item.expectedOutput.csv}}"
    CsvColumnsOptions.model_validate(use.options).check_setup()


def test_the_older_exact_match_with_lines_keeps_case(build: Build) -> None:
    evaluator = {"category": 0, "type": 1, "lineByLineEvaluation": True, "caseSensitive": False}
    use = _only(build(evaluator, None, expectedOutput={"a": 1}))
    assert use.options == {"case_sensitive": True, "negated": False, "line_by_line": True}


def test_a_null_that_is_expected_is_read_where_it_stands(build: Build) -> None:
    config = {"evaluatorTypeId": "uipath-exact-match", "evaluatorConfig": {"targetOutputKey": "k"}}
    use = _only(build(config, {"expectedOutput": {"k": None}}))
    assert use.mapping["expected_response"] == '{{item.evaluationCriterias["e"].expectedOutput.k}}'
    use = _only(build(config, {"expectedOutput": '{"k": "{{x}}"}'}))
    assert use.mapping["expected_response"] == "\\{{x}}"


JUDGE = {"prompt": "{{ActualOutput}}", "model": "m", "temperature": 0.5, "maxTokens": 9}


def test_the_judge_of_an_output_gets_its_prompt_and_both_sides(build: Build) -> None:
    type_id = "uipath-llm-judge-output-semantic-similarity"
    use = _only(build({"evaluatorTypeId": type_id, "evaluatorConfig": JUDGE}, OUTPUT))
    assert use.options == {"prompt": "{{ActualOutput}}", "model": "m", "temperature": 0.5, "max_tokens": 9}
    assert use.mapping == {
        "response": "{{sample.output_object}}",
        "expected_response": '{{item.evaluationCriterias["e"].expectedOutput}}',
    }
    OutputJudgeOptions.model_validate(use.options)
    listed = {"targetOutputKey": ["k", "l"]}
    use = _only(build({"evaluatorTypeId": type_id, "evaluatorConfig": listed}, OUTPUT))
    assert OutputJudgeOptions.model_validate(use.options).target_output_key == ["k", "l"]


@pytest.mark.parametrize(
    ("criteria", "default", "expected"),
    [
        ({"expectedAgentBehavior": "x"}, {}, '{{item.evaluationCriterias["e"].expectedAgentBehavior}}'),
        ({}, {"defaultEvaluationCriteria": {"expectedAgentBehavior": "{{x}}"}}, "\\{{x}}"),
        ({}, {}, ""),
    ],
)
def test_the_judge_of_a_run_gets_the_behaviour_that_is_expected(
    criteria: dict[str, Any], default: dict[str, Any], expected: str, build: Build
) -> None:
    type_id = "uipath-llm-judge-trajectory-simulation"
    use = _only(build({"evaluatorTypeId": type_id, "evaluatorConfig": default}, criteria))
    assert use.mapping["expected_response"] == expected
    TrajectoryOptions.model_validate(use.options)


def test_the_behaviour_of_an_older_evaluation_stands_beside_its_output(build: Build) -> None:
    use = _only(build({"category": 3, "type": 7}, None, expectedAgentBehavior="x", expectedOutput={}))
    assert use.mapping["expected_response"] == "{{item.expectedAgentBehavior}}"


def test_a_judge_of_sources_needs_no_expectation(build: Build) -> None:
    for kind in (8, 9):
        use = _only(build({"category": 1, "type": kind, "prompt": "p", "targetOutputKey": "k"}, None))
        assert use.mapping == {"response": "{{sample.output_object.k}}"}
        FaithfulnessOptions.model_validate(use.options)
