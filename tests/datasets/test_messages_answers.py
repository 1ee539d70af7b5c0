"""Calls, texts and answers of canonical messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from assay.datasets.messages import (
    Calls,
    canonical_calls,
    find_answer,
    pick_calls,
    read_answer,
    read_message,
)

Message = dict[str, Any]

ASK: Message = {"role": "user", "content": "Where is order 17?"}
CALL: Message = {"type": "tool_call", "tool_call_id": "c1", "name": "track", "arguments": {"no": 17}}
CALLING: Message = {"role": "assistant", "content": [CALL]}
RESULT: Message = {"type": "tool_result", "tool_result": "found"}
TOOL: Message = {"role": "tool", "tool_call_id": "c1", "content": [RESULT]}
ANSWER: Message = {"role": "assistant", "content": [{"type": "text", "text": "At the port."}]}
SAID: Message = {"role": "assistant", "content": "At the port."}
FUNCTION: Message = {"name": "track", "arguments": '{"no": 17}'}
CHAT_CALL: Message = {"id": "c1", "type": "function", "function": FUNCTION}
CHAT_CALLING: Message = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
RESPONSES_CALL: Message = {"type": "function_call", "call_id": "c1", **FUNCTION}
REASONING: Message = {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "Look."}]}
SEARCH: Message = {"type": "web_search_call", "id": "w1", "status": "completed"}


@pytest.mark.parametrize(
    "value",
    [
        [CALL],
        CALL,
        json.dumps([CALL]),
        [CALLING],
        [{"id": "c1", "type": "function", "function": FUNCTION}],
        [{"id": "c1", "function": FUNCTION}],
        [RESPONSES_CALL],
        [{"tool_call_id": "c1", **FUNCTION}],
        [ASK, CHAT_CALLING, TOOL],
        [CALL | {"role": "assistant"}, RESULT | {"role": "tool"}],
    ],
)
def test_calls_of_every_form_are_the_same(value: Any) -> None:
    calls = canonical_calls(value)
    assert isinstance(calls, Calls)
    assert calls.items == [CALL]


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("track", "tool_calls is text that is not JSON: "),
        (5, "tool_calls is a number, expected a list of tool calls"),
        ([CALL, "track"], "tool_calls[1] is text, expected an object with name and arguments"),
        ([{"role": "user", "content": 5}], "tool_calls[0].content is a number, expected text"),
    ],
)
def test_what_is_no_list_of_calls_is_a_fault(value: Any, fault: str) -> None:
    found = canonical_calls(value)
    assert isinstance(found, str)
    assert found.startswith(fault)


def test_calls_of_unknown_types_stay() -> None:
    assert canonical_calls([SEARCH]) == Calls([SEARCH])
    assert canonical_calls([]) == Calls([])


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (ASK, ASK["content"]),
        (ANSWER, "At the port."),
        (
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "a"}, 5, {"type": "text", "text": "b"}],
            },
            "a\nb",
        ),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, "No."),
        ({"role": "assistant", "content": [{"type": "text", "text": None}, {"type": 5, "text": "a"}]}, None),
        (CALLING, None),
        ({"role": "assistant"}, None),
    ],
)
def test_text_of_a_message(message: Message, text: str | None) -> None:
    assert read_message(message) == text


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([SAID, TOOL, ANSWER], "At the port.\nAt the port."),
        ([CALLING, SAID], "At the port."),
        ([CALLING, TOOL], ""),
        ([{"role": "assistant", "content": [SEARCH]}], ""),
        ([{"role": "assistant", "content": [REASONING]}], None),
        ([ASK, TOOL], None),
        ([], None),
    ],
)
def test_an_answer_of_calls_alone_is_empty_and_silence_is_none(
    messages: list[Message], text: str | None
) -> None:
    assert read_answer(messages) == text


def test_the_answer_begins_behind_the_last_message_of_the_user() -> None:
    assert [find_answer(messages) for messages in ([ASK, SAID, ASK, CALLING], [SAID], [ASK], [])] == [
        3,
        0,
        1,
        0,
    ]
    assert pick_calls([CALLING, TOOL, ANSWER, CALLING]) == [CALL, CALL]
