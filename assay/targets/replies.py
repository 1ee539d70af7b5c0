"""Answer objects: what functions, programs and services return, read as a reply or as the failure it is."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from assay.chat.answers import find_message, mend_text, read_usage
from assay.contracts.chat import ChatReply, Usage
from assay.contracts.json_text import TOO_DEEP, dump_json, is_deep, parse_json
from assay.datasets.messages import canonical_calls, canonical_messages
from assay.errors import CallError
from assay.targets.messages import dump_items, list_calls, read_text

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

TEXT_KEYS = ("output_text", "response", "answer", "text", "output")
RETRIEVAL_KEYS = ("retrieval", "retrieval_executions")
OTHER_KEYS = ("output_items", "tool_calls", *RETRIEVAL_KEYS, "citations", "model", "finish_reason", "error")
COUNT_KEYS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost_usd")
ANSWER_KEYS = (*TEXT_KEYS, *OTHER_KEYS, *COUNT_KEYS, "usage")
"""Keys of an answer object; the first text there is counts."""

_ACCEPTED = f"accepted are {', '.join(TEXT_KEYS)}"


def read_reply(
    value: JsonObject, *, model: str, latency_ms: float, shown: str | None = None, wanted: str = _ACCEPTED
) -> ChatReply:
    """Read an answer object.

    A text that is no text is its JSON; lists of messages give the text in them. Citations stand with the
    message of the assistant, under `citations`.

    Args:
        value: The object, with some of `ANSWER_KEYS`.
        model: Name to keep when the object names no model.
        latency_ms: Time of the call, in milliseconds.
        shown: What was answered, for messages; None: the object.
        wanted: Where a text was looked for, for messages.

    Raises:
        CallError: `error_body` it holds an error, `no_output` no text and no tool call, `empty` an empty
            text, `unparseable` a part of the wrong form. Messages are not shortened.
    """
    bare = _read_bare(value, model, latency_ms)
    paid = None if bare.usage == Usage() else bare
    failure = value.get("error")
    if failure:
        raise CallError("error_body", f"the target answered an error: {find_message(failure)}", reply=paid)
    items = _read_items(value.get("output_items"))
    items_json = None if items is None else dump_part([*items])
    calls_json = _read_calls(value.get("tool_calls"), items_json)
    text = _find_text(value, items_json)
    citations = value.get("citations")
    if citations is not None:
        items_json = dump_part(_cite(items, text or "", calls_json, citations))
    reply = replace(
        bare,
        text=mend_text(text or ""),
        tool_calls_json=calls_json,
        output_items_json=items_json,
        retrieval_json=_read_retrieval(value),
    )
    if reply.text or calls_json:
        return reply
    if text is None:
        told = dump_json(value) if shown is None else shown
        raise CallError("no_output", f"no text in the answer ({wanted}): {told}", reply=paid)
    raise CallError("empty", "the target said nothing", reply=reply)


def unfold_choices(value: JsonObject) -> JsonObject:
    """Return an answer of chat completions as an answer object; any other as it is."""
    choices = value.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not (isinstance(choice, dict) and isinstance(message, dict)) or any(key in value for key in TEXT_KEYS):
        return value
    said: JsonObject = {"output_text": message.get("content"), "tool_calls": message.get("tool_calls")}
    return {**value, **said, "finish_reason": choice.get("finish_reason")}


def dump_part(value: JsonValue) -> str:
    """Write a part of an answer as JSON text that a table can hold.

    Raises:
        CallError: `unparseable`, when JSON has no form for it or it is nested too deeply.
    """
    try:
        text = dump_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise CallError("unparseable", f"the answer holds what is not JSON: {error}") from None
    if is_deep(text, value):
        raise CallError("unparseable", f"the answer is {TOO_DEEP}")
    return mend_text(text)


def _read_bare(value: JsonObject, model: str, latency_ms: float) -> ChatReply:
    """Return the reply without what was said."""
    named, finish = value.get("model"), value.get("finish_reason")
    return ChatReply(
        text="",
        model=mend_text(named) if isinstance(named, str) and named else model,
        finish_reason=mend_text(finish) if isinstance(finish, str) else None,
        usage=_read_usage(value),
        latency_ms=latency_ms,
    )


def _read_usage(value: JsonObject) -> Usage:
    """Read counts in `usage`, in the form of either API, or beside the text."""
    told = value.get("usage")
    counts = {**value, **told} if isinstance(told, dict) else value
    taken = counts.get("prompt_tokens_details") or counts.get("input_tokens_details") or counts
    written = counts.get("completion_tokens_details") or counts.get("output_tokens_details") or counts
    usage = read_usage({**counts, "prompt_tokens_details": taken, "completion_tokens_details": written})
    cost = counts.get("cost_usd")
    if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < math.inf:
        return replace(usage, cost_usd=float(cost))
    return usage


def _find_text(value: JsonObject, items_json: str | None) -> str | None:
    """Return the first text there is, else that of the output items."""
    for key in TEXT_KEYS:
        text = _write_text(value.get(key))
        if text is not None:
            return text
    return read_text(items_json) if items_json is not None else None


def _write_text(value: JsonValue) -> str | None:
    if isinstance(value, str | None):
        return value
    if isinstance(value, list):
        texts = [entry for entry in value if isinstance(entry, str)]
        if len(texts) == len(value):
            return "\n".join(texts) if texts else None
        said = read_text(dump_part(value))
        if said is not None:
            return said
    return dump_part(value)


def _read_items(value: JsonValue) -> list[JsonObject] | None:
    if value is None or value == []:
        return None
    read = canonical_messages([value] if isinstance(value, dict) else value, "output_items")
    if isinstance(read, str):
        raise CallError("unparseable", read)
    return read.messages


def _read_calls(value: JsonValue, items_json: str | None) -> str | None:
    """Return the tool calls, else those among the output items."""
    if value is None:
        return list_calls(items_json) if items_json is not None else None
    read = canonical_calls(value)
    if isinstance(read, str):
        raise CallError("unparseable", read)
    return dump_part(read.items) if read.items else None


def _read_retrieval(value: JsonObject) -> str | None:
    for key in RETRIEVAL_KEYS:
        told = value.get(key)
        if isinstance(told, dict | list):
            return dump_part([told] if isinstance(told, dict) else told)
        if told is not None:
            raise CallError("unparseable", f"{key} is no list: {dump_part(told)}")
    return None


def _cite(items: list[JsonObject] | None, text: str, calls: str | None, citations: JsonValue) -> JsonValue:
    """Return the output items with the citations in the last message of the assistant."""
    messages: list[JsonValue] = [*items] if items else _make_items(text, calls)
    for place in reversed(range(len(messages))):
        message = messages[place]
        if isinstance(message, dict) and message.get("role") == "assistant":
            messages[place] = {**message, "citations": citations}
            break
    return messages


def _make_items(text: str, calls_json: str | None) -> list[JsonValue]:
    made = parse_json(dump_items(text, calls_json))
    return made if isinstance(made, list) else []
