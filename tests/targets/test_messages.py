"""The way from Foundry messages to chat completions and from answers to items."""

from __future__ import annotations

from typing import Any

import pytest

from assay.contracts.json_text import dump_json
from assay.targets.messages import dump_items, list_calls, read_text, to_chat_messages

TEXT = {"type": "text", "text": "a"}
MORE = {"type": "output_text", "text": "b"}
CALL = {"type": "tool_call", "tool_call_id": "c1", "name": "find", "arguments": {"n": 1}}
ASK: dict[str, Any] = {"role": "user", "content": "go"}
CHAT_CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n":1}'}}


def convert(*messages: dict[str, Any]) -> list[dict[str, Any]]:
    """Convert messages that stand before a last one of the user, and drop that one."""
    converted = [dict(message) for message in to_chat_messages(dump_json([*messages, ASK]))]
    assert converted.pop() == ASK
    return converted


def test_messages_end_with_the_last_one_of_the_user() -> None:
    answer = {"role": "assistant", "content": "done"}
    assert to_chat_messages(dump_json([ASK, answer, ASK, answer])) == [ASK, answer, ASK]
    assert to_chat_messages(dump_json([answer])) == []


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_text_items_are_joined(role: str) -> None:
    assert convert({"role": role, "content": [TEXT, MORE]}) == [{"role": role, "content": "a\nb"}]


def test_tool_calls_and_results_become_those_of_the_api() -> None:
    results = [{"type": "tool_result", "tool_result": {"ok": True}}]
    converted = convert(
        {"role": "assistant", "content": [TEXT, CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": results},
    )
    assert converted == [
        {"role": "assistant", "content": "a", "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"ok":true}'},
    ]


def test_results_of_two_calls_in_one_message_become_two_messages() -> None:
    items = [
        {"type": "tool_result", "tool_call_id": call_id, "tool_result": call_id} for call_id in ("x", "y")
    ]
    converted = convert({"role": "tool", "content": items})
    assert [(entry["tool_call_id"], entry["content"]) for entry in converted] == [("x", "x"), ("y", "y")]


def test_items_without_a_message_are_wrapped_and_unknown_ones_dropped() -> None:
    converted = convert(
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"n":1}'},
        {"type": "function_call_output", "call_id": "c1", "output": "none"},
    )
    assert converted == [
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "none"},
    ]


def test_messages_of_the_api_pass_without_foreign_keys() -> None:
    calls = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "none"}
    assert convert({**calls, "createdAt": "now"}, result) == [calls, result]


def test_messages_of_other_dialects_are_converted_too() -> None:
    parts = [{"type": "text", "content": "a"}, {"type": "reasoning", "content": "b"}]
    said = {"role": "assistant", "parts": parts, "finish_reason": "stop"}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "none"}]}
    assert convert(said, result) == [
        {"role": "assistant", "content": "a"},
        {"role": "tool", "tool_call_id": "c1", "content": "none"},
    ]


def test_a_call_without_id_is_named_by_its_function_as_its_result_is() -> None:
    called = {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": '{"n":1}'}}
    call, result = convert(called, {"role": "function", "name": "find", "content": "none"})
    assert call["tool_calls"] == [CHAT_CALL | {"id": "call_find"}]
    assert result == {"role": "tool", "tool_call_id": "call_find", "content": "none"}


def test_a_message_that_the_api_has_nothing_of_is_left_out() -> None:
    assert convert({"role": "assistant", "content": [{"type": "reasoning", "summary": []}]}) == []


def test_images_stay_beside_their_text() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,x"}}
    converted = convert({"role": "user", "content": [{"type": "input_text", "text": "a"}, image]})
    assert converted == [{"role": "user", "content": [TEXT, image]}]


def test_answer_is_written_as_one_assistant_message() -> None:
    def wrap(*items: dict[str, Any]) -> str:
        return dump_json([{"role": "assistant", "content": list(items)}])

    assert dump_items("a", None) == wrap(TEXT)
    assert dump_items("a", dump_json([CALL])) == wrap(TEXT, CALL)
    assert dump_items("", dump_json([CALL])) == wrap(CALL)
    assert dump_items("", None) == wrap({"type": "text", "text": ""})


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([{"role": "assistant", "content": [TEXT, CALL, MORE]}], "a\nb"),
        ([{"role": "assistant", "content": "a"}, {"role": "tool", "content": [MORE]}], "a"),
        ([TEXT, MORE], "a\nb"),
        ([{"type": "message", "role": "assistant", "content": [MORE]}], "b"),
        ([{"role": "assistant", "content": [CALL]}], ""),
        ([{"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}], ""),
        ([{"role": "assistant", "parts": [{"type": "text", "content": "a"}]}], "a"),
        ([{"n": 1}, {"role": "assistant", "content": "a"}], "a"),
        ([], None),
        ({"role": "assistant"}, None),
    ],
)
def test_text_is_read_from_every_shape_of_items(items: Any, text: str | None) -> None:
    assert read_text(dump_json(items)) == text


def test_items_that_are_not_json_hold_no_answer() -> None:
    assert read_text("{") is None
    assert list_calls("{") is None
    assert list_calls(dump_json([TEXT])) is None
    assert list_calls(dump_json([{"role": "user", "content": "tool_call"}])) is None


def test_calls_are_listed_from_every_dialect() -> None:
    loose = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"n":1}'}
    part = {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"n": 1}}
    chat = {"role": "assistant", "tool_calls": [CHAT_CALL]}
    for entry in (
        {"role": "assistant", "content": [CALL]},
        chat,
        loose,
        {"role": "assistant", "parts": [part]},
    ):
        assert list_calls(dump_json([entry])) == dump_json([CALL])
