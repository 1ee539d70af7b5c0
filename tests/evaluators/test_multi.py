from __future__ import annotations

import asyncio
import contextlib
import math
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import parse_json
from assay.errors import ConfigError
from assay.sandbox.graders import find_obstacle
from evaluators.catalog import Catalog
from evaluators.formula import parse_formula
from evaluators.multi import EVALUATOR
from evaluators.runner import run_evaluation
from transforms.mapping import map_fields
from transforms.templates import parse_template

if TYPE_CHECKING:
    from collections.abc import Callable

CATALOG = Catalog((EVALUATOR,))
ANSWER, REFERENCE = "{{sample.output_text}}", "{{item.reference}}"
EXACT: dict[str, Any] = {
    "type": "string_check",
    "name": "exact",
    "input": ANSWER,
    "reference": REFERENCE,
    "operation": "eq",
}
FUZZY: dict[str, Any] = {
    "type": "text_similarity",
    "input": ANSWER,
    "reference": "the {{item.reference}}",
    "evaluation_metric": "fuzzy_match",
    "pass_threshold": 0.8,
}
PYTHON: dict[str, Any] = {"type": "python", "source": "def grade(sample, item):\n    return 1 / item['n']"}
isolated = pytest.mark.usefixtures("isolation")


@pytest.fixture
def isolation() -> None:
    if find_obstacle():
        pytest.skip(f"no isolation here: {find_obstacle()}")


def run(graders: dict[str, Any], formula: str, rows: dict[str, list[str | None]]) -> pl.DataFrame:
    evaluation = CATALOG.resolve("multi", {"graders": graders, "calculate_output": formula})
    frame = pl.DataFrame(rows).with_columns(item=pl.lit("{}"))
    return asyncio.run(run_evaluation(evaluation, frame, None))


def compute(formula: str, **values: float) -> float:
    return (
        pl.DataFrame(values or {"_": [0.0]})
        .select(value=parse_formula(formula, list(values)))["value"]
        .item()
    )


def test_each_grader_reads_its_own_fields_from_its_own_templates() -> None:
    evaluation = CATALOG.resolve("multi", {"graders": {"a": EXACT, "b": FUZZY}, "calculate_output": "a"})
    assert dict(evaluation.mapping) == {
        "a.response": ANSWER,
        "a.expected_response": REFERENCE,
        "b.response": ANSWER,
        "b.expected_response": "the {{item.reference}}",
    }
    rows = pl.DataFrame({"item_json": ['{"reference":"cat"}'], "sample.output_text": ["a cat"]})
    templates = {field: parse_template(text, where=field) for field, text in evaluation.mapping.items()}
    filled = map_fields(rows, templates, evaluation.mapping)
    assert filled["b.expected_response"].to_list() == ["the cat"]
    again: Any = parse_json(evaluation.options_json)
    assert CATALOG.resolve("multi", again) == evaluation


def test_the_formula_joins_the_scores_and_the_details_list_them() -> None:
    result = run(
        {"exact": EXACT, "fuzzy": {**FUZZY, "evaluation_metric": "rouge_1"}},
        "0.5 * exact + 0.5 * fuzzy",
        {
            "exact.response": ["a cat", "a cat"],
            "exact.expected_response": ["a cat", "a dog"],
            "fuzzy.response": ["a cat", "a cat"],
            "fuzzy.expected_response": ["a cat", "a dog"],
        },
    )
    assert result["score"].to_list() == [1.0, 0.25]
    assert [parse_json(text) for text in result["details_json"]] == [
        {"exact": 1.0, "fuzzy": 1.0},
        {"exact": 0.0, "fuzzy": 0.5},
    ]


JUDGED: dict[str, Any] = {
    "type": "score_model",
    "input": [{"role": "user", "content": "{{sample.output_text}} for {{item.reference}}?"}],
    "range": [0, 10],
}
JUDGED_ROW = {
    "a.response": ["x"],
    "a.expected_response": ["x"],
    "m.item": ["{}"],
    "m.response": ["x"],
    "m.item_reference.context": ["y"],
}


