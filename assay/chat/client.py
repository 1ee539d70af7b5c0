"""The chat with one model: every call through the caller of its endpoint, what the server refuses learnt."""

from __future__ import annotations

import logging
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Self

from openai import APIStatusError, AsyncStream

from assay.chat.answers import parse_body
from assay.chat.caller import Caller
from assay.chat.completions import read_completion
from assay.chat.endpoints import QUIET, locate_model, open_client
from assay.chat.failures import read_failure
from assay.chat.parameters import STREAMED, Learnt, build_body, write_body
from assay.chat.responses import build_input, read_response
from assay.chat.streaming import read_stream
from assay.contracts.json_text import dump_json
from assay.errors import CallError

if TYPE_CHECKING:
    from types import TracebackType

    from openai import AsyncOpenAI

    from assay.chat.endpoints import Place
    from assay.chat.parameters import Body
    from assay.chat.traffic import Traffic
    from assay.config import Endpoint
    from assay.contracts.chat import ChatReply, ChatRequest

logger = logging.getLogger("assay")
MODEL_CEILING = 128  # calls under way at one model, where the user names no number
ROOM = 4  # times the output budget of an answer that was cut off, when it is asked for again
CHARACTERS_PER_TOKEN = 4  # of English; a guess that is corrected by what the server counts
FIRST_ANSWER = 250  # tokens of an answer before there was one
_OF_REQUEST = ("bad_request", "server_error")  # some servers answer a parameter they do not know with 500
LEAST_ROOM = 4_096  # tokens of that budget at least


class ModelChat:
    """A chat with one model over one connection pool; belongs to the event loop that first uses it.

    Attributes:
        place: Where the model is; its representation shows no secret.
    """

    def __init__(self, client: AsyncOpenAI, place: Place, traffic: Traffic) -> None:
        self.place = place
        self._client = client
        gate = traffic.open_gate(f"{place.url} {place.model}", MODEL_CEILING)
        self._caller = Caller(place, place.model, gate, traffic, place.secrets)
        self._meter = traffic.meter
        self._limits_tokens = traffic.limits.tpm is not None
        self._learnt = Learnt()
        self._told: set[str] = set()

    def describe(self, request: ChatRequest) -> Body:
        """Return the request as the API takes it, before anything was learnt."""
        build = build_input if self.place.api == "responses" else build_body
        return build(self.place.model, request)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request; an answer that was cut off is asked for once more, with more room.

        Raises:
            CallError: This call failed for good; the row keeps the code.
            EndpointError: Key, model or URL are wrong, or the quota is used up.
        """
        reply = await self._ask(request)
        if reply.finish_reason == "length":
            self._meter.truncated += 1
            if not request.fixed_budget:
                reply = await self._ask_again(request, reply)
        if reply.finish_reason == "length":
            text = "truncated: the answer ended at the output limit (finish_reason length)"
            raise CallError("truncated", text, attempts=reply.attempts, reply=reply)
        if not (reply.text or reply.tool_calls_json):
            text = f"the model said nothing (finish_reason {reply.finish_reason})"
            raise CallError("empty", text, attempts=reply.attempts, reply=reply)
        return reply

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _ask(self, request: ChatRequest) -> ChatReply:
        wanted = self.describe(request)

        async def send() -> ChatReply:
            return await self._send(wanted)

        tokens = self._expect_tokens(wanted) if self._limits_tokens else 0
        return await self._caller.call(send, tokens=tokens)

    def _expect_tokens(self, wanted: Body) -> int:
        """Return what a call will take, roughly: its characters, and as long an answer as the mean so far."""
        meter = self._meter
        written = (meter.usage.output_tokens or 0) / meter.calls if meter.calls else FIRST_ANSWER
        return int(len(dump_json(wanted)) / CHARACTERS_PER_TOKEN + written)

    async def _ask_again(self, request: ChatRequest, cut: ChatReply) -> ChatReply:
        """Ask with a larger budget; both answers were paid for and count in the usage."""
        written = request.max_output_tokens or cut.usage.output_tokens or 0
        try:
            reply = await self._ask(replace(request, max_output_tokens=max(ROOM * written, LEAST_ROOM)))
        except CallError as error:
            if error.code == "bad_request":
                return cut  # the server takes no larger budget
            spent = cut.usage if error.reply is None else cut.usage.plus(error.reply.usage)
            kept = replace(error.reply or cut, usage=spent)
            sent = cut.attempts + error.attempts
            raise CallError(error.code, error.message, attempts=sent, reply=kept) from None
        usage = cut.usage.plus(reply.usage)
        if reply.finish_reason == "length":
            self._meter.truncated += 1
        return replace(reply, usage=usage, attempts=cut.attempts + reply.attempts)

    async def _send(self, wanted: Body) -> ChatReply:
        """Send one request, and again at once without what the server says it does not take."""
        if self.place.stream:
            streamed = STREAMED if self.place.api == "chat" else {"stream": True}
            wanted = {**wanted, **streamed}
        sent = 1
        while True:
            body = self._learnt.adapt(wanted)
            try:
                reply = await self._fetch_reply(body)
            except APIStatusError as error:
                failure = read_failure(error)
                if failure.code not in _OF_REQUEST or not self._learnt.learn(body, failure.message):
                    raise
                sent += 1
                self._meter.requests += 1
                self._tell_learnt()
            else:
                return reply if sent == 1 else replace(reply, attempts=sent)

    def _tell_learnt(self) -> None:
        for note in self._learnt.notes:
            if note not in self._told:
                self._told.add(note)
                logger.warning("%s: %s", self.place.model, note)

    async def _fetch_reply(self, body: Body) -> ChatReply:
        started, content, path = perf_counter(), write_body(body), self.place.path
        if body.get("stream"):
            stream = await self._client.post(
                path,
                cast_to=object,
                content=content,
                options={"headers": QUIET},
                stream=True,
                stream_cls=AsyncStream[object],
            )
            answer = await read_stream(stream)
        else:
            body_read = await self._client.post(
                path, cast_to=bytes, content=content, options={"headers": QUIET}
            )
            answer = parse_body(body_read)
        latency_ms = (perf_counter() - started) * 1000
        read = read_response if self.place.api == "responses" else read_completion
        return read(answer, self.place.model, latency_ms)


def open_chat(endpoint: Endpoint, traffic: Traffic) -> ModelChat:
    """Open a chat with a model; nothing is sent yet.

    Args:
        endpoint: Model, URL and where the key is.
        traffic: What it shares with the other calls of the run.

    Raises:
        ConfigError: No key, or a URL that cannot be used.
    """
    place = locate_model(endpoint)
    return ModelChat(open_client(place, traffic.timeout_s), place, traffic)
