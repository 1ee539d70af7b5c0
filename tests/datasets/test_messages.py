"""Messages of four dialects in one canonical form."""

from __future__ import annotations

from typing import Any

import pytest

from assay.contracts.json_text import parse_json
from assay.datasets.messages import (
    Canonical,
    canonical_messages,
    dump_values,
)

Message = dict[str, Any]
NOTHING: Message = {}

SYSTEM: Message = {"role": "system", "content": "You serve customers of Kessalo."}
RULES: Message = {"role": "developer", "content": "Be brief."}
ASK: Message = {"role": "user", "content": "Where is order 17?"}
CALL: Message = {"type": "tool_call", "tool_call_id": "c1", "name": "track", "arguments": {"no": 17}}
CALLING: Message = {"role": "assistant", "content": [CALL]}
RESULT: Message = {"type": "tool_result", "tool_result": '{"at": "port"}'}
TOOL: Message = {"role": "tool", "tool_call_id": "c1", "content": [RESULT]}
ANSWER: Message = {"role": "assistant", "content": [{"type": "text", "text": "At the port."}]}
SAID: Message = {"role": "assistant", "content": "At the port."}
FUNCTION: Message = {"name": "track", "arguments": '{"no": 17}'}
RESPONSES_CALL: Message = {"type": "function_call", "call_id": "c1", **FUNCTION}
RESPONSES_RESULT: Message = {"type": "function_call_output", "call_id": "c1", "output": '{"at": "port"}'}
REASONING: Message = {"type": "reasoning", "id": "r1", "summary": [{"type": "summary_text", "text": "Look."}]}
SEARCH: Message = {"type": "web_search_call", "id": "w1", "status": "completed"}

CHAT = [
    SYSTEM,
    RULES,
    ASK,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"at": "port"}'},
    SAID,
]
RESPONSES = [
    SYSTEM,
    RULES,
    ASK,
    RESPONSES_CALL,
    RESPONSES_RESULT,
    {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "At the port."}]},
]
OTEL = [
    {"role": "system", "parts": [{"type": "text", "content": SYSTEM["content"]}]},
    {"role": "developer", "parts": [{"type": "text", "content": RULES["content"]}]},
    {"role": "user", "parts": [{"type": "text", "content": ASK["content"]}]},
    {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "track", "arguments": {"no": 17}}],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": '{"at": "port"}'}]},
    {"role": "assistant", "parts": [{"type": "text", "content": "At the port."}], "finish_reason": "stop"},
]


def read(value: Any) -> list[Message]:
    canonical = canonical_messages(value)
    assert isinstance(canonical, Canonical), canonical
    return canonical.messages


def convert(*entries: Message) -> tuple[list[Message], tuple[str, ...]]:
    canonical = canonical_messages(list(entries))
    assert isinstance(canonical, Canonical), canonical
    return canonical.messages, canonical.conversions


def as_items(message: Message) -> Message:
    return message | {"content": [{"type": "text", "text": message["content"]}]}


def test_foundry_messages_are_canonical_as_they_are() -> None:
    foundry = [SYSTEM, RULES, as_items(ASK), CALLING, TOOL, ANSWER]
    assert convert(*foundry) == (foundry, ())


def test_chat_completions_become_the_same_conversation() -> None:
    assert convert(*CHAT) == (
        [SYSTEM, RULES, ASK, CALLING, TOOL, SAID],
        ("chat-completions tool_calls", "tool arguments given as text", "chat-completions tool message"),
    )


def test_items_of_the_responses_api_become_the_same_conversation() -> None:
    assert convert(*RESPONSES) == (
        [SYSTEM, RULES, ASK, CALLING, TOOL, ANSWER],
        (
            "Responses function_call",
            "tool arguments given as text",
            "Responses function_call_output",
            "Responses message",
        ),
    )


def test_otel_messages_become_the_same_conversation() -> None:
    messages, conversions = convert(*OTEL)
    assert messages == [
        *map(as_items, (SYSTEM, RULES, ASK)),
        CALLING,
        TOOL,
        ANSWER | {"finish_reason": "stop"},
    ]
    assert conversions == ("OTel parts",)


