"""The Responses API: a chat request as it takes it, and its answer as a chat reply."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from assay.chat.answers import as_object, as_objects, mend_text, name_model, read_usage
from assay.chat.completions import write_call
from assay.chat.parameters import PLAIN_JSON, describe_schema
from assay.chat.withheld import keep_paid, reject_error, reject_filtered, reject_refusal
from assay.contracts.chat import ChatReply
from assay.contracts.json_text import dump_json
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.chat.parameters import Body
    from assay.contracts.chat import ChatRequest
    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}  # item type to the key of its arguments
_FINISHED = ("completed", "incomplete", "failed", None)  # other states are answers still being made


def build_input(model: str, request: ChatRequest) -> Body:
    """Return the request as the Responses API takes it; it has neither `seed` nor `stop`."""
    messages = list(request.messages)
    body: Body = {"model": model}
    if messages and messages[0].get("role") == "system" and isinstance(messages[0].get("content"), str):
        body["instructions"] = messages.pop(0)["content"]
    body["input"] = [item for message in messages for item in _convert_message(message)]
    asked: Body = {
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_output_tokens": request.max_output_tokens,
        "text": _build_text(request),
    }
    body.update({name: value for name, value in asked.items() if value is not None})
    body.update(request.params)
    return body


def _build_text(request: ChatRequest) -> Body | None:
    if request.json_schema is not None:
        return {"format": {"type": "json_schema", **describe_schema(request.json_schema)}}
    return {"format": dict(PLAIN_JSON)} if request.json_object else None


def read_response(answer: JsonObject, model: str, latency_ms: float) -> ChatReply:
    """Read a response; arguments and failures as those of `read_completion`."""
    items = as_objects(answer.get("output"))
    texts = [_join_parts(item, "text") for item in items if item.get("type") == "message"]
    refusal = "".join(_join_parts(item, "refusal") for item in items if item.get("type") == "message")
    calls = [call for item in items if (call := _read_call(item))]
    reply = ChatReply(
        text=mend_text("\n".join(text for text in texts if text)),
        model=name_model(answer.get("model"), model),
        finish_reason=_find_finish(answer, calls),
        tool_calls_json=mend_text(dump_json(calls)) if calls else None,
        output_items_json=_dump_items(items),
        usage=read_usage(answer.get("usage")),
        latency_ms=latency_ms,
    )
    _reject_unfinished(answer, reply)
    if reply.finish_reason == "content_filter":
        reject_filtered(answer, reply, "incomplete, reason content_filter")
    reject_refusal(refusal, reply)
    return reply


def _reject_unfinished(answer: JsonObject, reply: ChatReply) -> None:
    status = answer.get("status")
    reject_error(answer.get("error"), reply)
    if status == "failed" or status not in _FINISHED:
        raise CallError("error_body", f"the response has status {status}", reply=keep_paid(reply))
    if not isinstance(answer.get("output"), list):
        shown = json.dumps(answer, ensure_ascii=False)
        raise CallError("no_choices", f"no output in the answer: {shown}", reply=keep_paid(reply))


def _find_finish(answer: JsonObject, calls: list[JsonObject]) -> str | None:
    """Return why a response ended in the words of chat completions."""
    if answer.get("status") == "incomplete":
        reason = as_object(answer.get("incomplete_details")).get("reason")
        return "length" if reason == "max_output_tokens" else mend_text(str(reason or "incomplete"))
    return "tool_calls" if calls else "stop"


def _join_parts(item: JsonObject, name: str) -> str:
    """Join the parts of a message that hold a text under the name (`text`, `refusal`)."""
    content = item.get("content")
    if isinstance(content, str):
        return content if name == "text" else ""
    texts = [part.get(name) for part in as_objects(content)]
    return "".join(text for text in texts if isinstance(text, str))


def _read_call(item: JsonObject) -> JsonObject | None:
    key = _CALLS.get(str(item.get("type")))
    return write_call(item.get("call_id"), item.get("name"), item.get(key)) if key else None


def _dump_items(items: list[JsonObject]) -> str | None:
    """Write the output as one canonical message; None when it is nothing but texts and calls."""
    content: list[JsonObject] = []
    is_more = False
    for item in items:
        kind = item.get("type")
        if kind == "message":
            text = _join_parts(item, "text") or _join_parts(item, "refusal")
            said: JsonObject = {"type": "text", "text": text}
            content += [said] if text else []
        elif kind == "reasoning" and not (item.get("summary") or item.get("content")):
            continue
        else:
            call = _read_call(item)
            is_more = is_more or call is None
            content.append(
                call or {name: value for name, value in item.items() if name != "encrypted_content"}
            )
    return mend_text(dump_json([{"role": "assistant", "content": content}])) if is_more else None


def _convert_message(message: Mapping[str, JsonValue]) -> list[JsonObject]:
    """Return one message of chat completions as items of the Responses API."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        output = content if isinstance(content, str) else dump_json(content)
        return [{"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": output}]
    items: list[JsonObject] = []
    if role == "assistant":
        text = content if isinstance(content, str) else _join_parts({"content": content}, "text")
        said: JsonObject = {"role": role, "content": text}
        items += [said] if text else []
    else:
        parts: JsonValue = content
        if isinstance(content, list):
            parts = [_convert_part(part) for part in content]
        items.append({"role": role, "content": parts})
    return [*items, *(_convert_call(call) for call in as_objects(message.get("tool_calls")))]


def _convert_call(call: JsonObject) -> JsonObject:
    function = as_object(call.get("function"))
    name, arguments = function.get("name"), function.get("arguments")
    return {"type": "function_call", "call_id": call.get("id"), "name": name, "arguments": arguments}


def _convert_part(part: JsonValue) -> JsonValue:
    """Return a part of a user's message; kinds that have no other form stay as they are."""
    match part:
        case {"type": "text", "text": text}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": url, **more}}:
            return {"type": "input_image", "image_url": url, **more}
        case {"type": "file", "file": {**more}}:
            return {"type": "input_file", **more}
        case _:
            return part
