from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from evaluators.catalog import find_evaluator
from evaluators.contract import Scale
from evaluators.tool_judges import EVALUATORS, NO_RESULTS
from evaluators.tool_trace import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    Score = Callable[..., pl.DataFrame]
    Script = Callable[..., Any]

GOOD = '{"reason": "as it should be", "score": 1}'
NAMES = [each.name for each in EVALUATORS]
OF_RESULTS = ["ToolOutputUtilization", "ToolCallSuccess"]


def call(name: str, call_id: str = "1", **arguments: object) -> dict[str, object]:
    return {"type": "tool_call", "tool_call_id": call_id, "name": name, "arguments": arguments}


def said(*content: object) -> dict[str, object]:
    return {"role": "assistant", "content": [*content]}


def got(result: object, call_id: str = "1") -> dict[str, object]:
    return {
        "role": "tool",
        "tool_call_id": call_id,
        "content": [{"type": "tool_result", "tool_result": result}],
    }


TRACE: list[dict[str, Any]] = [
    said(call("weather", city="Bern")),
    got({"sky": "blue"}),
    {"role": "assistant", "content": "Blue."},
]
TOOLS: list[dict[str, Any]] = [{"name": "weather", "description": "tells the sky", "parameters": {}}]
SHOWN = '[{"name":"weather","arguments":{"city":"Bern"},"result":{"sky":"blue"}}]'


def row_of(**fields: object) -> dict[str, list[str | None]]:
    told = {
        "query": "How is it?",
        "response": "Blue.",
        "output_items": TRACE,
        "tool_definitions": TOOLS,
    } | fields
    return {
        name: [value if value is None or isinstance(value, str) else json.dumps(value)]
        for name, value in told.items()
    }


def blocks(chat: Any) -> dict[str, str]:
    text = str(chat.requests[0].messages[1]["content"])
    return {
        name: held
        for name, _, held in re.findall(r"<(\w+)-([0-9a-f]{16})>\n(.*?)\n</\1-\2>", text, re.DOTALL)
    }


@pytest.mark.parametrize("name", NAMES)
def test_the_judge_sees_calls_with_results_and_what_surrounds_them(
    score: Score, scripted_chat: Script, name: str
) -> None:
    chat = scripted_chat(GOOD)
    row = score(name, row_of(messages='[{"role":"user","content":"Hi"}]'), chat).row(0, named=True)
    assert blocks(chat) == {
        "query": "How is it?",
        "messages": '[{"role":"user","content":"Hi"}]',
        "tool_calls": SHOWN,
        "tool_definitions": json.dumps(TOOLS),
        "response": "Blue.",
    }
    assert (row["score"], row["passed"], row["reason"]) == (
        1.0,
        name != "ToolCallAccuracy",
        "as it should be",
    )
    assert json.loads(row["details_json"]) == {"tool_calls": 1, "tool_results": 1}


def test_one_is_graded_and_four_are_decided() -> None:
    binary = (Scale(0.0, 1.0, whole=True), 1.0)
    found = {each.name: (each.scale, each.threshold) for each in EVALUATORS}
    assert found == {
        "ToolCallAccuracy": (Scale(1.0, 5.0), 3.0),
        "ToolSelection": binary,
        "ToolInputAccuracy": binary,
        "ToolOutputUtilization": binary,
        "ToolCallSuccess": binary,
    }
    assert find_evaluator("builtin.tool_selection") is find_evaluator("ToolSelection")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"output_items": None}, "no tool calls"),
        ({"output_items": [], "tool_calls": "[]"}, "no tool calls"),
        ({"output_items": TRACE[2:]}, "no tool calls"),
        ({"output_items": TRACE[:1]}, "an intermediate answer: it ends with a tool call that has no result"),
        (
            {
                "output_items": [
                    {"type": "mcp_approval_request", "id": "m", "name": "weather", "arguments": "{}"}
                ]
            },
            "an intermediate answer: it ends with a tool call that has no result",
        ),
        (
            {"output_items": [said(call("a"), call("weather"), call("b"), call("a")), got(1)]},
            "not among the tool definitions: a, b",
        ),
    ],
)
def test_what_cannot_be_judged_is_skipped_with_its_reason(
    score: Score, scripted_chat: Script, name: str, fields: dict[str, object], reason: str
) -> None:
    chat = scripted_chat(GOOD)
    row = score(name, row_of(**fields), chat).row(0, named=True)
    assert (row["status"], row["reason"], row["score"], row["passed"]) == ("skipped", reason, None, None)
    assert chat.requests == []