def test_a_formula_may_count_on_a_judge(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat('{"reason": "near", "score": 7}')
    options = {"graders": {"a": EXACT, "m": JUDGED}, "calculate_output": "a + m / 10", "threshold": 1.5}
    row = score("multi", {"item": ["{}"], **JUDGED_ROW}, chat, **options).row(0, named=True)
    assert (row["score"], row["passed"], row["judge_model"]) == (1.7, True, "judge-1")
    judged = {"m": {"label": None, "reason": "near"}}
    assert parse_json(row["details_json"]) == {"a": 1.0, "m": 7.0, "judged": judged}
    failed = score("multi", {"item": ["{}"], **JUDGED_ROW}, scripted_chat("no"), **options)
    assert failed["error_code"].to_list() == ["unparseable"]
    assert failed["error_message"][0].startswith("m: ")
    options["calculate_output"] = "m / (a - 1)"
    endless = score("multi", {"item": ["{}"], **JUDGED_ROW}, chat, **options)
    assert endless["error_code"].to_list() == ["invalid_result"]


def test_a_missing_field_skips_the_row_and_is_named_with_its_grader() -> None:
    rows: dict[str, list[str | None]] = {"a.response": ["x", None], "a.expected_response": ["x", "x"]}
    result = run({"a": EXACT}, "a", rows)
    assert result["status"].to_list() == ["ok", "skipped"]
    assert result["reason"].to_list() == [None, "no a.response"]


@isolated
def test_a_grader_that_fails_makes_the_row_an_error_with_its_key() -> None:
    rows: dict[str, list[str | None]] = {
        "p.item": ['{"n":2}', '{"n":0}'],
        "a.response": ["x", "x"],
        "a.expected_response": ["x", "y"],
    }
    result = run({"a": EXACT, "p": PYTHON}, "min(a, p)", rows)
    assert result["score"].to_list() == [0.5, None]
    assert result["error_code"].to_list() == [None, "grader_error"]
    assert result["error_message"][1] == "p: ZeroDivisionError: division by zero (line 2)"


def test_a_formula_without_a_finite_value_is_an_error_of_its_row() -> None:
    rows: dict[str, list[str | None]] = {"a.response": ["x", "y"], "a.expected_response": ["x", "x"]}
    result = run({"a": EXACT}, "1 / a", rows)
    assert result["score"].to_list() == [1.0, None]
    assert result["error_code"].to_list() == [None, "invalid_result"]
    assert result["error_message"][1] == "calculate_output gives inf, not a finite number"


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("a + b * 2", 7.0),
        ("(a + b) * 2 / 4 - 1", 1.0),
        ("2 ^ 3 ^ 2", 512.0),
        ("-2 ^ 2", -4.0),
        ("b ^ -1", 1 / 3),
        ("max(a, b, 2) - min(a, b)", 2.0),
        ("max(a)", 1.0),
        ("floor(2.7) + ceil(2.2) + abs(-b)", 8.0),
        ("exp(log(b)) * sqrt(16)", 12.0),
        ("1e3 + .5", 1000.5),
        (" +7 ", 7.0),
    ],
)
def test_formulas_mean_what_they_say(formula: str, value: float) -> None:
    assert compute(formula, a=1.0, b=3.0) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("formula", ["min(sqrt(-1), a)", "max(a, 0 / 0)", "log(-a)", "(-8) ^ (1 / 3)"])
def test_what_has_no_value_is_never_hidden(formula: str) -> None:
    assert math.isnan(compute(formula, a=1.0))


@given(st.text(max_size=60) | st.text("ab0.1+-*/^()min, ", max_size=40))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse_formula(text, ["a", "b"]), pl.Expr)


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("a +", "invalid syntax at character"),
        ("", "invalid syntax"),
        ("a + c", r"unknown name 'c'; known: a, min, max, abs"),
        ("__import__('os')", "unknown function '__import__'|not arithmetic"),
        ("a.real", r"'a\.real' is not arithmetic"),
        ("a if a else 1", "is not arithmetic"),
        ("a % 2", "is not arithmetic"),
        ("a // 2", "is not arithmetic"),
        ("True", "'True' is not arithmetic"),
        ("min()", "min takes one number or more"),
        ("log(a, 2)", "log takes one number"),
        ("min(a, key=a)", "is not arithmetic"),
        ("1e999", "too large"),
        ("9" * 400, "too large"),
        ("a+" * 600 + "a", "more than 1000 characters"),
        ("(" * 500 + "a" + ")" * 499, "nested|never closed"),
    ],
)
def test_a_formula_that_is_none_is_refused(formula: str, told: str) -> None:
    with pytest.raises(ConfigError, match=rf"MultiGrader\.calculate_output: .*({told})"):
        CATALOG.resolve("multi", {"graders": {"a": EXACT}, "calculate_output": formula})


def test_the_longest_formula_is_computed() -> None:
    assert compute("+".join(["a"] * 500), a=1.0) == 500.0


@pytest.mark.parametrize(
    ("graders", "told"),
    [
        ({}, r"MultiGrader\.graders"),
        ({"a": {"type": "multi"}}, r"graders\.a\.type: got 'multi', accepted is string_check"),
        ({"a": {**FUZZY, "evaluation_metric": "cosine"}}, r"graders\.a: a multi grader compares no vectors"),
        ({"a": {"type": "score_model"}}, r"graders\.a: ScoreModel\.input is required"),
        ({"a": {}}, r"graders\.a\.type: got None"),
        ({"a b": EXACT}, r"key 'a b' cannot stand in a formula"),
        ({"min": EXACT}, r"key 'min' cannot stand"),
        ({"a": {**EXACT, "operation": "is"}}, r"graders\.a: StringCheck\.operation: got 'is'"),
        ({"a": {**EXACT, "input": 1}}, r"graders\.a: StringCheck\.input: got 1"),
    ],
)
def test_graders_that_cannot_be_are_refused_with_their_key(graders: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        CATALOG.resolve("multi", {"graders": graders, "calculate_output": "1"})


def test_set_up_is_checked_for_every_grader() -> None:
    graders: Any = {"p": {"type": "python", "source": "def grade(: pass"}}
    evaluation = CATALOG.resolve("multi", {"graders": graders, "calculate_output": "p"})
    with pytest.raises(ConfigError, match=r"graders\.p: PythonGrader\.source: line 1"):
        evaluation.options.check_setup()


def test_only_the_run_lets_python_graders_have_the_network() -> None:
    graders = {"p": {**PYTHON, "allow_network": True}}
    options: dict[str, Any] = {"graders": graders, "calculate_output": "p"}
    for allowed in (False, True):
        resolved: Any = CATALOG.resolve("multi", {**options, "allow_network": allowed}).options
        assert resolved.parts["p"].options.allow_network is allowed
