"""Failures over a real connection: what is retried, how long, and what the error says."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.client import ModelChat, open_chat
from assay.chat.retry import MAX_ATTEMPTS
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatReply, ChatRequest, text_message
from assay.errors import AssayError, CallError, EndpointError

if TYPE_CHECKING:
    from tests.conftest import Loopback

HELLO = ChatRequest((text_message("user", "hello"),))
LIMITED = {"error": {"message": "rate limited", "type": "tokens", "code": "429"}}
GONE = {"error": {"message": "No such deployment.", "code": "DeploymentNotFound"}}

pytestmark = pytest.mark.usefixtures("api_key")


class Naps(list[float]):
    """Records delays instead of waiting."""

    async def take(self, seconds: float) -> None:
        self.append(seconds)


def open_to(url: str, naps: Naps | None = None, timeout_s: float = 10) -> ModelChat:
    config = RunConfig(datasets=(), concurrency=2, timeout_s=timeout_s)
    sleep = (Naps() if naps is None else naps).take
    return open_chat(Endpoint(model="m", base_url=url), Traffic(config, sleep=sleep))


async def complete(
    loopback: Loopback, naps: Naps | None = None, timeout_s: float = 10, calls: int = 1
) -> list[ChatReply | AssayError]:
    """Make calls one after another and return what each gave."""
    outcomes: list[ChatReply | AssayError] = []
    async with open_to(loopback.base_url, naps, timeout_s) as chat:
        for _ in range(calls):
            try:
                outcomes.append(await chat.complete(HELLO))
            except AssayError as error:
                outcomes.append(error)
    return outcomes


def read_call_error(outcome: ChatReply | AssayError) -> tuple[str, int]:
    assert isinstance(outcome, CallError)
    return outcome.code, outcome.attempts


def find_closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_reset_timeout_and_bad_gateway_are_survived(loopback: Loopback) -> None:
    loopback.script(
        [{"close": True}, {"delay": 30, "reply": "late"}, {"status": 502, "body": "<html>bad gateway</html>"}]
    )
    (reply,) = await complete(loopback, timeout_s=0.3)
    assert isinstance(reply, ChatReply)
    assert (reply.text, reply.attempts, len(loopback.requests)) == ("ok", 4, 4)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        ({"status": 408, "body": ""}, "timeout"),
        ({"status": 409, "body": ""}, "server_error"),
        ({"status": 500, "body": "oops"}, "server_error"),
        ({"close": True}, "network"),
    ],
)
async def test_passing_failures_are_tried_five_times_with_growing_backoff(
    loopback: Loopback, step: dict[str, Any], code: str
) -> None:
    loopback.script([], after=step)
    naps = Naps()
    (error,) = await complete(loopback, naps)
    assert read_call_error(error) == (code, MAX_ATTEMPTS)
    assert len(loopback.requests) == MAX_ATTEMPTS
    assert all(0 <= nap <= bound for nap, bound in zip(naps, (0.5, 1.0, 2.0, 4.0), strict=True))


async def test_answers_that_stay_away_are_a_timeout(loopback: Loopback) -> None:
    loopback.script([], after={"delay": 30, "reply": "late"})
    assert read_call_error((await complete(loopback, timeout_s=0.05))[0]) == ("timeout", MAX_ATTEMPTS)


async def test_storm_of_rate_limits_is_waited_out_as_the_server_asks(loopback: Loopback) -> None:
    loopback.script([{"status": 429, "headers": {"retry-after-ms": "20"}, "body": LIMITED}] * 3)
    naps = Naps()
    (reply,) = await complete(loopback, naps)
    assert isinstance(reply, ChatReply)
    assert reply.attempts == 4
    assert [0.02 <= nap <= 0.52 for nap in naps] == [True] * 3


async def test_wait_beyond_the_cap_is_an_error_that_names_it(loopback: Loopback) -> None:
    loopback.script([], after={"status": 429, "headers": {"retry-after": "300"}, "body": LIMITED})
    naps = Naps()
    (error,) = await complete(loopback, naps)
    assert read_call_error(error) == ("rate_limited", 1)
    assert "300 s" in str(error)
    assert naps == []


QUOTA = {"error": {"message": "exceeded", "type": "insufficient_quota", "code": "insufficient_quota"}}


async def test_a_quota_that_is_used_up_ends_the_run_at_once(loopback: Loopback) -> None:
    loopback.script([], after={"status": 429, "body": QUOTA})
    (error,) = await complete(loopback)
    assert isinstance(error, EndpointError)
    assert "quota" in str(error)
    assert len(loopback.requests) == 1


async def test_a_quota_used_up_after_answers_is_an_error_of_its_row(loopback: Loopback) -> None:
    loopback.script([{"reply": "ok"}], after={"status": 429, "body": QUOTA})
    _, error = await complete(loopback, calls=2)
    assert read_call_error(error) == ("quota", 1)
    assert len(loopback.requests) == 2


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "--base-url")]
)
async def test_wrong_setup_is_told_apart_from_a_late_failure(
    loopback: Loopback, status: int, hint: str
) -> None:
    loopback.script([], after={"status": status, "body": GONE})
    (error,) = await complete(loopback)
    assert isinstance(error, EndpointError)
    for part in (f"{loopback.base_url}/chat/completions", "'m'", "No such deployment", hint):
        assert part in str(error)
    assert len(loopback.requests) == 1
    loopback.script([{"reply": "ok"}], after={"status": status, "body": GONE})
    _, late = await complete(loopback, calls=2)
    assert read_call_error(late) == ("not_found" if status == 404 else "auth", 1)


async def test_missing_deployment_names_deployment_and_api_version(loopback: Loopback) -> None:
    loopback.script([], after={"status": 404, "body": GONE})
    endpoint = Endpoint(model="d", provider="azure", base_url=loopback.azure_url, api_version="2023-05-15")
    async with open_chat(endpoint, Traffic(RunConfig(datasets=()))) as chat:
        with pytest.raises(EndpointError, match="deployment 'd'") as caught:
            await chat.complete(HELLO)
    assert f"{loopback.azure_url}/openai/deployments/d/chat/completions" in str(caught.value)
    assert "2023-05-15" in str(caught.value)


AZURE_FILTER = {
    "error": {
        "message": "The prompt was filtered.",
        "param": "prompt",
        "code": "content_filter",
        "innererror": {
            "code": "ResponsibleAIPolicyViolation",
            "content_filter_result": {
                "jailbreak": {"filtered": True, "detected": True},
                "violence": {"filtered": False, "severity": "safe"},
            },
        },
    }
}


async def test_a_filtered_prompt_names_the_categories_of_the_filter(loopback: Loopback) -> None:
    loopback.script([], after={"status": 400, "body": AZURE_FILTER})
    (error,) = await complete(loopback)
    assert read_call_error(error) == ("content_filter", 1)
    assert "The prompt was filtered. (filtered: jailbreak)" in str(error)
    assert len(loopback.requests) == 1


FILTERED = {"index": 0, "message": {"content": "half"}, "finish_reason": "content_filter"}
CATEGORIES = {"content_filter_results": {"hate": {"filtered": True}, "sexual": {"filtered": False}}}
PAID = {"prompt_tokens": 30, "completion_tokens": 20}


@pytest.mark.parametrize(
    ("body", "code", "part"),
    [
        ({"choices": [{**FILTERED, **CATEGORIES}]}, "content_filter", "(filtered: hate)"),
        ({"choices": [{"message": {"content": None, "refusal": "I will not"}}]}, "refusal", "I will not"),
        ({"choices": [{"message": {"content": "half"}, "finish_reason": "length"}]}, "truncated", "length"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "stop"}]}, "empty", "stop"),
        ({"choices": []}, "no_choices", "no choices"),
        ({"choices": [], "error": {"message": "upstream died", "code": "internal"}}, "error_body", "died"),
        ({"error": {"message": "cannot now", "code": "insufficient_quota"}}, "quota", "cannot now"),
    ],
)
async def test_what_was_paid_for_an_answer_that_is_none_is_kept(
    loopback: Loopback, body: Any, code: str, part: str
) -> None:
    loopback.script([{"reply": "ok"}], after={"status": 200, "body": {**body, "usage": PAID}})
    _, error = await complete(loopback, calls=2)
    assert isinstance(error, CallError)
    assert (error.code, part in error.message) == (code, True)
    assert error.reply
    paid = 2 if code == "truncated" else 1  # asked for again with more room
    assert (error.reply.usage.input_tokens, error.reply.usage.output_tokens) == (30 * paid, 20 * paid)


@pytest.mark.parametrize(
    "error",
    [
        {"message": "overloaded", "type": "overloaded_error"},
        {"message": "provider went away", "code": 502},
        {"message": "slow down", "code": "server_error"},
    ],
)
async def test_an_error_in_an_answer_that_may_pass_is_tried_again(
    loopback: Loopback, error: dict[str, Any]
) -> None:
    loopback.script([{"status": 200, "body": {"error": error}}])
    (reply,) = await complete(loopback)
    assert isinstance(reply, ChatReply)
    assert (reply.text, len(loopback.requests)) == ("ok", 2)


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (400, {"error": {"message": "too long " * 200}}, "bad_request"),
        (422, {"detail": [{"loc": ["body", "seed"], "msg": "extra"}]}, "bad_request"),
        (413, "<html>large</html>", "bad_request"),
    ],
)
async def test_refused_request_is_a_row_error_without_retry(
    loopback: Loopback, status: int, body: Any, code: str
) -> None:
    loopback.script([], after={"status": status, "body": body})
    (error,) = await complete(loopback)
    assert read_call_error(error) == (code, 1)
    assert len(str(error)) < 340


async def test_nobody_listening_ends_the_run_after_two_attempts() -> None:
    naps = Naps()
    async with open_to(f"http://127.0.0.1:{find_closed_port()}/v1", naps) as chat:
        with pytest.raises(EndpointError, match=r"cannot reach http://127.*is the server running"):
            await chat.complete(HELLO)
    assert len(naps) == 1


async def test_server_that_went_away_is_a_network_error_of_the_row(loopback: Loopback) -> None:
    async with open_to(loopback.base_url) as chat:
        await chat.complete(HELLO)
        await asyncio.to_thread(loopback.stop)
        with pytest.raises(CallError) as caught:
            await chat.complete(HELLO)
    assert read_call_error(caught.value) == ("network", MAX_ATTEMPTS)


async def test_broken_http_is_a_network_error_of_the_row() -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"garbage\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        async with open_to(url) as chat:
            with pytest.raises(CallError, match="network"):
                await chat.complete(HELLO)


async def test_text_that_is_not_unicode_is_a_row_error(loopback: Loopback) -> None:
    async with open_to(loopback.base_url) as chat:
        with pytest.raises(CallError, match="bad_request"):
            await chat.complete(ChatRequest((text_message("user", "half \ud800"),)))
    assert loopback.requests == []
