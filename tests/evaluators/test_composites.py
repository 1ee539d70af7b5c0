from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from evaluators.catalog import find_evaluator
from evaluators.composites import OUTPUT, TOOLS, build_question
from evaluators.groundedness import NO_SOURCE
from evaluators.prompt_files import read_prompt
from evaluators.tool_judges import NO_RESULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    Score = Callable[..., pl.DataFrame]
    Script = Callable[..., Any]

GRADED = ("fluency", "coherence", "intent_resolution", "groundedness", "tool_call_accuracy")
OF_RESULTS = ("tool_output_utilization", "tool_call_success")
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": [{"type": "tool_call", "tool_call_id": "1", "name": "w", "arguments": {}}],
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": [{"type": "tool_result", "tool_result": "blue"}]}
SAID = {"role": "assistant", "content": "It is blue."}
TRACE = json.dumps([CALL, RESULT, SAID])
STEPS = '[{"name":"w","arguments":{},"result":"blue"}]'
ROW = {"query": ["q"], "response": ["r"]}


def reply(members: Sequence[str], **grades: object) -> str:
    best = {name: 5 if name in GRADED else 1 for name in members}
    parts = {name: {"reason": f"so is {name}", "score": grade} for name, grade in (best | grades).items()}
    return json.dumps({"criteria": parts})


def blocks(chat: Any) -> dict[str, str]:
    text = str(chat.requests[0].messages[1]["content"])
    return {
        name: held
        for name, _, held in re.findall(r"<(\w+)-([0-9a-f]{16})>\n(.*?)\n</\1-\2>", text, re.DOTALL)
    }


def result_of(name: str, grade: float | None, result: str, reason: str) -> dict[str, object]:
    status = "skipped" if grade is None else "completed"
    parts = {"score": grade, "result": result, "reason": reason, "status": status}
    return {f"{name}_{part}": value for part, value in parts.items()}


