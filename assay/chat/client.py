"""The chat with one model: bounded, retried, every failure named."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Self

from assay.chat.answers import parse_reply
from assay.chat.endpoints import locate_model, open_client
from assay.chat.failures import CALL_FAILURES, read_failure
from assay.chat.parameters import Learnt, build_body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from openai import AsyncOpenAI

    from assay.chat.endpoints import Place
    from assay.config import Endpoint
    from assay.contracts.chat import ChatReply, ChatRequest

    Sleep = Callable[[float], Awaitable[object]]


class ModelChat:
    """A chat with one model over one connection pool; belongs to the event loop that first uses it.

    Attributes:
        place: Where the model is; its representation shows no secret.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        place: Place,
        *,
        concurrency: int,
        timeout_s: float,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.place = place
        self._client = client
        self._slots = asyncio.Semaphore(concurrency)
        self._timeout_s = timeout_s
        self._sleep = sleep
        self._learnt = Learnt()
        self._proven = False

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request; a call that waits to be asked again keeps its slot.

        Raises:
            CallError: This call failed for good; the row keeps the code.
            EndpointError: Key, model or URL are wrong, or the quota is used up.
        """
        wanted = build_body(self.place.model, request)
        sent = failed = 0
        async with self._slots:
            while True:
                body, sent = self._learnt.adapt(wanted), sent + 1
                try:
                    reply = await self._fetch_reply(body, sent)
                except CALL_FAILURES as error:
                    failure = read_failure(error)
                else:
                    self._proven = True
                    return reply
                if failure.code == "bad_request" and self._learnt.learn(body, failure.message):
                    continue
                failed += 1
                delay = failure.choose_delay(failed, proven=self._proven)
                if delay is None:
                    raise failure.to_error(self.place, proven=self._proven, attempts=sent)
                await self._sleep(delay)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _fetch_reply(self, body: Mapping[str, object], attempts: int) -> ChatReply:
        started = perf_counter()
        async with asyncio.timeout(self._timeout_s):  # the client bounds each read, this the whole answer
            text = await self._client.post("/chat/completions", cast_to=str, body=body)
        latency_ms = (perf_counter() - started) * 1000
        return parse_reply(text, model=self.place.model, latency_ms=latency_ms, attempts=attempts)


def open_chat(
    endpoint: Endpoint, *, concurrency: int, timeout_s: float, sleep: Sleep = asyncio.sleep
) -> ModelChat:
    """Open a chat with a model; nothing is sent yet.

    Args:
        endpoint: Model, URL and where the key is.
        concurrency: Requests under way at any time.
        timeout_s: Seconds that one request may take.
        sleep: How to wait between attempts.

    Raises:
        ConfigError: No key, or a URL that cannot be used.
    """
    place = locate_model(endpoint)
    client = open_client(place, timeout_s)
    return ModelChat(client, place, concurrency=concurrency, timeout_s=timeout_s, sleep=sleep)
