"""What servers refuse, in their own words, and what is sent afterwards."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.client import open_chat
from assay.chat.failures import read_status
from assay.chat.parameters import Learnt
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatRequest, text_message
from assay.errors import CallError

if TYPE_CHECKING:
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")

SENT: dict[str, Any] = {
    "model": "m",
    "messages": [],
    "temperature": 0.0,
    "top_p": 1.0,
    "seed": 7,
    "stop": ["END"],
    "max_tokens": 9,
    "response_format": {"type": "json_object"},
    "reasoning_effort": "low",
    "stream": True,
    "stream_options": {"include_usage": True},
}


def openai(message: str, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": None}}


def forbid(*names: str) -> list[dict[str, Any]]:
    return [
        {"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}
        for name in names
    ]


MODEL = "is not supported with this model."
USE = "Use 'max_completion_tokens' instead."
ONLY = "Only the default (1) value is supported."
GEMINI = {"message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.', "code": 400}
REFUSALS: list[tuple[Any, set[str]]] = [
    (openai(f"Unsupported parameter: 'max_tokens' {MODEL} {USE}"), {"max_tokens"}),
    (openai(f"Unsupported value: 'temperature' does not support 0 with this model. {ONLY}"), {"temperature"}),
    (openai(f"Unsupported parameter: 'temperature' {MODEL}", "temperature"), {"temperature"}),
    (openai(f"Unsupported parameter: 'top_p' {MODEL}", "top_p"), {"top_p"}),
    (openai(f"Unsupported parameter: 'stop' {MODEL}", "stop"), {"stop"}),
    (openai("Unrecognized request argument supplied: seed"), {"seed"}),
    (openai("Unrecognized request arguments supplied: seed, stop"), {"seed", "stop"}),
    (openai("Unrecognized request argument supplied: reasoning_effort"), {"reasoning_effort"}),
    (openai("Your organization must be verified to stream this model."), {"stream", "stream_options"}),
    (openai("property 'seed' is unsupported"), {"seed"}),
    (openai("invalid temperature: only 1 is allowed for this model"), {"temperature"}),
    (openai("gpt-5 models don't support temperature=0.0. Only temperature=1 is supported."), {"temperature"}),
    (openai("`temperature` and `top_p` cannot both be specified for this model."), {"top_p"}),
    (openai("`temperature` is deprecated for this model."), {"temperature"}),
    (openai("json mode is not supported for this model"), {"response_format"}),
    ({"error": "'response_format.type' must be 'json_schema' or 'text'"}, {"response_format"}),
    ({"code": "invalid argument", "error": "Argument not supported on this model: stop"}, {"stop"}),
    ([{"error": GEMINI}], {"seed"}),
    ({"detail": forbid("stream_options", "seed")}, {"stream_options", "seed"}),
    ({"object": "error", "message": {"detail": forbid("reasoning_effort")}}, {"reasoning_effort"}),
]


@pytest.mark.parametrize(("body", "gone"), REFUSALS)
def test_a_refused_parameter_is_not_sent_again(body: Any, gone: set[str]) -> None:
    learnt = Learnt()
    assert learnt.learn(SENT, read_status(400, {}, body).message)
    kept = learnt.adapt(SENT)
    assert set(SENT) - set(kept) == gone
    assert len(learnt.notes) == len(gone)
    assert learnt.learn(SENT, read_status(400, {}, body).message)
    assert not learnt.learn(kept, read_status(400, {}, body).message)


@pytest.mark.parametrize(
    "body",
    [
        openai("must lie between 0 and 2", "temperature"),
        openai("'max_tokens' or 'max_completion_tokens' is too large: 32000. The model supports only 8192."),
        openai("max_tokens is too large: 99999. This model supports at most 4096 completion tokens."),
        openai("'messages' must contain the word 'json' in some form, to use 'response_format'."),
        openai("This model's maximum context length is 4097 tokens; reduce max_tokens."),
        openai("Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        openai("Unknown model; stop asking"),
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 0, "user", "name"], "msg": "x"}]},
    ],
)
def test_another_complaint_changes_nothing(body: Any) -> None:
    learnt = Learnt()
    assert not learnt.learn(SENT, read_status(400, {}, body).message)
    assert learnt.notes == ()


def test_the_other_name_of_the_limit_is_tried_once_in_each_direction() -> None:
    learnt = Learnt()
    assert learnt.learn({"max_completion_tokens": 5}, "Unrecognized request argument: max_completion_tokens")
    assert learnt.adapt({"max_completion_tokens": 5}) == {"max_tokens": 5}
    refusal = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    assert learnt.learn({"max_tokens": 5}, refusal)
    assert learnt.adapt({"max_completion_tokens": 5}) == {}


async def test_a_wave_of_calls_learns_together_and_later_calls_meet_no_refusal(loopback: Loopback) -> None:
    def refuse_temperature(body: dict[str, Any]) -> dict[str, Any]:
        if "temperature" in body:
            return {"status": 400, "body": openai("Unsupported parameter: 'temperature'"), "delay": 0.05}
        return {"reply": "ok"}

    loopback.script([], after=refuse_temperature)
    endpoint = Endpoint(model="m", base_url=loopback.base_url)
    request = ChatRequest((text_message("user", "x"),), temperature=0.0)
    async with open_chat(endpoint, Traffic(RunConfig(datasets=(), concurrency=4))) as chat:
        await asyncio.gather(*(chat.complete(request) for _ in range(12)))
    refused = [request for request in loopback.requests if "temperature" in request["body"]]
    assert len(refused) == 4
    assert len(loopback.requests) == 16


async def test_a_server_that_refuses_everything_is_not_asked_for_ever(loopback: Loopback) -> None:
    names = "temperature, top_p, seed, stop, max_tokens, max_completion_tokens, response_format"
    loopback.script([], after={"status": 400, "body": openai(f"Unsupported: {names}, model")})
    endpoint = Endpoint(model="m", base_url=loopback.base_url)
    request = ChatRequest((text_message("user", "x"),), 0.0, 1.0, 7, ("END",), 9, json_object=True)
    async with open_chat(endpoint, Traffic(RunConfig(datasets=()))) as chat:
        with pytest.raises(CallError, match="bad_request"):
            await chat.complete(request)
    assert set(loopback.requests[-1]["body"]) == {"model", "messages"}
    assert len(loopback.requests) <= 4
