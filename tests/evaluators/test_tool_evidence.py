from __future__ import annotations

import asyncio
import itertools
import json
import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import CallError, ConfigError
from evaluators import tool_call_execution, tool_call_selection
from evaluators.catalog import Catalog
from evaluators.runner import run_evaluation
from evaluators.tool_call_execution import ToolCallExecutionOptions, judge_execution
from evaluators.tool_call_selection import ToolCallSelectionOptions, judge_selection
from evaluators.tool_evidence import INDETERMINATE

CATALOG = Catalog([tool_call_selection.EVALUATOR, tool_call_execution.EVALUATOR])
FIELDS = ("tool_evidence", "tool_calls", "output_items")
SELECTION, EXECUTION = "ToolCallSelection", "ToolCallExecution"
NAMES = st.sampled_from(["p", "q", "a", "b", "?"])
CALLS = st.lists(st.builds("{}.{}:{}".format, NAMES, NAMES, st.sampled_from([200, 500, "?"])), max_size=2)
WANTED = st.lists(st.sampled_from(["p.a", "p.b", "q.a", "a"]), min_size=1, max_size=3)
KEYS = ["selected_functions", "executions", "plugin_name", "function_name", "name"]
JSON = st.recursive(
    st.none() | st.text(max_size=3) | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
)


def judge(name: str, calls: list[str], *, allow: bool | None = None, **fields: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"calls": [expect(call) for call in calls]}
    if allow is not None:
        options["allow_additional_calls"] = allow
    texts = {field: None if fields.get(field) is None else json.dumps(fields[field]) for field in FIELDS}
    rows = pl.DataFrame({field: [text] for field, text in texts.items()})
    evaluation = CATALOG.resolve(name, options)
    row = asyncio.run(run_evaluation(evaluation, rows.cast(pl.String), None)).row(0, named=True)
    return row | json.loads(row["details_json"] or "{}")


def expect(call: str) -> dict[str, Any]:
    plugin, _, function = call.rpartition(".")
    return {"tool": {"plugin_name": plugin, "function_name": function} if plugin else {"function_name": call}}


def see(*calls: str) -> dict[str, Any]:
    """Each call is `plugin.function` or `plugin.function:status`; `?` for what is not told."""
    seen: list[dict[str, Any]] = []
    for call in calls:
        names, _, status = call.partition(":")
        plugin, function = (None if part == "?" else part for part in names.split("."))
        code = int(status) if status.isdigit() else None
        seen.append({"plugin_name": plugin, "function_name": function, "response_status": code})
    return {"selected_functions": seen, "executions": seen}


def seen_as(calls: object) -> dict[str, object]:
    return {"selected_functions": calls, "executions": calls}


def model_calls(*names: str) -> list[dict[str, Any]]:
    return [{"type": "tool_call", "tool_call_id": "1", "name": name, "arguments": {}} for name in names]


@pytest.mark.parametrize(
    ("calls", "evidence", "allow", "score"),
    [
        (["p.a", "p.b"], see("p.b", "p.a"), None, 1.0),
        (["p.a", "p.a"], see("p.a"), False, 1.0),
        (["p.a"], see("p.a", "q.x"), False, 0.0),
        (["p.a"], see("q.a"), None, 0.0),
        (["p.A"], see("p.a"), None, 0.0),
        (["a"], see("q.a"), False, 1.0),
        (["p.a", "p.b"], see("p.a", "p.?"), None, None),
        (["p.a", "p.b"], see("p.a", "q.?"), None, 0.0),
        (["p.a", "p.b", "p.c"], see("p.a", "?.?"), None, 0.0),
        (["p.a", "p.b"], see("p.?", "?.a"), None, None),
        (["p.a", "a"], see("?.a"), None, None),
        (["p.a", "a"], see("p.?"), None, None),
        (["p.a", "q.a", "a"], see("?.?"), None, 0.0),
        (["p.a"], see("p.a", "?.?"), None, 1.0),
        (["p.a"], see("p.a", "?.?"), False, None),
        (["p.a"], see("p.a", "q.?"), False, 0.0),
        (["p.a"], see("q.x", "?.?"), False, 0.0),
    ],
)
def test_missing_evidence_is_an_error_only_where_it_could_change_the_verdict(
    calls: list[str], evidence: dict[str, Any], allow: bool | None, score: float | None
) -> None:
    row = judge(SELECTION, calls, allow=allow, tool_evidence=evidence)
    assert row["score"] == score
    assert row["error_code"] == (INDETERMINATE if score is None else None)
    assert row["reason"] or row["error_message"]