def test_items_without_a_message_are_gathered_in_order() -> None:
    message = {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}],
    }
    other = RESPONSES_CALL | {"call_id": "c2", "id": "f2"}
    result = RESPONSES_RESULT | {"call_id": "c2"}
    read_result = TOOL | {"tool_call_id": "c2"}
    messages, _ = convert(ASK, REASONING, RESPONSES_CALL, other, RESPONSES_RESULT, result, SEARCH, message)
    assert messages == [
        ASK,
        {"role": "assistant", "content": [REASONING, CALL, CALL | {"tool_call_id": "c2", "id": "f2"}]},
        TOOL,
        read_result,
        {"role": "assistant", "content": [SEARCH]},
        {"role": "assistant", "content": [{"type": "output_text", "text": "a"}], "id": "m1"},
    ]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (
            {"type": "input_text", "text": "a"},
            {"role": "user", "content": [{"type": "input_text", "text": "a"}]},
        ),
        (RESULT | {"tool_call_id": "c1"}, TOOL),
        (RESULT, {"role": "tool", "content": [RESULT]}),
        (CALL | {"role": "assistant"}, CALLING),
        (RESPONSES_RESULT | {"role": "assistant"}, TOOL),
        ({"type": "message", "content": "a"}, {"role": "assistant", "content": "a"}),
        ({"type": "news", "n": 1}, {"role": "assistant", "content": [{"type": "news", "n": 1}]}),
        (
            {"type": "computer_call_output", "call_id": "c1", "output": NOTHING},
            TOOL | {"content": [{"type": "computer_call_output", "call_id": "c1", "output": NOTHING}]},
        ),
        (
            {"type": "custom_tool_call", "call_id": "c1", "name": "run", "input": "ls"},
            {"role": "assistant", "content": [CALL | {"name": "run", "arguments": "ls"}]},
        ),
        ({"type": "custom_tool_call_output", "call_id": "c1", "output": RESULT["tool_result"]}, TOOL),
    ],
)
def test_an_item_alone_belongs_to_whom_its_type_says(item: Message, message: Message) -> None:
    assert read([item]) == [message]


@pytest.mark.parametrize(
    ("entry", "messages", "conversion"),
    [
        ({"role": "assistant", "content": None}, [{"role": "assistant"}], "null content"),
        (
            {"role": "assistant", "content": None, "refusal": "No."},
            [{"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}],
            "chat-completions refusal",
        ),
        (
            {"role": "assistant", "content": None, "function_call": FUNCTION},
            [{"role": "assistant", "content": [{k: v for k, v in CALL.items() if k != "tool_call_id"}]}],
            "chat-completions function_call",
        ),
        (
            {"role": "function", "name": "track", "content": '{"at": "port"}'},
            [{"role": "tool", "content": [RESULT], "name": "track"}],
            "chat-completions function message",
        ),
        (
            {"role": "assistant", "content": {"type": "text", "text": "At the port."}},
            [ANSWER],
            "a content item",
        ),
        (
            {"role": "assistant", "content": ["a"]},
            [as_items({"role": "assistant", "content": "a"})],
            "texts among",
        ),
        ({"role": "user", "content": [RESULT], "tool_call_id": "c1"}, [TOOL], "tool results outside"),
        ({"role": "assistant", "content": [RESPONSES_CALL]}, [CALLING], "Responses function_call"),
        (
            {"role": "assistant", "content": [{"type": "openapi_call"} | CALL | {"type": "openapi_call"}]},
            [CALLING],
            "openapi_call items",
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_call", "tool_call": {"id": "c1", "function": FUNCTION}}],
            },
            [CALLING],
            "nested tool_call items",
        ),
        (
            {"role": "tool", "call_id": "c1", "content": RESULT["tool_result"]},
            [TOOL],
            "chat-completions tool message",
        ),
    ],
)
def test_other_spellings(entry: Message, messages: list[Message], conversion: str) -> None:
    converted, conversions = convert(entry)
    assert converted == messages
    assert [name for name in conversions if name.startswith(conversion)]


def test_text_beside_calls_comes_first_and_an_empty_one_is_none() -> None:
    calls = [{"id": "c1", "type": "function", "function": FUNCTION}]
    assert read([{"role": "assistant", "content": "Wait.", "tool_calls": calls}]) == [
        {"role": "assistant", "content": [{"type": "text", "text": "Wait."}, CALL]}
    ]
    assert read([{"role": "assistant", "content": "", "tool_calls": calls}]) == [CALLING]


@pytest.mark.parametrize("value", ["plain", 7, False, {"a": 1}, [1, 2], [{"city": "Ulm"}], ["a"]])
def test_a_tool_message_without_items_is_its_result_as_it_was(value: Any) -> None:
    tool = {"role": "tool", "tool_call_id": "c1"}
    result = [{"type": "tool_result", "tool_result": value}]
    assert read([tool | {"content": value}]) == [tool | {"content": result}]


def test_text_items_of_a_tool_message_are_results() -> None:
    tool = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "text", "text": RESULT["tool_result"]}],
    }
    assert read([tool]) == [TOOL]


