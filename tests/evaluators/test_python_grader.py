from __future__ import annotations

import asyncio
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import dump_json, parse_json
from assay.errors import ConfigError
from assay.sandbox.graders import find_obstacle
from evaluators.catalog import Catalog, Evaluation
from evaluators.python_grader import EVALUATOR, MAX_SOURCE, check_source, write_row
from evaluators.runner import run_evaluation

CATALOG = Catalog((EVALUATOR,))
CALLS = '[{"type":"tool_call","tool_call_id":"c1","name":"find","arguments":{"n":12345678901234567890}}]'
isolated = pytest.mark.usefixtures("isolation")


@pytest.fixture
def isolation() -> None:
    if find_obstacle():
        pytest.skip(f"no isolation here: {find_obstacle()}")


def resolve(source: str, **options: Any) -> Evaluation:
    return CATALOG.resolve("python", {"source": source, **options})


def run(source: str, rows: dict[str, list[str | None]], **options: Any) -> pl.DataFrame:
    return asyncio.run(run_evaluation(resolve(source, **options), pl.DataFrame(rows), None))


def read_row(item: str, response: str | None = None, calls: str | None = None) -> Any:
    return parse_json(write_row(item, response, calls, None).decode())


@isolated
def test_a_grader_sees_the_answer_and_the_source_row() -> None:
    source = """
def grade(sample, item):
    assert item["sample"] == sample
    return 0.5 * (sample["output_text"] == item["reference"]) + 0.25 * len(sample["output_tools"])
"""
    result = run(
        source,
        {
            "item": [
                '{"reference":"Paris"}',
                '{\n"reference" : "Rome"}',
                '{"reference":""}',
                '["no object"]',
            ],
            "response": ["Paris", "Paris", None, "x"],
            "tool_calls": [CALLS, None, None, None],
        },
        pass_threshold=0.5,
    )
    assert result["score"].to_list() == [0.75, 0.0, 0.5, None]
    assert result["passed"].to_list() == [True, False, True, None]
    assert result["status"].to_list() == ["ok", "ok", "ok", "error"]
    assert result["error_code"][3] == "grader_error"
    assert result["error_message"][3].endswith("(line 3)")


@isolated
def test_a_score_may_lie_anywhere_and_an_exception_is_no_zero() -> None:
    source = "def grade(sample, item):\n    return 10 / item['n']"
    result = run(source, {"item": ['{"n":-2}', '{"n":0}', '{"n":1e-3}']})
    assert result["score"].to_list() == [-5.0, None, 10_000.0]
    assert result["error_message"][1] == "ZeroDivisionError: division by zero (line 2)"
    assert result["passed"].to_list() == [None, None, None]


@isolated
def test_a_row_that_takes_too_long_is_an_error_by_name() -> None:
    source = "def grade(sample, item):\n    while item['n']: pass\n    return 1"
    result = run(source, {"item": ['{"n":0}', '{"n":1}', '{"n":0}']}, timeout_s=0.5)
    assert result["error_code"].to_list() == [None, "grader_timeout", None]
    assert result["score"].to_list() == [1.0, None, 1.0]


@isolated
def test_a_row_that_cannot_be_read_is_the_error_of_that_row_alone() -> None:
    result = run(
        "def grade(sample, item):\n    return item['n']",
        {
            "item": ['{"n":1}', '{"n":', '{"n":3}', '{"n":4}', '{"n":5}'],
            "tool_calls": [None, None, "{", None, CALLS],
            "output_items": [None, None, None, "[", "[]"],
        },
    )
    assert result["score"].to_list() == [1.0, None, None, None, 5.0]
    assert result["error_code"].to_list() == [None, "bad_field", "bad_field", "bad_field", None]
    told = [message.partition(" is not JSON: ")[0] for message in result["error_message"][1:4]]
    assert told == ["item", "tool_calls", "output_items"]


def test_the_sample_has_the_forms_of_chat_completions() -> None:
    row = read_row('{"a":1}', '{"b": [1.50]}', CALLS)
    function = {"name": "find", "arguments": '{"n":12345678901234567890}'}
    tools = [{"id": "c1", "type": "function", "function": function}]
    text = '{"b": [1.50]}'
    assert row["item"] == {"a": 1}
    assert row["sample"] == {
        "output_text": text,
        "output_json": {"b": [1.5]},
        "output_tools": tools,
        "output_items": None,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "tool_calls": tools}}],
    }


def test_calls_that_are_in_that_form_already_stay_as_they_are() -> None:
    calls: Any = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    assert read_row("{}", None, dump_json(calls))["sample"]["output_tools"] == calls
    texts = '[{"type":"tool_call","name":"f","arguments":"{}"},{"name":"g"}]'
    tools = read_row("{}", None, texts)["sample"]["output_tools"]
    assert [each["function"]["arguments"] for each in tools] == ["{}", "{}"]


@given(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=9))
def test_every_row_is_one_line_that_holds_text_and_item(text: str, item: Any) -> None:
    line = write_row(dump_json(item), text, None, None)
    assert b"\n" not in line
    row = read_row(dump_json(item), text)
    assert (row["item"], row["sample"]["output_text"]) == (item, text)
    assert row["sample"]["output_json"] is None or text.lstrip()[0] in "{["


@pytest.mark.parametrize(
    "source",
    [
        "def grade(sample, item): return 1",
        "def grade(*args): return 1",
        "def grade(sample, item, strict=False, *, mode='a'): return 1",
        "from json import loads as grade",
        "grade = lambda sample, item: 1",
        "try:\n    import numpy\nfinally:\n    def grade(a, b): return '\\d'",
    ],
)
def test_every_way_to_define_grade_is_taken(source: str) -> None:
    check_source(source)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("x = 1\ndef grade(sample, item:\n", r"source: line 2: "),
        ("def score(sample, item): return 1", r"defines no grade\(sample, item\)"),
        ("def outer():\n    grade = 1", r"defines no grade"),
        ("print(grade)", r"defines no grade"),
        ("\ndef grade(sample): return 1", r"line 2: grade is called as grade\(sample, item\)"),
        ("def grade(sample, item, more): return 1", r"line 1: grade is called"),
        ("def grade(sample, item, *, more): return 1", r"line 1: grade is called"),
        ("async def grade(sample, item): return 1", r"a plain function"),
        ("x = '\0'", r"null"),
        ("(" * 5000, r"nested"),
        ("-" * 100_000 + "1", r"source: "),
        ("return 1", r"line 1: 'return' outside function"),
    ],
)
def test_a_source_that_is_no_grader_is_refused_before_any_row(source: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        resolve(source).options.check_setup()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"source": "#" * MAX_SOURCE}, r"PythonGrader\.source: .* accepted is a text below 256 kB"),
        ({"source": "", "timeout_s": 0}, r"PythonGrader\.timeout_s: got 0"),
        ({}, r"PythonGrader\.source"),
        ({"source": "", "pass_threshold": "1"}, r"PythonGrader\.pass_threshold: got '1'"),
    ],
)
def test_options_out_of_bounds_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        CATALOG.resolve("python_grader", options)


def test_an_image_is_kept_and_not_used() -> None:
    evaluation = resolve("", image_tag="2025-05-08")
    assert '"image_tag":"2025-05-08"' in evaluation.options_json
