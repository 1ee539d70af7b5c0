"""How a verdict is asked for: by a schema where a server takes one, and once more when it is unreadable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.chat.client import open_chat
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatReply, Usage
from assay.errors import CallError
from evaluators.judging import UNSAID, ask_judge
from evaluators.prompt_files import read_prompt

if TYPE_CHECKING:
    from collections.abc import Callable

    from evaluators.contract import Verdict
    from tests.conftest import Loopback

RUBRIC = read_prompt("relevance").rubric
GOOD = '{"reason": "clear", "score": 4}'
ROW = {"query": ["q"], "response": ["r"]}


def wrap(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


def wrap_fault(kind: str, said: str, *place: str) -> dict[str, Any]:
    return {"detail": [{"type": kind, "loc": ["body", "response_format", *place], "msg": said}]}


NO_TYPE = "Failed to deserialize the JSON body into the target type: response_format"
NO_VALUE = (
    "The parameter `response_format.type` specified in the request are not valid: invalid value: "
    "`json_schema`, supported values are: `json_object` and `text`."
)
XGRAMMAR = "The provided JSON schema contains features not supported by xgrammar."
FORM = "'response_format'"
EXTRA = "Extra inputs are not permitted"
REFUSALS: dict[str, Any] = {
    "OpenAI": wrap(
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
    ),
    "OpenAI on the schema": wrap(
        "Invalid schema for response_format 'verdict': In context=(), 'x' is missing."
    ),
    "Azure": wrap("response_format value as json_schema is enabled only for api versions 2024-08-01 and up"),
    "llama.cpp": wrap('response_format type must be one of "text" or "json_object", but got: json_schema'),
    "llama.cpp with a template": wrap('Either "json_schema" or "grammar" can be specified, but not both'),
    "vLLM": {"object": "error", "message": XGRAMMAR, "type": "BadRequestError", "param": None, "code": 400},
    "vLLM on a field": wrap_fault("extra_forbidden", EXTRA),
    "Triton": wrap_fault("literal_error", "Input should be 'text' or 'json_object'", "type"),
    "Ollama": {"error": "invalid JSON schema in format"},
    "Mistral": {"object": "error", "message": wrap_fault("extra_forbidden", EXTRA, "json_schema")},
    "DeepSeek": wrap("This response_format type is unavailable now"),
    "DeepSeek, earlier": wrap(f"{NO_TYPE}: response_format.type `json_schema` is unavailable now at line 1"),
    "Volcano": {"error": {"code": "InvalidParameter", "message": NO_VALUE, "type": "BadRequest"}},
    "Groq": wrap("This model does not support response format `json_schema`."),
    "Groq on the form": wrap("The model only supports response formats: [json text]."),
    "xAI": {"error": "The response_format parameter is unsupported at the moment. Leave it unset."},
    "Text Generation Inference": {"error": f"{NO_TYPE}: missing field `value` at line 1 column 168"},
    "Bedrock": wrap(f"The model returned the following errors: output_config.format: {EXTRA}"),
}
"""What servers say to `response_format`."""


def read_format(body: dict[str, Any]) -> str | None:
    return body.get("response_format", {}).get("type")


async def ask_rows(loopback: Loopback, rows: int) -> list[Verdict]:
    endpoint = Endpoint(model="m", base_url=loopback.base_url)
    async with open_chat(endpoint, Traffic(RunConfig(datasets=()))) as chat:
        return [await ask_judge(RUBRIC, {"query": "q", "response": f"r{n}"}, chat) for n in range(rows)]


@pytest.mark.usefixtures("api_key")
async def test_the_schema_of_the_verdict_is_sent(loopback: Loopback) -> None:
    loopback.script([], after={"reply": GOOD})
    (verdict,) = await ask_rows(loopback, 1)
    assert verdict.score == 4.0
    assert loopback.requests[0]["body"]["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "verdict",
            "strict": True,
            "schema": {
                "type": "object",
                "properties": {
                    "reason": {"type": "string"},
                    "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
                },
                "required": ["reason", "score"],
                "additionalProperties": False,
            },
        },
    }


@pytest.mark.usefixtures("api_key")
@pytest.mark.parametrize("server", REFUSALS)
async def test_a_refused_schema_is_sent_once_and_an_object_asked_for(loopback: Loopback, server: str) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        is_schema = read_format(body) == "json_schema"
        return {"status": 400, "body": REFUSALS[server]} if is_schema else {"reply": GOOD}

    loopback.script([], after=answer)
    assert [verdict.score for verdict in await ask_rows(loopback, 3)] == [4.0] * 3
    formats = [read_format(each["body"]) for each in loopback.requests]
    assert formats == ["json_schema", "json_object", "json_object", "json_object"]


@pytest.mark.usefixtures("api_key")
@pytest.mark.parametrize("server", ["OpenAI", "DeepSeek", "vLLM on a field"])
async def test_where_neither_is_taken_the_prompt_alone_asks_for_json(loopback: Loopback, server: str) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        return {"status": 422, "body": REFUSALS[server]} if read_format(body) else {"reply": GOOD}

    loopback.script([], after=answer)
    assert [verdict.score for verdict in await ask_rows(loopback, 3)] == [4.0] * 3
    formats = [read_format(each["body"]) for each in loopback.requests]
    assert formats == ["json_schema", "json_object", None, None, None]


@pytest.mark.usefixtures("api_key")
async def test_another_complaint_about_json_refuses_no_form(loopback: Loopback) -> None:
    said = "'messages' must contain the word 'json' in some form, to use 'response_format'."
    loopback.script([{"status": 400, "body": wrap(said)}], after={"reply": GOOD})
    with pytest.raises(CallError, match="the word 'json'"):
        await ask_rows(loopback, 1)
    assert len(loopback.requests) == 1


@pytest.mark.usefixtures("api_key")
async def test_over_http_a_second_question_follows_and_no_third(loopback: Loopback) -> None:
    loopback.script([{"reply": "Fine, I guess."}, {"reply": GOOD}], after={"reply": "I will not say."})
    (verdict,) = await ask_rows(loopback, 1)
    assert (verdict.score, verdict.details) == (4.0, {"asked_again": "no JSON object with `score`"})
    with pytest.raises(CallError, match=r"the judge said: 'I will not say\.'") as caught:
        await ask_rows(loopback, 1)
    assert (caught.value.code, len(loopback.requests)) == ("unparseable", 4)


async def test_the_second_question_shows_the_reply_what_was_wrong_and_the_form(
    scripted_chat: Callable[..., Any],
) -> None:
    chat = scripted_chat('{"reason": "great", "score": 9}', GOOD)
    await ask_judge(RUBRIC, {"query": "q", "response": "r"}, chat)
    first, second = chat.requests
    assert second.messages[:2] == first.messages
    assert [message["role"] for message in second.messages] == ["system", "user", "assistant", "user"]
    assert second.messages[2]["content"] == '{"reason": "great", "score": 9}'
    assert "`score` is off the scale 1..5" in second.messages[3]["content"]
    assert RUBRIC.form.example in second.messages[3]["content"]
    assert (second.json_schema, second.nonce) == (first.json_schema, first.nonce)


async def test_after_no_reply_at_all_the_roles_still_take_turns(scripted_chat: Callable[..., Any]) -> None:
    for silent in (CallError("empty", "no text", reply=ChatReply("", "judge-1")), "", " \n"):
        chat = scripted_chat(silent, GOOD)
        verdict = await ask_judge(RUBRIC, {"query": "q", "response": "r"}, chat)
        assert verdict.score == 4.0
        assert chat.requests[1].messages[2] == {"role": "assistant", "content": UNSAID}


async def test_a_long_reply_is_shown_in_part(scripted_chat: Callable[..., Any]) -> None:
    chat = scripted_chat("no " * 100_000, "no " * 100_000)
    with pytest.raises(CallError) as caught:
        await ask_judge(RUBRIC, {"query": "q", "response": "r"}, chat)
    assert len(chat.requests[1].messages[2]["content"]) <= 2_000
    assert len(caught.value.message) < 400


@pytest.mark.parametrize("code", ["content_filter", "truncated", "refusal", "timeout"])
async def test_a_failed_call_is_not_asked_again(scripted_chat: Callable[..., Any], code: str) -> None:
    chat = scripted_chat(CallError(code, "so it is"), GOOD)
    with pytest.raises(CallError, match="so it is"):
        await ask_judge(RUBRIC, {"query": "q", "response": "r"}, chat)
    assert len(chat.requests) == 1


def test_usage_and_time_of_both_questions_count(score: Any, scripted_chat: Callable[..., Any]) -> None:
    first = ChatReply("Fine.", "judge-1", usage=Usage(300, 2, cost_usd=0.25), latency_ms=10.0)
    second = ChatReply(GOOD, "judge-1", usage=Usage(350, 20, cost_usd=0.5), latency_ms=20.0)
    row = score("Relevance", ROW, scripted_chat(first, second)).row(0, named=True)
    assert (row["status"], row["score"], row["input_tokens"], row["output_tokens"]) == (
        "ok",
        4.0,
        650,
        22,
    )
    assert (row["cost_usd"], row["latency_ms"]) == (0.75, 30.0)
    assert json.loads(row["details_json"]) == {"asked_again": "no JSON object with `score`"}


def test_replies_that_cannot_be_read_are_kept_with_their_row(
    score: Any, scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat("Fine, I guess.", '{"reason": "great", "score": 9}')
    row = score("Relevance", ROW, chat).row(0, named=True)
    assert (row["status"], row["error_code"], row["score"]) == ("error", "unparseable", None)
    replies = ["Fine, I guess.", '{"reason": "great", "score": 9}']
    assert json.loads(row["details_json"]) == {"replies": replies}
