"""Texts as vectors: batches of texts, each one call through the caller of its endpoint."""

from __future__ import annotations

import base64
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Self, TypeAlias

import numpy as np
import orjson
from openai import APIStatusError

from assay.chat.answers import as_objects, name_model, parse_body, read_usage
from assay.chat.caller import Caller
from assay.chat.endpoints import QUIET, locate_model, open_client
from assay.chat.failures import read_failure
from assay.chat.parameters import Learnt, write_body
from assay.chat.pool import run_jobs
from assay.chat.withheld import keep_paid, reject_error
from assay.contracts.chat import ChatReply
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType

    import numpy.typing as npt
    from openai import AsyncOpenAI

    from assay.chat.endpoints import Place
    from assay.chat.traffic import Traffic
    from assay.config import Endpoint
    from assay.contracts.json_text import JsonValue

    Vectors: TypeAlias = npt.NDArray[np.float32]

MODEL_CEILING = 32  # calls under way at one model, where the user names no number
MOST_TEXTS = 128  # of one call
MOST_CHARACTERS = 60_000  # of one call that holds more than one text


class EmbeddingModel:
    """Asks one model for embeddings; belongs to the event loop that first uses it.

    Attributes:
        place: Where the model is; its representation shows no secret.
    """

    def __init__(self, client: AsyncOpenAI, place: Place, traffic: Traffic) -> None:
        self.place = place
        self._client = client
        self._gate = traffic.open_gate(f"{place.url} {place.model}", MODEL_CEILING)
        self._caller = Caller(place, place.model, self._gate, traffic, place.secrets)
        self._meter = traffic.meter
        self._learnt = Learnt()

    def describe(self, texts: Sequence[str]) -> dict[str, JsonValue]:
        """Return the request for texts as the API takes it, before anything was learnt."""
        return {"model": self.place.model, "input": list(texts), "encoding_format": "base64"}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector per text, in order; see `embed_texts`."""
        return await embed_texts(texts, self.ask)

    async def ask(self, texts: Sequence[str]) -> ChatReply:
        """Make one call and return its answer, whose text `unpack_vectors` reads.

        Args:
            texts: Those of one call, none of them empty, which most servers refuse.

        Raises:
            CallError: The call failed for good, or its vectors are not as many as the texts or not of one
                size (`unparseable`).
            EndpointError: Key, model or URL are wrong, or the quota is used up.
        """
        return await self._caller.call(lambda: self._send(texts), tokens=sum(map(len, texts)) // 4)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _send(self, texts: Sequence[str]) -> ChatReply:
        """Send one request, and again at once without what the server says it does not take."""
        wanted = self.describe(texts)
        while True:
            started, body = perf_counter(), self._learnt.adapt(wanted)
            try:
                content = await self._client.post(
                    self.place.path, cast_to=bytes, content=write_body(body), options={"headers": QUIET}
                )
            except APIStatusError as error:
                failure = read_failure(error)
                if failure.code != "bad_request" or not self._learnt.learn(body, failure.message):
                    raise
                self._meter.requests += 1
            else:
                latency_ms = (perf_counter() - started) * 1000
                parsed = parse_body(content)
                reply, vectors = read_embeddings(parsed, len(texts), self.place.model, latency_ms)
                return replace(reply, text=pack_vectors(vectors))


def open_embeddings(endpoint: Endpoint, traffic: Traffic) -> EmbeddingModel:
    """Open a model that embeds; nothing is sent yet.

    Args:
        endpoint: Model, URL and where the key is.
        traffic: What it shares with the other calls of the run.

    Raises:
        ConfigError: No key, or a URL that cannot be used.
    """
    place = locate_model(endpoint, "embeddings")
    return EmbeddingModel(open_client(place, traffic.timeout_s), place, traffic)


async def embed_texts(texts: Sequence[str], ask: Callable[[Sequence[str]], Awaitable[ChatReply]]) -> Vectors:
    """Return one vector per text, in order, from as many calls as they take.

    Args:
        texts: None of them empty, which most servers refuse.
        ask: Makes one call.

    Returns:
        An array of `len(texts)` rows; without texts it has no columns either.

    Raises:
        CallError: A call failed for good, or its vectors are not as many as the texts or not of one size
            (`unparseable`).
        EndpointError: Key, model or URL are wrong, or the quota is used up.
    """
    replies = await run_jobs(split_texts(texts), ask, MODEL_CEILING)
    found = [unpack_vectors(reply.text) for reply in replies]
    sizes = {vectors.shape[1] for vectors in found}
    if len(sizes) > 1:
        raise CallError("unparseable", f"embeddings of different sizes: {sorted(sizes)}")
    vectors = np.concatenate(found) if found else np.empty((0, 0), np.float32)
    if len(vectors) != len(texts):
        raise CallError("unparseable", f"{len(vectors)} embeddings for {len(texts)} texts")
    return vectors


def pack_vectors(vectors: Vectors) -> str:
    """Write the rows of an array as JSON: their length, and the 32-bit floats of all as base64."""
    packed = base64.b64encode(vectors.astype("<f4").tobytes()).decode()
    return f'{{"size":{vectors.shape[1]},"floats":"{packed}"}}'


def unpack_vectors(text: str) -> Vectors:
    """Read what `pack_vectors` wrote.

    Raises:
        CallError: `unparseable`, when it is something else.
    """
    try:
        value = orjson.loads(text)
        floats = np.frombuffer(base64.b64decode(value["floats"], validate=True), dtype="<f4")
        return floats.astype(np.float32).reshape(-1, value["size"])
    except (ValueError, TypeError, KeyError) as error:
        raise CallError("unparseable", "the kept answer holds no embeddings", attempts=0) from error


def split_texts(texts: Sequence[str]) -> list[Sequence[str]]:
    """Split texts into batches of one call each, in order."""
    batches: list[Sequence[str]] = []
    first = size = 0
    for place, text in enumerate(texts):
        is_full = place - first >= MOST_TEXTS or size + len(text) > MOST_CHARACTERS
        if is_full and place > first:
            batches.append(texts[first:place])
            first, size = place, 0
        size += len(text)
    return [*batches, texts[first:]] if texts else []


def read_embeddings(
    answer: dict[str, JsonValue], count: int, model: str, latency_ms: float
) -> tuple[ChatReply, Vectors]:
    """Read an answer with embeddings, ordered by their index.

    Args:
        answer: The parsed body of an answer with status 200.
        count: How many are expected.
        model: Name to keep when the server does not name the model.
        latency_ms: Time of the request, in milliseconds.

    Raises:
        CallError: `error_body` an error object, `unparseable` other vectors than expected.
        FailedCallError: An error object that names a reason which may pass.
    """
    named = name_model(answer.get("model"), model)
    reply = ChatReply("", named, usage=read_usage(answer.get("usage")), latency_ms=latency_ms)
    reject_error(answer.get("error"), reply)
    entries = sorted(as_objects(answer.get("data")), key=_find_place)
    vectors = [_read_vector(entry.get("embedding")) for entry in entries]
    sizes = sorted({len(vector) for vector in vectors})
    if len(vectors) != count or len(sizes) != 1 or sizes[0] == 0:
        text = f"{len(vectors)} embeddings of sizes {sizes} for {count} texts"
        raise CallError("unparseable", text, reply=keep_paid(reply))
    return reply, np.stack(vectors)


def _find_place(entry: dict[str, JsonValue]) -> int:
    """Return the index of an embedding; without indices the order stays."""
    index = entry.get("index")
    return index if isinstance(index, int) else 0


def _read_vector(value: JsonValue) -> Vectors:
    """Return a vector from base64 of 32-bit floats or a list; empty when it is neither."""
    try:
        if isinstance(value, str):
            return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float32)
        return np.asarray(value, dtype=np.float32).reshape(-1)
    except (ValueError, TypeError):
        return np.empty(0, np.float32)
