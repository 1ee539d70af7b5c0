"""HTTP services as targets, over a real connection."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from assay.chat.traffic import Traffic
from assay.config import RunConfig
from assay.errors import CallError, EndpointError
from assay.targets.contract import Ask
from assay.targets.http import build_http

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from assay.contracts.chat import ChatReply
    from assay.targets.http import HttpAnswerer

    Open = Callable[..., HttpAnswerer]

MARKED = "marked-secret-0123456789"
MESSAGES = ({"role": "system", "content": "be brief"}, {"role": "user", "content": "a b&c"})
ROW = {
    "item_id": "i",
    "turn": 1,
    "query": "a b&c",
    "context": None,
    "item_json": '{"id":7,"user":{"a b":[1,2]}}',
}
ASK = Ask(MESSAGES, ROW, trial=2)


class Service:
    """A scripted service.

    Steps: {"json": value} or {"body": text or bytes}, with "status", "headers", "type", "delay", "pieces"
    as they are wanted. The last one answers for good.
    """

    def __init__(self) -> None:
        self.url = ""
        self.steps: deque[Mapping[str, Any]] = deque()
        self.requests: list[web.BaseRequest] = []
        self.bodies: list[Any] = []
        self.most_in_flight = self.in_flight = 0
        self.closing = asyncio.Event()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        text = await request.text()
        self.requests.append(request)
        self.bodies.append(json.loads(text) if text else None)
        step = self.steps.popleft() if len(self.steps) > 1 else self.steps[0]
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await asyncio.sleep(step.get("delay", 0))
        self.in_flight -= 1
        if "pieces" in step:
            return await self._stream(request, step)
        body = step["body"] if "body" in step else json.dumps(step["json"])
        data = body.encode() if isinstance(body, str) else body
        kind = step.get("type", "application/json" if "json" in step else "text/html")
        headers = {"Content-Type": kind, **step.get("headers", {})}
        return web.Response(status=step.get("status", 200), body=data, headers=headers)

    async def _stream(self, request: web.BaseRequest, step: Mapping[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in step["pieces"]:
            await response.write(piece if isinstance(piece, bytes) else piece.encode())
            await asyncio.sleep(0)
        if step.get("open"):
            await self.closing.wait()
        return response


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    scripted = Service()
    runner = web.ServerRunner(web.Server(scripted.handle), shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    scripted.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield scripted
    scripted.closing.set()
    await runner.cleanup()


@pytest.fixture
async def open_service(service: Service, tmp_path: Path) -> AsyncIterator[Open]:
    """Open the service by a TOML file, whose text may name URL; script what it answers."""
    opened: list[HttpAnswerer] = []

    def build(text: str, *steps: Mapping[str, Any], **settings: Any) -> HttpAnswerer:
        path = tmp_path / "agent.toml"
        path.write_text(text.replace("URL", service.url), encoding="utf-8")
        service.steps = deque(steps)
        target = {"kind": "http", "place": str(path)}
        config = RunConfig.model_validate({"datasets": ("x",), "target": target, **settings})
        opened.append(build_http(config, Traffic(config, sleep=waits.append_later)))
        return opened[-1]

    waits = Waits()
    yield build
    for answerer in opened:
        await answerer.aclose()


class Waits:
    """Waits for nothing."""

    async def append_later(self, seconds: float) -> None:
        assert seconds >= 0


async def fail(answering: Awaitable[ChatReply]) -> CallError:
    with pytest.raises(CallError) as caught:
        await answering
    return caught.value


PLAIN = 'url = "URL/ask"'


async def test_a_file_with_a_url_alone_posts_the_whole_turn(open_service: Open, service: Service) -> None:
    answerer = open_service(PLAIN, {"json": {"answer": "hi"}})
    assert (await answerer.answer(ASK)).text == "hi"
    request, body = service.requests[0], service.bodies[0]
    assert (request.method, request.path, request.content_type) == ("POST", "/ask", "application/json")
    conversation = body.pop("conversation_id")
    assert len(conversation) == 36
    item = {"id": 7, "user": {"a b": [1, 2]}}
    whole = {
        "query": "a b&c",
        "messages": list(MESSAGES),
        "item": item,
        "context": None,
        "turn": 1,
        "trial": 2,
    }
    assert body == whole


async def test_placeholders_fill_url_headers_and_body(
    open_service: Open, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", f" {MARKED}\n")
    text = """
        url = "URL/{{item.id}}/ask?q={{query}}&key=${AGENT_KEY}"
        method = "put"
        [headers]
        Authorization = "Bearer ${AGENT_KEY}"
        X-Turn = "{{turn}} {{query}} ä"
        [body]
        n = "{{trial}}"
        text = 'turn {{turn}} of {{item["id"]}}, {{context}}\\{{x}}'
        deep = [{ first = '{{item.user["a b"][0]}}', all = '{{item.user["a b"][*]}}', system = "{{system}}" }]
        fixed = 1.5
    """.replace(" ä", "")
    await open_service(text, {"json": {"text": "hi"}}).answer(ASK)
    request = service.requests[0]
    assert request.method == "PUT"
    assert request.raw_path == f"/7/ask?q=a%20b%26c&key={MARKED}"
    assert request.headers["authorization"] == f"Bearer {MARKED}"
    assert request.headers["x-turn"] == "1 a b&c"
    assert service.bodies[0] == {
        "n": 2,
        "text": "turn 1 of 7, {{x}}",
        "deep": [{"first": 1, "all": [1, 2], "system": "be brief"}],
        "fixed": 1.5,
    }


async def test_a_body_may_be_json_text(open_service: Open, service: Service) -> None:
    body = '{"m": {{messages}}, "q": "say \\\\"{{query}}\\\\"", "i": {"u": {{item.user["a b"]}}}}'
    await open_service(f'{PLAIN}\nbody = """{body}"""', {"json": {"text": "hi"}}).answer(ASK)
    assert service.bodies[0] == {"m": list(MESSAGES), "q": 'say "a b&c"', "i": {"u": [1, 2]}}


async def test_get_sends_no_body(open_service: Open, service: Service) -> None:
    await open_service('url = "URL/?q={{query}}"\nmethod = "GET"', {"json": {"text": "hi"}}).answer(ASK)
    assert (service.requests[0].method, service.bodies[0]) == ("GET", None)
    assert service.requests[0].query["q"] == "a b&c"


async def test_a_resumed_run_goes_on_with_the_conversations_of_the_service(tmp_path: Path) -> None:
    path = tmp_path / "service.toml"
    path.write_text('url = "http://127.0.0.1:9/"\nbody = { id = "{{conversation_id}}" }', encoding="utf-8")
    config = RunConfig.model_validate({"datasets": ("x",), "target": {"kind": "http", "place": str(path)}})
    spaces = [build_http(config, Traffic(config, run_id=run_id)).space for run_id in ("a", "a", "b", "", "")]
    assert spaces[0] == spaces[1]
    assert len(set(spaces)) == 4


async def test_turns_of_a_conversation_share_an_id_that_no_other_has(
    open_service: Open, service: Service
) -> None:
    text = f'{PLAIN}\nbody = {{ id = "{{{{conversation_id}}}}" }}'
    step = {"json": {"text": "hi"}}
    asks = [
        ASK,
        Ask(MESSAGES, ROW | {"turn": 2}, 2),
        Ask(MESSAGES, ROW, 1),
        Ask(MESSAGES, ROW | {"item_id": "j"}, 2),
    ]
    first, again = open_service(text, step), open_service(text, step)
    for ask in asks:
        await first.answer(ask)
    await again.answer(ASK)
    ids = [body["id"] for body in service.bodies]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 4
    assert first.describe(ASK) == again.describe(ASK)


async def test_zipped_answers_are_read(open_service: Open) -> None:
    body = gzip.compress(b'{"text": "hi"}')
    assert (
        await open_service(PLAIN, {"body": body, "headers": {"Content-Encoding": "gzip"}}).answer(ASK)
    ).text == "hi"


@pytest.mark.parametrize(
    ("step", "code", "message"),
    [
        (
            {"body": "<html>Sign in</html>"},
            "html_body",
            "status 200 with a body that is not JSON: <html>Sign in",
        ),
        ({"body": " "}, "empty", "status 200 without a body"),
        ({"json": {}}, "no_output", "no text in the answer (looked for output_text, response, answer"),
        ({"json": {"text": ""}}, "empty", "the target said nothing"),
        ({"json": [1]}, "no_output", "no text in the answer"),
        (
            {"json": {"error": {"message": "index gone"}}},
            "error_body",
            "the target answered an error: index gone",
        ),
        ({"json": {"detail": "no such user"}, "status": 422}, "bad_request", "422: no such user"),
        ({"body": "x" * 1000, "status": 400}, "bad_request", f"400: {'x' * 50}"),
    ],
)
async def test_bad_answers_are_errors_of_their_row(
    open_service: Open, step: Any, code: str, message: str
) -> None:
    error = await fail(open_service(PLAIN, step).answer(ASK))
    assert (error.code, error.attempts) == (code, 1)
    assert error.message.startswith(message)
    assert len(error.message) < 310


@pytest.mark.parametrize("status", [429, 503, 500, 502])
async def test_a_service_that_fails_for_a_moment_is_asked_again(
    open_service: Open, service: Service, status: int
) -> None:
    busy = {"json": {"error": "busy"}, "status": status, "headers": {"Retry-After-Ms": "5"}}
    reply = await open_service(PLAIN, busy, busy, {"json": {"text": "hi"}}, limits={"max_wait_s": 5}).answer(
        ASK
    )
    assert (reply.text, reply.attempts, len(service.requests)) == ("hi", 3, 3)


async def test_a_longer_wait_than_allowed_fails_the_row(open_service: Open) -> None:
    step = {"json": {}, "status": 429, "headers": {"Retry-After": "3600"}}
    error = await fail(open_service(PLAIN, step).answer(ASK))
    assert (error.code, error.attempts) == ("rate_limited", 1)


@pytest.mark.parametrize(
    ("step", "part"),
    [
        (
            {"json": {"message": f"bad {MARKED}"}, "status": 401},
            "refused the request: 401: bad ***; check the headers",
        ),
        (
            {"json": {"message": "no route"}, "status": 404},
            "is not known there: 404: no route; check the url in",
        ),
        ({"body": "", "status": 301, "headers": {"Location": "/new"}}, "301: redirected to /new; write that"),
    ],
)
async def test_a_service_that_is_wrongly_set_up_ends_the_run(
    open_service: Open, monkeypatch: pytest.MonkeyPatch, step: Any, part: str
) -> None:
    monkeypatch.setenv("AGENT_KEY", MARKED)
    answerer = open_service(f'{PLAIN}\nheaders = {{ X-Key = "${{AGENT_KEY}}" }}', step)
    with pytest.raises(EndpointError) as caught:
        await answerer.answer(ASK)
    assert part in str(caught.value)
    assert MARKED not in str(caught.value)


async def test_nobody_listening_ends_the_run(open_service: Open) -> None:
    with pytest.raises(EndpointError, match="is the service running"):
        await open_service('url = "http://127.0.0.1:1/ask"', {"json": {}}).answer(ASK)


async def test_a_slow_service_is_a_timeout(open_service: Open) -> None:
    error = await fail(open_service(PLAIN, {"json": {}, "delay": 0.2}, timeout_s=0.02).answer(ASK))
    assert (error.code, error.message, error.attempts) == ("timeout", "no answer within 0.02 s", 5)


async def test_the_ceiling_bounds_what_is_under_way(open_service: Open, service: Service) -> None:
    answerer = open_service(PLAIN, {"json": {"text": "hi"}, "delay": 0.01}, concurrency=3)
    await asyncio.gather(*(answerer.answer(ASK) for _ in range(9)))
    assert service.most_in_flight == 3


async def test_no_cookie_goes_from_one_call_to_the_next(open_service: Open, service: Service) -> None:
    answerer = open_service(PLAIN, {"json": {"text": "hi"}, "headers": {"Set-Cookie": "session=1"}})
    await answerer.answer(ASK)
    await answerer.answer(ASK)
    assert "cookie" not in service.requests[1].headers


async def test_a_field_that_an_item_lacks_fails_the_row_unasked(open_service: Open, service: Service) -> None:
    answerer = open_service(f'{PLAIN}\nbody = {{ u = "{{{{item.nobody}}}}" }}', {"json": {"text": "hi"}})
    error = await fail(answerer.answer(ASK))
    assert (error.code, error.attempts, service.requests) == ("missing_field", 0, [])
    assert error.message.endswith("nothing to put for {{item.nobody}}")
    assert json.loads(answerer.describe(ASK))["body"] == {"u": None}


async def test_secrets_stand_in_no_description_message_or_representation(
    open_service: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", MARKED)
    headers = '[headers]\nCookie = "s=written-as-well"\nX-A = "${AGENT_KEY}"'
    text = f'url = "URL/?key=${{AGENT_KEY}}&sig=written-into-it"\n{headers}'
    echo = {"json": {"message": f"{MARKED} written-into-it s=written-as-well"}, "status": 400}
    answerer = open_service(text, echo)
    error = await fail(answerer.answer(ASK))
    assert error.message == "400: *** *** ***"
    leaky = Ask(({"role": "user", "content": MARKED},), ROW)
    seen = answerer.describe(leaky) + repr(answerer) + repr(answerer.file)
    assert not any(secret in seen for secret in (MARKED, "written"))
    told = json.loads(answerer.describe(ASK))
    assert (told["method"], told["body"]["query"]) == ("POST", "a b&c")
    assert told["url"].endswith("/?key=${AGENT_KEY}&sig=***")


SSE = f'{PLAIN}\nstream = "sse"'


async def test_a_stream_is_read_to_its_mark_and_no_further(open_service: Open) -> None:
    pieces = [b'data: {"text":"caf\xc3', b'\xa9"}\r', b"\n\r\n", 'data: {"text":"!"}\n\ndata: [DONE]\n\n']
    reply = await open_service(SSE, {"pieces": pieces, "open": True}).answer(ASK)
    assert reply.text == "caf\u00e9!"


@pytest.mark.parametrize(
    ("step", "code", "attempts"),
    [
        ({"pieces": ['data: {"delta":"a"}\n\n', 'data: {"error":"died"}\n\n']}, "error_body", 1),
        ({"pieces": ["data: {broken\n\n"]}, "html_body", 1),
        ({"pieces": [": nothing\n\n"]}, "no_output", 1),
        ({"body": "<html>", "type": "text/html"}, "html_body", 1),
        ({"pieces": ['data: {"delta":"a"}\n\n']}, "network", 5),
    ],
)
async def test_bad_streams_are_errors_of_their_row(
    open_service: Open, step: Any, code: str, attempts: int
) -> None:
    toml = f'{PLAIN}\nstream = {{ done = "[DONE]" }}' if code == "network" else SSE
    error = await fail(open_service(toml, step).answer(ASK))
    assert (error.code, error.attempts) == (code, attempts)


async def test_a_whole_answer_to_a_stream_s_request_is_read(open_service: Open) -> None:
    assert (await open_service(SSE, {"json": {"text": "hi"}}).answer(ASK)).text == "hi"