@pytest.mark.parametrize(
    ("calls", "evidence", "score"),
    [
        (["p.a"], see("p.a:299"), 1.0),
        (["p.a"], see("p.a:300"), 0.0),
        (["p.a"], see("p.a:199"), 0.0),
        (["p.a", "p.a"], see("p.a:200", "p.a:500", "p.a:204"), 1.0),
        (["p.a", "a"], see("q.a:200", "p.a:200"), 1.0),
        (["a", "p.a"], see("p.a:200", "q.a:200"), 1.0),
        (["p.a", "p.a"], see("p.a:200", "p.a:?"), None),
        (["p.a", "p.a"], see("p.a:200", "p.?:200"), None),
        (["p.a", "p.a"], see("p.a:200", "q.?:200"), 0.0),
        (["p.a", "p.a"], see("p.a:200", "?.?:404"), 0.0),
        (["p.a", "p.a", "p.a"], see("p.a:200", "p.a:?"), 0.0),
        (["p.a"], see("p.a:200", "?.?"), 1.0),
    ],
)
def test_every_expected_call_needs_a_success_of_its_own(
    calls: list[str], evidence: dict[str, Any], score: float | None
) -> None:
    row = judge(EXECUTION, calls, tool_evidence=evidence)
    assert (row["score"], row["error_code"]) == (score, INDETERMINATE if score is None else None)


def test_an_execution_says_which_calls_lack_a_success() -> None:
    row = judge(EXECUTION, ["p.a", "p.b", "p.a"], tool_evidence=see("p.a:200", "p.b:500"))
    assert (sorted(row["missing"]), row["executions"]) == (["p.a", "p.b"], 2)
    assert row["reason"].startswith("not executed with success: p.")


@pytest.mark.parametrize("name", ["p.a", "p-a", "p__a"])
def test_an_answers_own_calls_stand_in_for_evidence_that_is_not_there(name: str) -> None:
    row = judge(SELECTION, ["p.a"], tool_calls=model_calls(name))
    assert (row["score"], row["source"]) == (1.0, "tool_calls")
    assert judge(SELECTION, ["a"], tool_calls=model_calls(name))["score"] == 0.0
    assert judge(SELECTION, ["p.a"], tool_evidence=see(), tool_calls=model_calls(name))["score"] == 0.0


def test_a_bare_function_is_enough_where_no_plugin_is_asked_for() -> None:
    assert judge(SELECTION, ["a"], tool_calls=model_calls("a"))["score"] == 1.0
    assert judge(SELECTION, ["p.a"], tool_calls=model_calls("a"))["score"] == 0.0
    barred = judge(SELECTION, ["a"], allow=False, tool_calls=model_calls("a", "b", "b"))
    assert (barred["score"], barred["additional"]) == (0.0, ["b"])
    assert barred["reason"] == "selected, but not expected: b"


def test_an_answer_that_called_nothing_chose_nothing_but_no_answer_tells_nothing() -> None:
    assert judge(SELECTION, ["a"], output_items=[{"role": "assistant", "content": "no"}])["score"] == 0.0
    unknown = judge(SELECTION, ["a"])
    assert (unknown["status"], unknown["error_code"]) == ("error", INDETERMINATE)
    assert judge(EXECUTION, ["a"], tool_calls=model_calls("a"))["error_code"] == INDETERMINATE


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([{"name": "p.f"}, "p.other"], "tool_calls[1] is text, expected an object with name and arguments"),
        ("abc", "tool_calls is text that is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ({}, "tool_calls is an object, expected a list of tool calls"),
        (5, "tool_calls is a number, expected a list of tool calls with name and arguments"),
        ([{"name": 5}], "tool_calls[0].name is a number, expected the name of a tool"),
    ],
)
def test_calls_that_are_no_list_of_calls_are_an_error(calls: object, message: str) -> None:
    row = judge(SELECTION, ["p.f"], tool_calls=calls)
    assert (row["error_code"], row["error_message"]) == ("bad_field", message)


