"""The Responses API: what is sent, how its answers are read, and where it is on Azure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.client import open_chat
from assay.chat.responses import build_input
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatReply, ChatRequest, Usage, text_message
from assay.errors import CallError

if TYPE_CHECKING:
    from tests.conftest import Loopback

HELLO = ChatRequest((text_message("user", "hello"),))
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1.10}'}}
FOUND = '{"type":"tool_call","tool_call_id":"c1","name":"find","arguments":{"n":1.10}}'

pytestmark = pytest.mark.usefixtures("api_key")


async def complete(loopback: Loopback, request: ChatRequest = HELLO, **fields: Any) -> ChatReply:
    endpoint = Endpoint.model_validate({"model": "m", "base_url": loopback.base_url, **fields})
    traffic = Traffic(RunConfig(datasets=(), timeout_s=10))
    async with open_chat(endpoint.model_copy(update={"api": "responses"}), traffic) as chat:
        return await chat.complete(request)


def answer(*output: dict[str, Any], **more: Any) -> dict[str, Any]:
    body = {"model": "m-1", "status": "completed", "output": [*output], "usage": {"input_tokens": 4}, **more}
    return {"status": 200, "body": body}


def say(*texts: str) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text} for text in texts]}


async def test_a_system_message_becomes_the_instructions(loopback: Loopback) -> None:
    messages = (text_message("system", "Be brief."), *HELLO.messages)
    request = ChatRequest(messages, 0.5, 0.9, max_output_tokens=9, json_object=True, params={"store": False})
    await complete(loopback, request)
    assert loopback.requests[0]["path"] == "/v1/responses"
    assert loopback.requests[0]["body"] == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "hello"}],
        "temperature": 0.5,
        "top_p": 0.9,
        "max_output_tokens": 9,
        "text": {"format": {"type": "json_object"}},
        "store": False,
    }


def test_a_history_with_tools_and_images_becomes_items() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:x", "detail": "low"}}
    messages: list[Any] = [
        {"role": "user", "name": "a", "content": [{"type": "text", "text": "look"}, image]},
        {"role": "assistant", "content": "so", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "system", "content": "later"},
    ]
    assert build_input("m", ChatRequest(tuple(messages), seed=7, stop=("x",))) == {
        "model": "m",
        "input": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "look"},
                    {"type": "input_image", "image_url": "data:x", "detail": "low"},
                ],
            },
            {"role": "assistant", "content": "so"},
            {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"n": 1.10}'},
            {"type": "function_call_output", "call_id": "c1", "output": "found"},
            {"role": "system", "content": "later"},
        ],
    }


async def test_text_calls_and_usage_are_read(loopback: Loopback) -> None:
    usage = {
        "input_tokens": 30,
        "output_tokens": 20,
        "input_tokens_details": {"cached_tokens": 10},
        "output_tokens_details": {"reasoning_tokens": 15},
    }
    call = {"type": "function_call", "call_id": "c1", "name": "find", "arguments": '{"n": 1.10}'}
    loopback.script([answer(say("hel", "lo ☃"), say("you"), call, usage=usage)])
    reply = await complete(loopback)
    assert (reply.text, reply.model, reply.finish_reason) == ("hello ☃\nyou", "m-1", "tool_calls")
    assert reply.tool_calls_json == f"[{FOUND}]"
    assert reply.usage == Usage(30, 20, 10, 15)
    assert reply.output_items_json is None


async def test_what_is_more_than_text_and_calls_is_kept_as_a_message(loopback: Loopback) -> None:
    search = {"type": "web_search_call", "status": "completed", "action": {"query": "q"}}
    thought = {"type": "reasoning", "summary": [{"text": "so"}], "encrypted_content": "long"}
    empty: dict[str, Any] = {"type": "reasoning", "summary": []}
    loopback.script([answer(empty, thought, search, say("done"))])
    reply = await complete(loopback)
    assert json.loads(reply.output_items_json or "") == [
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "summary": [{"text": "so"}]},
                search,
                {"type": "text", "text": "done"},
            ],
        }
    ]


async def test_an_answer_with_nothing_but_empty_reasoning_beside_the_text_is_text(loopback: Loopback) -> None:
    loopback.script([answer({"type": "reasoning", "summary": []}, say("4"))])
    reply = await complete(loopback)
    assert (reply.text, reply.output_items_json, reply.finish_reason) == ("4", None, "stop")


async def test_an_incomplete_answer_is_asked_for_again_with_more_room(loopback: Loopback) -> None:
    loopback.script([{"reply": "ha", "finish": "length"}, {"reply": "whole"}])
    reply = await complete(loopback, ChatRequest(HELLO.messages, max_output_tokens=2000))
    assert (reply.text, reply.attempts, reply.usage) == ("whole", 2, Usage(6, 4))
    assert [request["body"]["max_output_tokens"] for request in loopback.requests] == [2000, 8000]


REFUSAL = {"type": "message", "content": [{"type": "refusal", "refusal": "I will not"}]}
FILTERED = {
    "status": "incomplete",
    "incomplete_details": {"reason": "content_filter"},
    "content_filters": [{"content_filter_results": {"violence": {"filtered": True}}}],
}
FAILED = {"status": "failed", "error": {"code": "invalid_prompt", "message": "bad prompt"}}


@pytest.mark.parametrize(
    ("step", "code", "part"),
    [
        (answer(REFUSAL), "refusal", "I will not"),
        (answer(say("half"), **FILTERED), "content_filter", "(filtered: violence)"),
        (answer(**FAILED), "error_body", "bad prompt"),
        (answer(status="failed"), "error_body", "status failed"),
        (answer(status="queued"), "error_body", "status queued"),
        (answer(), "empty", "said nothing"),
        ({"status": 200, "body": {"choices": [], "usage": {"input_tokens": 4}}}, "no_choices", "no output"),
    ],
)
async def test_an_answer_that_is_none_is_an_error_that_keeps_its_usage(
    loopback: Loopback, step: dict[str, Any], code: str, part: str
) -> None:
    loopback.script([], after=step)
    with pytest.raises(CallError) as caught:
        await complete(loopback)
    assert (caught.value.code, part in caught.value.message) == (code, True)
    assert caught.value.reply
    assert caught.value.reply.usage.input_tokens == 4
    assert len(loopback.requests) == 1


@pytest.mark.parametrize("ending", ["", "/openai/v1"])
async def test_azure_answers_at_both_of_its_routes(loopback: Loopback, ending: str) -> None:
    url = f"{loopback.azure_url}{ending}"
    reply = await complete(loopback, provider="azure", base_url=url, api_version="2025-04-01-preview")
    assert reply.text == "ok"
    assert loopback.requests[0]["path"].startswith(f"{ending or '/openai'}/responses")


async def test_a_parameter_refused_once_is_left_out(loopback: Loopback) -> None:
    error = {"message": "Unsupported parameter: 'temperature' is not supported.", "param": "temperature"}
    loopback.script([{"status": 400, "body": {"error": error}}])
    await complete(loopback, ChatRequest(HELLO.messages, 0.0, max_output_tokens=9))
    assert set(loopback.requests[1]["body"]) == {"model", "input", "max_output_tokens"}
