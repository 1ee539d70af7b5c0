"""The chat over a real connection: answers, concurrency, learning, secrets."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.client import ModelChat, open_chat
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatReply, ChatRequest, Usage, text_message
from assay.contracts.json_text import parse_json
from assay.errors import AssayError, CallError

if TYPE_CHECKING:
    from tests.conftest import Loopback

HELLO = ChatRequest((text_message("user", "hello"),))
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1.10}'}}
USAGE = {
    "prompt_tokens": 30,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 10},
    "completion_tokens_details": {"reasoning_tokens": 15},
}

pytestmark = pytest.mark.usefixtures("api_key")


def open_to(loopback: Loopback, concurrency: int = 2) -> ModelChat:
    endpoint = Endpoint(model="m", base_url=loopback.base_url)
    return open_chat(endpoint, Traffic(RunConfig(datasets=(), concurrency=concurrency, timeout_s=20)))


async def complete(loopback: Loopback, request: ChatRequest = HELLO) -> ChatReply:
    async with open_to(loopback) as chat:
        return await chat.complete(request)


async def test_reply_holds_text_usage_and_latency(loopback: Loopback) -> None:
    loopback.script([{"reply": "hi ☃", "usage": USAGE}])
    reply = await complete(loopback)
    assert (reply.text, reply.model, reply.finish_reason) == ("hi ☃", "m", "stop")
    assert reply.usage == Usage(30, 20, 10, 15)
    assert reply.latency_ms > 0
    assert reply.attempts == 1


async def test_request_carries_only_what_was_asked(loopback: Loopback) -> None:
    await complete(loopback)
    messages = [{"role": "user", "content": "hello"}]
    assert loopback.requests[0]["body"] == {"model": "m", "messages": messages}
    assert [name for name in loopback.requests[0]["headers"] if name.startswith("x-")] == []
    params: dict[str, Any] = {"top_p": 0.25, "logit_bias": {"50256": -100}}
    asked = ChatRequest(HELLO.messages, 0.0, 0.5, 7, ("END",), 9, json_object=True, params=params)
    await complete(loopback, asked)
    assert loopback.requests[1]["body"] == {
        "model": "m",
        "messages": messages,
        "temperature": 0.0,
        "top_p": 0.25,
        "seed": 7,
        "stop": ["END"],
        "max_tokens": 9,
        "response_format": {"type": "json_object"},
        "logit_bias": {"50256": -100},
    }


async def test_numbers_keep_their_text(loopback: Loopback) -> None:
    params: dict[str, Any] = {"x": parse_json("1.10"), "n": 2**70}
    await complete(loopback, ChatRequest(HELLO.messages, params=params))
    sent = loopback.requests[0]["body"]
    assert (sent["x"], sent["n"]) == (1.1, 2**70)


async def test_an_answer_that_was_cut_off_is_asked_for_again_with_more_room(loopback: Loopback) -> None:
    cut = {"reply": "half", "finish": "length", "usage": USAGE}
    loopback.script([cut, {"reply": "whole", "usage": USAGE}])
    reply = await complete(loopback, ChatRequest(HELLO.messages, max_output_tokens=2000))
    assert (reply.text, reply.attempts, reply.usage.output_tokens) == ("whole", 2, 40)
    assert [request["body"]["max_tokens"] for request in loopback.requests] == [2000, 8000]


async def test_an_answer_that_stays_cut_off_is_an_error_with_its_text(loopback: Loopback) -> None:
    loopback.script([], after={"reply": "half", "finish": "length"})
    with pytest.raises(CallError, match=r"truncated.*finish_reason length") as caught:
        await complete(loopback, ChatRequest(HELLO.messages, max_output_tokens=5, fixed_budget=True))
    assert caught.value.reply
    assert caught.value.reply.text == "half"
    assert len(loopback.requests) == 1


async def test_tool_calls_without_content_are_an_answer(loopback: Loopback) -> None:
    loopback.script([{"reply": None, "tool_calls": [CALL], "finish": "tool_calls"}])
    reply = await complete(loopback)
    assert reply.text == ""
    assert reply.tool_calls_json == (
        '[{"type":"tool_call","tool_call_id":"c1","name":"find","arguments":{"n":1.10}}]'
    )


@pytest.mark.parametrize(
    ("step", "code", "part"),
    [
        ({"status": 200, "body": "<html>Sign in</html>"}, "html_body", "<html>Sign in</html>"),
        ({"status": 200, "body": {}}, "no_choices", "{}"),
        ({"status": 200, "body": {"choices": [], "usage": None}}, "no_choices", "no choices"),
        ({"status": 200, "body": {"choices": None}}, "no_choices", "no choices"),
        ({"status": 200, "body": {"choices": [{"message": None}]}}, "no_choices", "no choices"),
        ({"status": 200, "body": "[1]"}, "no_choices", "[1]"),
        ({"status": 200, "body": {"error": {"message": "upstream died"}}}, "error_body", "upstream died"),
        ({"status": 200, "body": {"error": "model failed"}}, "error_body", "model failed"),
        ({"reply": None, "refusal": "I will not"}, "refusal", "I will not"),
        ({"reply": "half", "finish": "content_filter"}, "content_filter", "content_filter"),
        ({"reply": ""}, "empty", "said nothing"),
        ({"reply": None}, "empty", "said nothing"),
    ],
)
async def test_status_200_without_an_answer_is_an_error(
    loopback: Loopback, step: dict[str, Any], code: str, part: str
) -> None:
    loopback.script([], after=step)
    with pytest.raises(CallError, match=code) as caught:
        await complete(loopback)
    assert caught.value.code == code
    assert part in caught.value.message
    assert len(loopback.requests) == 1


async def test_raw_body_in_a_message_is_shortened(loopback: Loopback) -> None:
    loopback.script([{"status": 200, "body": "<p>" + "x" * 5000}])
    with pytest.raises(CallError) as caught:
        await complete(loopback)
    assert len(caught.value.message) < 360


async def test_half_an_emoji_does_not_break_the_answer(loopback: Loopback) -> None:
    body = '{"choices":[{"message":{"content":"ok \\ud83d"}}]}'
    loopback.script([{"status": 200, "body": body}])
    assert (await complete(loopback)).text == "ok \ufffd"


async def test_no_more_requests_in_flight_than_allowed(loopback: Loopback) -> None:
    together = threading.Barrier(4, timeout=10)

    def meet(_: dict[str, Any]) -> dict[str, Any]:
        together.wait()
        return {"reply": "met"}

    loopback.script([], after=meet)
    async with open_to(loopback, 4) as chat:
        await asyncio.gather(*(chat.complete(HELLO) for _ in range(24)))
    assert len(loopback.requests) == 24
    assert loopback.most_in_flight == 4


REFUSALS = [
    (
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        {"temperature", "max_completion_tokens", "response_format"},
    ),
    (
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value.",
        {"max_tokens", "response_format"},
    ),
    ("'response_format.type' must be 'json_schema' or 'text'", {"temperature", "max_tokens"}),
]


@pytest.mark.parametrize(("complaint", "kept"), REFUSALS)
async def test_parameter_refused_once_is_adapted_for_the_whole_chat(
    loopback: Loopback, complaint: str, kept: set[str]
) -> None:
    loopback.script([{"status": 400, "body": {"error": {"message": complaint}}}])
    async with open_to(loopback) as chat:
        request = ChatRequest(HELLO.messages, 0.0, max_output_tokens=9, json_object=True)
        replies = [await chat.complete(request), await chat.complete(request)]
    assert [reply.attempts for reply in replies] == [2, 1]
    sent = [set(request["body"]) - {"model", "messages"} for request in loopback.requests]
    assert sent == [{"temperature", "max_tokens", "response_format"}, kept, kept]


async def test_complaint_about_a_value_is_not_read_as_a_refusal(loopback: Loopback) -> None:
    error = {"message": "must lie between 0 and 2", "param": "temperature"}
    loopback.script([], after={"status": 400, "body": {"error": error}})
    with pytest.raises(CallError, match="bad_request: 400: must lie between 0 and 2"):
        await complete(loopback, ChatRequest(HELLO.messages, 7.0))
    assert len(loopback.requests) == 1


@pytest.mark.parametrize("status", [200, 400, 401, 404, 500])
async def test_key_echoed_by_the_server_is_hidden(
    loopback: Loopback, api_key: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"error": {"message": f"key {api_key} is odd"}}
    loopback.script([], after={"status": status, "body": body, "headers": {"retry-after": "99"}})
    monkeypatch.setenv("OPENAI_BASE_URL", f"{loopback.base_url}?code={api_key}")
    async with open_chat(Endpoint(model="m"), Traffic(RunConfig(datasets=()))) as chat:
        with pytest.raises(AssayError, match=r"key \*\*\* is odd") as caught:
            await chat.complete(HELLO)
        assert api_key not in f"{caught.value!r} {chat!r} {chat.place!r}"
    assert f"code={api_key}" in loopback.requests[0]["path"]
    assert api_key not in json.dumps(loopback.requests[0]["headers"])