def test_results_of_several_calls_become_messages_of_their_own() -> None:
    parts: list[Message] = [
        {"type": "text", "content": "Look:"},
        {"type": "tool_call_response", "id": "x", "result": 1},
        {"type": "tool_call_response", "id": "y", "response": None},
    ]
    assert read([{"role": "user", "parts": parts, "name": "Bo"}]) == [
        {"role": "user", "content": [{"type": "text", "text": "Look:"}], "name": "Bo"},
        {"role": "tool", "tool_call_id": "x", "content": [{"type": "tool_result", "tool_result": 1}]},
        {"role": "tool", "tool_call_id": "y", "content": [{"type": "tool_result", "tool_result": None}]},
    ]


@pytest.mark.parametrize("arguments", ["", "track", "[1]", "{", '{"a": NaN}', {"a": "{}"}, None, 5])
def test_arguments_that_are_no_text_of_an_object_stay(arguments: Any) -> None:
    entry = {"role": "assistant", "content": [CALL | {"arguments": arguments}]}
    assert convert(entry) == ([entry], ())


def test_what_is_not_known_is_kept_behind_what_is() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,x"}}
    call = {"x": 1, "index": 0, "id": "c1", "type": "function", "function": {**FUNCTION, "strict": True}}
    entry = {"id": "m1", "tool_calls": [call], "content": [image], "role": "assistant", "annotations": []}
    (message,) = read([entry])
    assert list(message) == ["role", "content", "id", "annotations"]
    assert message["content"] == [image, CALL | {"x": 1, "index": 0, "strict": True}]
    assert list(message["content"][1])[:4] == ["type", "tool_call_id", "name", "arguments"]
    assert read([{"role": "critic", "content": "a", "score": 1}]) == [
        {"role": "critic", "content": "a", "score": 1}
    ]


def test_numbers_keep_their_text() -> None:
    text = (
        '[{"role":"assistant","tool_calls":[{"id":"c1","function":{"arguments":"{\\"n\\":1.50}"}}],"x":2.0}]'
    )
    messages = read(parse_json(text))
    assert dump_values(messages) == (
        '[{"role":"assistant","content":[{"type":"tool_call","tool_call_id":"c1","arguments":{"n":1.50}}],"x":2.0}]'
    )


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("Hi", "messages is text, expected a list of messages with role and content"),
        ({"role": "user"}, "messages is an object, expected a list"),
        (None, "messages is null, expected a list"),
        ([], "messages is empty; at least one message is expected"),
        ([ASK, "Hi"], "messages[1] is text, expected an object with role and content"),
        ([ASK, {"content": "a"}], "messages[1] has neither role nor type"),
        ([{"role": 5, "content": "a"}], "messages[0].role is a number, expected text"),
        (
            [{"role": "user", "content": 5}],
            "messages[0].content is a number, expected text, a list of items or null",
        ),
        ([{"role": "user", "content": {"a": 1}}], "messages[0].content is an object, expected"),
        ([{"role": "user", "parts": "a"}], "messages[0].parts is text, expected a list"),
        (
            [{"role": "assistant", "tool_calls": {"id": 1}}],
            "messages[0].tool_calls is an object, expected a list",
        ),
        (
            [{"role": "assistant", "tool_calls": [1]}],
            "messages[0].tool_calls[0] is a number, expected an object",
        ),
    ],
)
def test_what_is_no_list_of_messages_is_a_fault_with_its_place(value: Any, fault: str) -> None:
    found = canonical_messages(value)
    assert isinstance(found, str)
    assert found.startswith(fault)
