"""The answer of the chat-completions API, read as a chat reply or as the failure it really is."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from assay.chat.answers import as_object, as_objects, join_content, mend_text, name_model, read_usage
from assay.chat.withheld import keep_paid, reject_error, reject_filtered, reject_refusal
from assay.contracts.chat import ChatReply
from assay.contracts.json_text import dump_json, parse_json
from assay.errors import CallError

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

_CUT = frozenset({"max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens"})  # other names of `length`


def read_completion(answer: JsonObject, model: str, latency_ms: float) -> ChatReply:
    """Read a chat completion.

    Args:
        answer: The parsed body of an answer with status 200.
        model: Name to keep when the server does not name the model.
        latency_ms: Time of the request, in milliseconds.

    Raises:
        CallError: `error_body` an error object, `no_choices` no answer inside, `refusal` or
            `content_filter` an answer withheld. What was paid for stays with it. The message holds the
            server's text in full; whoever shows it hides keys first and shortens then.
        FailedCallError: An error object that names a reason which may pass.
    """
    choices = as_objects(answer.get("choices"))
    choice: JsonObject = choices[0] if choices else {}
    message, finish = as_object(choice.get("message")), choice.get("finish_reason")
    calls = _convert_calls(message.get("tool_calls"))
    refusal = message.get("refusal")
    reply = ChatReply(
        text=mend_text(join_content(message.get("content"))),
        model=name_model(answer.get("model"), model),
        finish_reason=_read_finish(finish),
        tool_calls_json=mend_text(dump_json(calls)) if calls else None,
        usage=read_usage(answer.get("usage")),
        latency_ms=latency_ms,
    )
    reject_error(answer.get("error") or choice.get("error"), reply)
    if not isinstance(choice.get("message"), dict):
        shown = json.dumps(answer, ensure_ascii=False)
        raise CallError("no_choices", f"no choices in the answer: {shown}", reply=keep_paid(reply))
    if finish == "content_filter":
        reject_filtered(choice, reply, "finish_reason content_filter")
    if isinstance(refusal, str):
        reject_refusal(refusal, reply)
    return reply


def write_call(call_id: JsonValue, name: JsonValue, arguments: JsonValue) -> JsonObject:
    """Return a tool call in canonical form; arguments that are not JSON stay the text they are."""
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError, RecursionError):
            arguments = parse_json(arguments)
    return {"type": "tool_call", "tool_call_id": call_id, "name": name, "arguments": arguments}


def _convert_calls(calls: JsonValue) -> list[JsonObject]:
    converted: list[JsonObject] = []
    for call in as_objects(calls):
        function = as_object(call.get("function"))
        converted.append(write_call(call.get("id"), function.get("name"), function.get("arguments")))
    return converted


def _read_finish(finish: JsonValue) -> str | None:
    if not isinstance(finish, str):
        return None
    return "length" if finish in _CUT else mend_text(finish)
