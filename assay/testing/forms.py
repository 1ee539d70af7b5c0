"""The bodies that a model server sends: completions, chunks, responses, their events, embeddings."""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Json = dict[str, Any]

USAGE: Mapping[str, int] = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
DIMENSIONS = 8  # numbers of an embedding that no step names

_USAGE_NAMES = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "prompt_tokens_details": "input_tokens_details",
    "completion_tokens_details": "output_tokens_details",
}
_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}  # finish to incomplete_details


def build_completion(step: Mapping[str, Any], model: str) -> Json:
    """Return the chat completion of a step."""
    message = {"role": "assistant", "content": step.get("reply")}
    message |= {name: step[name] for name in ("tool_calls", "refusal") if name in step}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": step.get("finish", "stop")}],
        "usage": step.get("usage", USAGE),
    }


def build_chunks(completion: Json) -> list[Json]:
    """Return a chat completion as the chunks of its stream, usage in the last one."""
    frame: Json = {**completion, "object": "chat.completion.chunk", "choices": [], "usage": None}
    choice = completion["choices"][0]
    message = choice["message"]
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in split_text(message["content"] or "")]
    deltas += [{"refusal": piece} for piece in split_text(message.get("refusal") or "")]
    for index, call in enumerate(list_objects(message.get("tool_calls"))):
        arguments = call["function"]["arguments"]
        head = {**call, "function": {**call["function"], "arguments": ""}}
        deltas.append({"tool_calls": [{"index": index, **head}]})
        pieces = split_text(arguments)
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": each}}]} for each in pieces]
    chunks = [{**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    return [*chunks, {**frame, "usage": completion["usage"]}]


def build_response(step: Mapping[str, Any], model: str) -> Json:
    """Return the answer of the Responses API of a step; `output` of a step stands for its items."""
    reason = _CUT.get(step.get("finish", "stop"))
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": model,
        "status": "incomplete" if reason else "completed",
        "incomplete_details": {"reason": reason} if reason else None,
        "error": None,
        "output": step.get("output") or _build_output(step),
        "usage": {_USAGE_NAMES.get(name, name): value for name, value in step.get("usage", USAGE).items()},
    }


def build_events(response: Json) -> list[Json]:
    """Return an answer of the Responses API as the events of its stream."""
    begun: Json = {
        **response,
        "status": "in_progress",
        "output": [],
        "usage": None,
        "incomplete_details": None,
    }
    events: list[Json] = [{"type": "response.created", "response": begun}]
    for place, item in enumerate(response["output"]):
        for part in list_objects(item.get("content")):
            pieces = split_text(part.get("text") or "")
            delta = {"type": "response.output_text.delta", "output_index": place}
            events += [{**delta, "delta": piece} for piece in pieces]
        events.append({"type": "response.output_item.done", "output_index": place, "item": item})
    return [*events, {"type": f"response.{response['status']}", "response": response}]


def build_embeddings(step: Mapping[str, Any], body: Json) -> Json:
    """Return embeddings: those of the step, else numbers that follow from each text alone."""
    asked: str | list[str] = body["input"]
    texts: list[str] = [asked] if isinstance(asked, str) else asked
    vectors: Sequence[Sequence[float]] = step.get("embeddings") or [derive_vector(text) for text in texts]
    is_packed = body.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": pack_vector(vector) if is_packed else vector}
        for index, vector in enumerate(vectors)
    ]
    usage = step.get("usage", {"prompt_tokens": len(texts), "total_tokens": len(texts)})
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}


def derive_vector(text: str) -> list[float]:
    """Return the embedding of a text that no step names: equal texts have equal ones."""
    return [byte / 255 for byte in hashlib.sha256(text.encode("utf-8", "replace")).digest()[:DIMENSIONS]]


def pack_vector(vector: Sequence[float]) -> str:
    """Return a vector as base64 of 32-bit floats, lowest byte first."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def split_text(text: str) -> list[str]:
    """Return a text as pieces of a stream, each a word with the space behind it."""
    return re.findall(r"\s*\S+\s?|\s+", text)


def list_objects(value: list[Json] | None) -> list[Json]:
    """Return a list that may be missing."""
    return value or []


def _build_output(step: Mapping[str, Any]) -> list[Json]:
    parts: list[Json] = []
    if step.get("reply") is not None:
        parts.append({"type": "output_text", "text": step["reply"], "annotations": []})
    if step.get("refusal"):
        parts.append({"type": "refusal", "refusal": step["refusal"]})
    items: list[Json] = []
    if parts:
        items.append(
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": parts}
        )
    calls = list_objects(step.get("tool_calls"))
    items += [{"type": "function_call", "call_id": call["id"], **call["function"]} for call in calls]
    return items
