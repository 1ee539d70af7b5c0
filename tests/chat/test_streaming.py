"""Streams: the same replies as answers in one piece, and what breaks on the way."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.chat.client import open_chat
from assay.chat.completions import read_completion
from assay.chat.responses import read_response
from assay.chat.streaming import join_chunks, join_response, split_events
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatReply, ChatRequest, Usage, text_message
from assay.errors import CallError
from assay.testing.forms import build_chunks, build_completion, build_events, build_response

if TYPE_CHECKING:
    from tests.conftest import Loopback

HELLO = ChatRequest((text_message("user", "hello"),))
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1.10}'}}
FRAME: dict[str, Any] = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m"}

pytestmark = pytest.mark.usefixtures("api_key")


async def no_nap(_: float) -> None:
    return


async def complete(loopback: Loopback, api: str = "chat") -> ChatReply:
    fields = {"model": "m", "base_url": loopback.base_url, "api": api, "stream": True}
    traffic = Traffic(RunConfig(datasets=(), timeout_s=10), sleep=no_nap)
    async with open_chat(Endpoint.model_validate(fields), traffic) as chat:
        return await chat.complete(HELLO)


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {**FRAME, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


async def test_chunks_without_choices_are_no_trouble(loopback: Loopback) -> None:
    filters = {"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False}}}
    first = {"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [filters]}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    events = [first, chunk(role="assistant", content=""), chunk(content="Hel"), chunk(content="lo")]
    loopback.script([{"sse": [*events, chunk("stop"), {**FRAME, "choices": [], "usage": usage}]}])
    reply = await complete(loopback)
    assert (reply.text, reply.finish_reason, reply.model) == ("Hello", "stop", "m")
    assert reply.usage == Usage(3, 2)
    body = loopback.requests[0]["body"]
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


async def test_tool_calls_are_joined_by_index_and_told_apart_by_id(loopback: Loopback) -> None:
    def part(index: int | None, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
        function = {"name": name, "arguments": arguments}
        return chunk(tool_calls=[{"index": index, "id": call_id, "type": "function", "function": function}])

    parts = [part(0, "a", "f", ""), part(1, "b", "g", '{"y"'), part(0, None, None, '{"x":1}')]
    parts += [part(1, None, None, ":2}"), part(0, "c", "h", "{}"), part(None, "d", "i", "[]")]
    loopback.script([{"sse": [*parts, chunk("tool_calls")]}])
    calls = json.loads((await complete(loopback)).tool_calls_json or "")
    assert [(call["tool_call_id"], call["name"], call["arguments"]) for call in calls] == [
        ("a", "f", {"x": 1}),
        ("b", "g", {"y": 2}),
        ("c", "h", {}),
        ("d", "i", []),
    ]


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize(
    "step", [{"close": True}, {"reply": "a b c d", "cut": 3}, {"reply": "a b", "cut": 0}, {"sse": []}]
)
async def test_a_stream_that_breaks_off_is_asked_for_again(
    loopback: Loopback, api: str, step: dict[str, Any]
) -> None:
    loopback.script([{"done": False, **step}], after={"reply": "whole"})
    reply = await complete(loopback, api)
    assert (reply.text, reply.attempts) == ("whole", 2)


async def test_a_stream_that_ends_in_order_but_early_is_a_network_failure(loopback: Loopback) -> None:
    loopback.script([], after={"sse": [chunk(content="half")], "done": False})
    with pytest.raises(CallError, match="the stream ended before the answer did") as caught:
        await complete(loopback)
    assert caught.value.code == "network"
    assert len(loopback.requests) == 5


async def test_a_stream_whose_end_alone_is_lost_is_an_answer(loopback: Loopback) -> None:
    loopback.script([{"sse": [chunk(content="all"), chunk("stop")], "cut": 2}])
    assert (await complete(loopback)).text == "all"


async def test_a_mark_of_the_end_is_enough(loopback: Loopback) -> None:
    loopback.script([{"sse": [chunk(content="data: [DONE]"), chunk(content=" all")]}])
    assert (await complete(loopback)).text == "data: [DONE] all"


@pytest.mark.parametrize(
    ("error", "code", "requests"),
    [
        ({"message": "upstream died"}, "error_body", 1),
        ({"message": "overloaded", "code": 503}, "server_error", 20),
        ({"message": "filtered", "code": "content_filter"}, "content_filter", 1),
    ],
)
async def test_an_error_in_the_middle_of_a_stream_is_named(
    loopback: Loopback, error: dict[str, Any], code: str, requests: int
) -> None:
    loopback.script([], after={"sse": [chunk(content="half"), {"error": error}]})
    with pytest.raises(CallError, match=error["message"]) as caught:
        await complete(loopback)
    assert (caught.value.code, len(loopback.requests)) == (code, requests)


@pytest.mark.parametrize("kind", ["response.failed", "error"])
async def test_a_response_that_fails_on_the_way_is_named(loopback: Loopback, kind: str) -> None:
    begun: dict[str, Any] = {"type": "response.created", "response": {"status": "in_progress", "output": []}}
    error = {"code": "invalid_prompt", "message": "bad prompt"}
    failed: dict[str, Any] = {"status": "failed", "error": error, "output": []}
    last: dict[str, Any] = {"type": kind, **({"response": failed} if kind == "response.failed" else error)}
    loopback.script([], after={"sse": [begun, last], "done": False})
    with pytest.raises(CallError, match="error_body: status 200 with an error: bad prompt"):
        await complete(loopback, "responses")


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"status": 200, "body": "<html>Sign in</html>"}, "html_body"),
        ({"reply": None, "refusal": "I will not"}, "refusal"),
        ({"reply": "half", "finish": "content_filter"}, "content_filter"),
        ({"status": 200, "body": {"error": "upstream died"}}, "error_body"),
        ({"status": 400, "body": {"error": "no"}}, "bad_request"),
    ],
)
async def test_failures_have_the_names_they_have_without_a_stream(
    loopback: Loopback, api: str, step: dict[str, Any], code: str
) -> None:
    loopback.script([], after=step)
    with pytest.raises(CallError) as caught:
        await complete(loopback, api)
    assert caught.value.code == code


async def test_a_server_that_sends_one_body_all_the_same_is_understood(loopback: Loopback) -> None:
    whole = build_completion({"reply": "all"}, "m")
    loopback.script([{"status": 200, "body": whole}])
    assert (await complete(loopback)).text == "all"


async def test_usage_that_cannot_be_asked_for_is_not_asked_for_again(loopback: Loopback) -> None:
    error = {"message": "Unrecognized request argument supplied: stream_options"}
    loopback.script([{"status": 400, "body": {"error": error}}], after={"reply": "ok"})
    assert (await complete(loopback)).text == "ok"
    assert "stream_options" not in loopback.requests[1]["body"]


async def test_the_connection_of_a_stream_is_used_again(loopback: Loopback) -> None:
    fields = {"model": "m", "base_url": loopback.base_url, "stream": True}
    async with open_chat(Endpoint.model_validate(fields), Traffic(RunConfig(datasets=()))) as chat:
        for _ in range(3):
            await chat.complete(HELLO)
            await asyncio.sleep(0)
    assert loopback.connections == 1


async def test_a_server_that_holds_the_connection_after_the_end_is_not_waited_for() -> None:
    hold = asyncio.Event()

    async def dribble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
        for byte in write_events([chunk(content="all"), chunk("stop")], "\n") + b"data: [DONE]\n\n":
            writer.write(bytes([byte]))
            await writer.drain()
        await hold.wait()
        writer.close()

    async with await asyncio.start_server(dribble, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        endpoint = Endpoint(model="m", base_url=url, stream=True)
        async with open_chat(endpoint, Traffic(RunConfig(datasets=(), timeout_s=5))) as chat:
            assert (await chat.complete(HELLO)).text == "all"
        hold.set()


TEXTS = st.text(max_size=30)


def build_call(number: int, value: str) -> dict[str, Any]:
    function = {"name": f"tool_{number % 3}", "arguments": json.dumps({"v": value})}
    return {"id": f"call_{number}", "type": "function", "function": function}


def read_id(call: dict[str, Any]) -> str:
    return str(call["id"])


CALLS = st.lists(st.builds(build_call, st.integers(0, 99), TEXTS), max_size=3, unique_by=read_id)
USAGES = st.dictionaries(st.sampled_from(["prompt_tokens", "completion_tokens"]), st.integers(0, 9))
STEPS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "reply": st.one_of(st.none(), TEXTS),
        "tool_calls": CALLS,
        "finish": st.sampled_from(["stop", "length", "tool_calls"]),
        "usage": USAGES,
    }
)


def write_events(events: list[dict[str, Any]], end: str) -> bytes:
    head = f": note{end}event: x{end}data:"
    texts = (f"{head}{json.dumps(event, ensure_ascii=False)}{end}{end}" for event in events)
    return "".join(texts).encode("utf-8", "surrogatepass")


@given(STEPS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_completion_in_pieces_reads_as_the_one_in_one(step: dict[str, Any], end: str) -> None:
    whole = build_completion(step, "m")
    joined = join_chunks(split_events(write_events(build_chunks(whole), end)))
    assert read_completion(joined, "m", 1.0) == read_completion(whole, "m", 1.0)


@given(STEPS, st.booleans())
def test_a_response_in_pieces_reads_as_the_one_in_one(step: dict[str, Any], is_brief: bool) -> None:
    whole = build_response(step, "m")
    events = build_events(whole)
    if is_brief:  # as servers do that close with less than they sent
        events[-1] = {**events[-1], "response": {**whole, "output": []}}
    joined = join_response(split_events(write_events(events, "\n")))
    assert read_response(joined, "m", 1.0) == read_response(whole, "m", 1.0)