def test_calls_of_chat_completions_are_read() -> None:
    calls = [{"type": "function", "function": {"name": "p-a", "arguments": "{}"}}]
    assert judge(SELECTION, ["p.a"], tool_calls=calls)["score"] == 1.0
    assert judge(SELECTION, ["p.b"], tool_calls=calls)["score"] == 0.0


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ([], "tool_evidence is a list, expected an object with selected_functions and executions"),
        (seen_as("abc"), "is text, expected a list of objects with plugin_name and function_name"),
        (seen_as(["p.a"]), "[0] is text; expected is a list of objects with plugin_name and function_name"),
        (seen_as([{"plugin_name": 1, "function_name": "a"}]), "[0].plugin_name is a number, expected text"),
        (seen_as([{"function_name": "a", "response_status": "200"}]), "response_status is text, expected"),
        (
            seen_as([{"function_name": "a", "response_status": True}]),
            "response_status is a boolean, expected",
        ),
    ],
)
def test_evidence_that_is_not_of_its_form_is_an_error(evidence: object, message: str) -> None:
    for name in (SELECTION, EXECUTION):
        row = judge(name, ["p.a"], tool_evidence=evidence)
        assert row["error_code"] == "bad_field"
        assert message in row["error_message"]


def test_a_status_may_be_written_with_a_point() -> None:
    evidence = seen_as([{"function_name": "a", "response_status": 200.0}])
    assert judge(EXECUTION, ["a"], tool_evidence=evidence)["score"] == 1.0


def test_the_evidence_says_why_it_is_missing() -> None:
    evidence = {"selected_functions": None, "executions": None, "evidence_error": "several artifacts"}
    for name in (SELECTION, EXECUTION):
        row = judge(name, ["p.a"], tool_evidence=evidence, tool_calls=model_calls("p.a"))
        assert (row["error_code"], row["error_message"]) == (INDETERMINATE, "several artifacts")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "calls"),
        ({"calls": []}, "at least 1 item"),
        ({"calls": [{"tool": {"plugin_name": "p"}}]}, "function_name"),
        ({"calls": [{"tool": {"plugin_name": "", "function_name": "f"}}]}, "at least 1 character"),
        ({"calls": [{"tool": {"function_name": "f"}}], "threshold": 0.5}, r"within 1$"),
    ],
)
@pytest.mark.parametrize("name", ["toolCallSelection", "tool_call_execution"])
def test_options_that_expect_nothing_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CATALOG.resolve(name, options)


def test_a_label_of_the_users_own_is_taken_and_options_come_back() -> None:
    options: dict[str, Any] = {"calls": [{"id": "first", **expect("p.a")}]}
    evaluation = CATALOG.resolve(SELECTION, options)
    assert CATALOG.resolve(SELECTION, json.loads(evaluation.options_json)) == evaluation


def decide(wanted: list[str], calls: list[str], allow: bool | None) -> float | None:
    """Judge the selection, or without `allow` the execution; None where the evidence does not decide."""
    options: dict[str, Any] = {"calls": [expect(call) for call in wanted]}
    fields = {"tool_evidence": json.dumps(see(*calls)), "tool_calls": None, "output_items": None}
    try:
        if allow is None:
            return judge_execution(ToolCallExecutionOptions(**options), fields).score
        chosen = ToolCallSelectionOptions(**options, allow_additional_calls=allow)
        return judge_selection(chosen, fields).score
    except CallError:
        return None


def fill(call: str) -> list[str]:
    """Return the call with every gap filled in every way that matters."""
    parts = zip(re.split("[.:]", call), (("p", "q", "z"), ("a", "b", "z"), ("200", "500")), strict=True)
    ways = [known if part == "?" else (part,) for part, known in parts]
    return ["{}.{}:{}".format(*way) for way in itertools.product(*ways)]


@given(CALLS, WANTED, st.sampled_from([True, False, None]))
def test_there_is_a_verdict_exactly_where_no_gap_can_change_it(
    calls: list[str], wanted: list[str], allow: bool | None
) -> None:
    told = calls if allow is None else [f"{call.partition(':')[0]}:200" for call in calls]
    every = {decide(wanted, list(filled), allow) for filled in itertools.product(*map(fill, told))}
    assert None not in every
    assert decide(wanted, told, allow) == (every.pop() if len(every) == 1 else None)


@given(JSON)
def test_no_form_of_evidence_crashes(value: object) -> None:
    for name in (SELECTION, EXECUTION):
        for row in (
            judge(name, ["p.a"], tool_evidence=value),
            judge(name, ["p.a"], tool_calls=value, output_items=[]),
        ):
            assert row["error_code"] in {None, INDETERMINATE, "bad_field"}