def test_an_answer_passes_when_all_members_pass_in_one_call(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(reply(OUTPUT.members, fluency=3, groundedness=3))
    rows = ROW | {"context": ["c"], "output_items": [TRACE], "tool_definitions": ["[]"], "messages": ["[]"]}
    row = score("OutputQuality", rows, chat).row(0, named=True)
    assert (row["score"], row["passed"], row["threshold"], len(chat.requests)) == (1.0, True, 1.0, 1)
    assert row["reason"] == f"all that apply pass: {', '.join(OUTPUT.members)}"
    shown = {"query": "q", "response": "r", "messages": "[]", "output_items": TRACE, "tool_definitions": "[]"}
    assert blocks(chat) == shown | {"source": "c"}
    expected: dict[str, object] = {"source": "context"}
    for name in OUTPUT.members:
        grade = 3.0 if name in {"fluency", "groundedness"} else 5.0 if name in GRADED else 1.0
        expected |= result_of(name, grade, "pass", f"so is {name}")
    assert json.loads(row["details_json"]) == expected


@pytest.mark.parametrize("name", OUTPUT.members)
def test_one_member_below_its_threshold_fails_the_answer(
    score: Score, scripted_chat: Script, name: str
) -> None:
    low = 2 if name in GRADED else 0
    chat = scripted_chat(reply(OUTPUT.members, **{name: low}))
    row = score("builtin.output_quality", ROW | {"context": ["c"]}, chat).row(0, named=True)
    assert (row["score"], row["passed"]) == (0.0, False)
    assert row["reason"] == f"{name} {low}: so is {name}"
    details = json.loads(row["details_json"])
    assert [key for key, value in details.items() if value == "fail"] == [f"{name}_result"]


def test_without_a_source_groundedness_is_left_out(score: Score, scripted_chat: Script) -> None:
    asked = [name for name in OUTPUT.members if name != "groundedness"]
    chat = scripted_chat(reply(asked))
    row = score("OutputQuality", ROW, chat).row(0, named=True)
    assert (row["score"], row["passed"]) == (1.0, True)
    assert blocks(chat) == {"query": "q", "response": "r"}
    assert chat.requests[0].json_schema["properties"]["criteria"]["required"] == asked
    details = json.loads(row["details_json"])
    skipped = result_of("groundedness", None, "not_applicable", f"Not applicable: {NO_SOURCE}")
    assert details.items() >= (skipped | {"source": None}).items()
    assert "groundedness" not in row["reason"]
    assert row["prompt_sha"] == build_question(OUTPUT, tuple(asked)).sha


def test_tool_results_are_a_source_and_an_intermediate_answer_is_skipped(
    score: Score, scripted_chat: Script
) -> None:
    chat = scripted_chat(reply(OUTPUT.members))
    rows = {"query": ["q", "q"], "response": ["r", ""], "output_items": [TRACE, json.dumps([CALL])]}
    result = score("OutputQuality", rows, chat)
    assert result["status"].to_list() == ["ok", "skipped"]
    assert blocks(chat)["source"] == STEPS
    assert (json.loads(result["details_json"][0])["source"], len(chat.requests)) == ("tool_results", 1)


def test_use_of_tools_passes_when_all_members_pass_in_one_call(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(reply(TOOLS.members, tool_call_accuracy=3))
    rows = {"query": ["q"], "response": [""], "output_items": [TRACE], "tool_definitions": ['[{"name":"w"}]']}
    row = score("ToolUseQuality", rows, chat).row(0, named=True)
    assert (row["score"], row["passed"], len(chat.requests)) == (1.0, True, 1)
    assert blocks(chat) == {"query": "q", "tool_calls": STEPS, "tool_definitions": '[{"name":"w"}]'}
    details = json.loads(row["details_json"])
    assert {name: details[f"{name}_result"] for name in TOOLS.members} == dict.fromkeys(TOOLS.members, "pass")
    assert details["tool_call_accuracy_score"] == 3.0


@pytest.mark.parametrize("name", TOOLS.members)
def test_one_member_below_its_threshold_fails_the_use_of_tools(
    score: Score, scripted_chat: Script, name: str
) -> None:
    low = 2 if name in GRADED else 0
    chat = scripted_chat(reply(TOOLS.members, **{name: low}))
    row = score("builtin.tool_use_quality", ROW | {"output_items": [TRACE]}, chat).row(0, named=True)
    assert (row["score"], row["passed"], row["reason"]) == (0.0, False, f"{name} {low}: so is {name}")


def test_calls_without_results_leave_out_the_judges_of_results(score: Score, scripted_chat: Script) -> None:
    asked = [name for name in TOOLS.members if name not in OF_RESULTS]
    chat = scripted_chat(reply(asked, tool_selection=0))
    row = score("ToolUseQuality", ROW | {"tool_calls": ['[{"name":"w","arguments":{}}]']}, chat).row(
        0, named=True
    )
    assert (row["score"], row["reason"]) == (0.0, "tool_selection 0: so is tool_selection")
    details = json.loads(row["details_json"])
    for name in OF_RESULTS:
        skipped = result_of(name, None, "not_applicable", f"Not applicable: {NO_RESULTS}")
        assert details.items() >= skipped.items()
    assert chat.requests[0].json_schema["properties"]["criteria"]["required"] == asked


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({}, "no tool calls"),
        ({"output_items": [json.dumps([CALL])]}, "an intermediate answer"),
        (
            {"output_items": [TRACE], "tool_definitions": ['[{"name":"v"}]']},
            "not among the tool definitions: w",
        ),
    ],
)
def test_use_of_tools_is_skipped_where_no_member_applies(
    score: Score, scripted_chat: Script, fields: dict[str, list[str]], reason: str
) -> None:
    chat = scripted_chat(reply(TOOLS.members))
    row = score("ToolUseQuality", ROW | fields, chat).row(0, named=True)
    assert (row["status"], row["score"], row["passed"], chat.requests) == ("skipped", None, None, [])
    assert row["reason"].startswith(reason)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (reply(TOOLS.members[1:]), "no object under `tool_call_accuracy`"),
        (reply(TOOLS.members, tool_call_accuracy=6), "`tool_call_accuracy`: `score` is off the scale 1..5"),
        (
            reply(TOOLS.members, tool_selection=0.5),
            "`tool_selection`: `score` is off the scale 0..1 in whole",
        ),
        (reply(TOOLS.members, tool_selection=None), "`tool_selection`: no number under `score`"),
        (reply(TOOLS.members, tool_call_success="yes"), "`tool_call_success`: no number under `score`"),
        ('{"score": 1}', "no JSON object with `criteria`"),
    ],
)
def test_a_member_without_a_grade_leaves_no_verdict(
    score: Score, scripted_chat: Script, said: str, told: str
) -> None:
    chat, rows = scripted_chat(said), ROW | {"output_items": [TRACE]}
    row = score("ToolUseQuality", rows, chat).row(0, named=True)
    assert (row["error_code"], row["score"], len(chat.requests)) == ("unparseable", None, 2)
    assert row["error_message"].startswith(told)
    assert score("ToolUseQuality", rows, scripted_chat(said, reply(TOOLS.members)))["score"].to_list() == [
        1.0
    ]


def test_members_are_told_what_they_are_told_alone_and_pass_where_they_pass_alone() -> None:
    for composite in (OUTPUT, TOOLS):
        told = build_question(composite, composite.members).text
        for name in composite.members:
            prompt = read_prompt(name)
            assert f"# Criterion `{name}`\n\n{prompt.text}" in told
            assert prompt.head.passes_at == (3.0 if name in GRADED else 1.0)
            assert find_evaluator(name).threshold == prompt.head.passes_at


def test_a_blank_answer_is_an_error_of_output_quality(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(reply(OUTPUT.members))
    row = score("OutputQuality", ROW | {"response": [" "], "context": ["c"]}, chat).row(0, named=True)
    assert (row["error_code"], chat.requests) == ("empty_response", [])
