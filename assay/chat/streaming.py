"""Answers that come in pieces: server-sent events, joined to the answer that would have come in one."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING

from aiohttp import ClientError
from httpx2 import HTTPError
from openai import APIConnectionError

from assay.chat.answers import as_object, as_objects, join_content, parse_body, read_usage
from assay.chat.failures import FailedCallError, Failure
from assay.contracts.chat import ChatReply, Usage
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from httpx2 import Response
    from openai import AsyncStream

    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

TAIL_S = 0.2  # seconds a connection may take to end after its last event, to be used again
_DONE = re.compile(rb"^data:\s*\[DONE\]", re.MULTILINE)
_DONE_SIZE = 16  # bytes that the mark may reach back into what came before
_EVENT = re.compile(rb"^(?:data|event|id|retry|):", re.MULTILINE)
_LINE = re.compile(rb"\r\n|\n|\r")
_CLOSING = ("response.completed", "response.incomplete", "response.failed")


async def read_stream(stream: AsyncStream[object]) -> JsonObject:
    """Read a stream to its end and return the answer that would have come in one.

    A server that was asked for a stream and sends one body is understood as well.

    Args:
        stream: The open stream; it is closed.

    Returns:
        A chat completion or a response as an object.

    Raises:
        APIConnectionError: The connection broke before the answer was complete.
        FailedCallError: It ended in order, but before the answer was complete.
        CallError: It holds no events and no JSON.
    """
    response = stream.response
    try:
        body, broken = await _read_body(response)
    finally:
        await stream.close()
    if body.strip() and not _EVENT.search(body):
        if broken is not None:
            raise APIConnectionError(request=response.request) from broken
        return parse_body(bytes(body))
    events = split_events(bytes(body))
    answer = join_response(events) if _is_response(events) else join_chunks(events)
    if _is_complete(answer) or (broken is None and _DONE.search(body)):
        return answer
    if broken is not None:
        raise APIConnectionError(request=response.request) from broken
    usage = read_usage(answer.get("usage"))
    reply = ChatReply("", str(answer.get("model") or ""), usage=usage) if usage != Usage() else None
    raise FailedCallError(Failure("network", "the stream ended before the answer did", reply=reply))


def split_events(body: bytes) -> list[JsonObject]:
    """Return the data of server-sent events; what is not a JSON object (`[DONE]`, say) is left out."""
    events: list[JsonObject] = []
    data: list[bytes] = []
    for line in (*_LINE.split(body.removeprefix(b"\xef\xbb\xbf")), b""):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            with contextlib.suppress(CallError):
                events.append(parse_body(b"\n".join(data)))
            data = []
    return events


def join_chunks(events: Sequence[JsonObject]) -> JsonObject:
    """Return the chat completion that chunks are the pieces of; of several choices the first."""
    answer: JsonObject = {}
    choice: JsonObject = {}
    message: JsonObject = {}
    calls: list[JsonObject] = []
    for event in events:
        _note_frame(answer, event)
        for piece in as_objects(event.get("choices")):
            if piece.get("index") in (0, None):
                choice |= {
                    name: value for name, value in piece.items() if value is not None and name != "delta"
                }
                _note_delta(message, calls, as_object(piece.get("delta") or piece.get("message")))
    if calls:
        message["tool_calls"] = [*calls]
    if choice:
        choice.pop("delta", None)
        answer["choices"] = [{**choice, "message": message}]
    return answer


def join_response(events: Sequence[JsonObject]) -> JsonObject:
    """Return the response that its events tell of; without a closing event one that is in progress."""
    answer: JsonObject = {"status": "in_progress"}
    items: list[JsonObject] = []
    texts: list[str] = []
    for event in events:
        kind = event.get("type")
        if kind in _CLOSING or kind == "response.created":
            answer = as_object(event.get("response"))
        elif kind == "error" or event.get("error"):
            answer = {**answer, "status": "failed", "error": event.get("error") or event}
        elif kind == "response.output_item.done":
            items.append(as_object(event.get("item")))
        elif kind == "response.output_text.delta":
            texts.append(str(event.get("delta") or ""))
    if not answer.get("output") and (items or texts):  # some servers close with less than they sent
        said: JsonObject = {"type": "message", "content": "".join(texts)}
        answer["output"] = [*items] if items else [said]
    return answer


async def _read_body(response: Response) -> tuple[bytearray, Exception | None]:
    """Read until the mark of the end, or the end; what broke the connection comes beside what came."""
    body = bytearray()
    pieces = response.aiter_bytes()
    try:
        async for piece in pieces:
            seen = max(0, len(body) - _DONE_SIZE)
            body += piece
            if _DONE.search(body, seen):
                break
        with contextlib.suppress(HTTPError, ClientError, TimeoutError):
            async with asyncio.timeout(TAIL_S):
                async for piece in pieces:
                    body += piece
    except (HTTPError, ClientError) as error:
        return body, error
    return body, None


def _is_response(events: Sequence[JsonObject]) -> bool:
    """Whether events are those of the Responses API; chunks have no type."""
    return any(str(event.get("type", "")).startswith(("response.", "error")) for event in events)


def _is_complete(answer: JsonObject) -> bool:
    """Whether an answer says how it ended."""
    choices = as_objects(answer.get("choices"))
    finished = bool(choices and choices[0].get("finish_reason"))
    return finished or bool(answer.get("error")) or answer.get("status", "in_progress") != "in_progress"


def _note_frame(answer: JsonObject, event: JsonObject) -> None:
    """Keep what stands beside the choices: the model's first name, the last usage, an error."""
    if event.get("model") and not answer.get("model"):
        answer["model"] = event["model"]
    usage = event.get("usage") or as_object(event.get("x_groq")).get("usage")
    if usage:
        answer["usage"] = usage
    if event.get("error"):
        answer["error"] = event["error"]


def _note_delta(message: JsonObject, calls: list[JsonObject], delta: JsonObject) -> None:
    for name in ("content", "refusal"):
        text = join_content(delta.get(name))
        if text:
            message[name] = f"{message.get(name) or ''}{text}"
    for piece in as_objects(delta.get("tool_calls")):
        call = _find_call(calls, piece)
        function, added = as_object(call["function"]), as_object(piece.get("function"))
        function["name"] = function.get("name") or added.get("name")
        arguments = added.get("arguments")
        if isinstance(arguments, str):
            function["arguments"] = f"{function.get('arguments') or ''}{arguments}"
        elif arguments is not None:
            function["arguments"] = arguments


def _find_call(calls: list[JsonObject], piece: JsonObject) -> JsonObject:
    """Return the call that a piece belongs to, a new one where none is known.

    Servers that give every call the same index, or none, tell them apart by id.
    """
    index, call_id = piece.get("index"), piece.get("id")
    known = [call for call in calls if index is None or call["index"] == index]
    if call_id:
        known = [call for call in known if call["id"] in (call_id, None)]
    if known:
        known[-1]["id"] = known[-1]["id"] or call_id
        return known[-1]
    calls.append({"index": index, "id": call_id, "function": {}})
    return calls[-1]