@pytest.mark.parametrize("name", NAMES)
def test_calls_without_results_are_judged_but_for_their_results(
    score: Score, scripted_chat: Script, name: str
) -> None:
    rows = row_of(output_items=None, tool_calls=[call("weather", city="Bern")])
    row = score(name, rows, scripted_chat(GOOD)).row(0, named=True)
    skipped = (row["status"], row["reason"]) == ("skipped", NO_RESULTS)
    assert skipped == (name in OF_RESULTS)
    assert (row["status"] == "ok") == (name not in OF_RESULTS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("response", ["", " \n", None])
def test_a_blank_answer_keeps_no_judge_from_the_calls(
    score: Score, scripted_chat: Script, name: str, response: str | None
) -> None:
    chat = scripted_chat(GOOD)
    row = score(name, row_of(response=response, output_items=TRACE[:2]), chat).row(0, named=True)
    assert row["status"] == "ok"
    assert "response" not in blocks(chat)


def test_success_needs_no_question_and_the_others_do(score: Score, scripted_chat: Script) -> None:
    reasons = {name: score(name, row_of(query=None), scripted_chat(GOOD))["reason"][0] for name in NAMES}
    assert reasons.pop("ToolCallSuccess") == "as it should be"
    assert set(reasons.values()) == {"no query"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("grade", ["null", "true", "6", "-1", "[1]", '"good"'])
def test_a_grade_that_is_none_is_asked_for_again_and_then_an_error(
    score: Score, scripted_chat: Script, name: str, grade: str
) -> None:
    chat = scripted_chat(f'{{"reason": "x", "score": {grade}}}')
    row = score(name, row_of(), chat).row(0, named=True)
    assert (row["error_code"], row["score"], len(chat.requests)) == ("unparseable", None, 2)


def test_half_a_point_is_no_decision(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat('{"reason": "x", "score": 0.5}', GOOD)
    row = score("ToolSelection", row_of(), chat).row(0, named=True)
    assert row["score"] == 1.0
    assert json.loads(row["details_json"])["asked_again"] == "`score` is off the scale 0..1 in whole numbers"


@pytest.mark.parametrize(
    ("definitions", "calls", "known"),
    [
        ([], [call("any")], True),
        (None, [call("any")], True),
        ({"name": "any"}, [call("any")], True),
        ([{"type": "function", "function": {"name": "any"}}], [call("any")], True),
        ([{"type": "openapi", "functions": [{"name": "any"}]}], [call("any")], True),
        (
            [{"type": "web_search_preview"}],
            [{"type": "web_search_call", "id": "w", "status": "completed"}],
            True,
        ),
        ([{"type": "mcp", "server_label": "s"}], [{"type": "mcp_call", "name": "any", "output": "x"}], True),
        ([{"type": "function", "name": "web"}], [{"type": "web_search_call", "id": "w"}], False),
        ([{"name": "Any"}], [call("any")], False),
    ],
)
def test_a_tool_is_defined_by_its_name_or_by_its_kind(
    score: Score, scripted_chat: Script, definitions: object, calls: list[object], known: bool
) -> None:
    rows = row_of(output_items=[said(*calls), TRACE[2]], tool_definitions=definitions)
    assert score("ToolSelection", rows, scripted_chat(GOOD))["status"][0] == ("ok" if known else "skipped")


@pytest.mark.parametrize(
    ("items", "calls", "steps"),
    [
        ([said(call("a", "1"), call("b", "2")), got(2, "2"), got(1, "1")], None, [("a", 1), ("b", 2)]),
        ([said(call("a"))], [call("b")], [("a", None)]),
        ([got("late", "7"), said("text")], [call("b", "7"), call("c", "8")], [("b", "late"), ("c", None)]),
        ([said(call("a")), got("x", "other")], None, [("a", None), (None, "x")]),
        ([said({"type": "mcp_call", "name": "m", "output": "done"})], None, [("m", "done")]),
        ([said({"type": "file_search_call", "id": "f", "results": [1]})], None, [("file_search_call", [1])]),
        (None, [{"function": {"name": "f", "arguments": '{"x":1}'}, "output": "o"}], [("f", "o")]),
    ],
)
def test_a_result_goes_with_its_call_and_none_is_lost(
    items: object, calls: object, steps: list[tuple[str | None, object]]
) -> None:
    fields = {"output_items": items, "tool_calls": calls}
    trace = read_trace({name: None if value is None else json.dumps(value) for name, value in fields.items()})
    assert [(step.name, step.result) for step in trace.steps] == steps


@pytest.mark.parametrize("field", ["output_items", "tool_definitions"])
def test_a_field_of_another_form_is_an_error_of_its_row(
    score: Score, scripted_chat: Script, field: str
) -> None:
    row = score("ToolSelection", row_of(**{field: '"text"'}), scripted_chat(GOOD)).row(0, named=True)
    assert row["error_code"] == "bad_field"
    assert field in row["error_message"]
