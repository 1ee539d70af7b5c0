"""What a server answered with status 200, read as a chat reply or as the failure it really is."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from assay.contracts.chat import ChatReply
from assay.contracts.json_text import dump_json, parse_json
from assay.errors import CallError

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

SHOWN = 300  # characters of a server's text that a message keeps
_INT64_MAX = 2**63 - 1


def shorten(text: str) -> str:
    """Return the text on one line, valid as UTF-8 and cut after `SHOWN` characters with a mark."""
    line = " ".join(mend_text(text).split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}…"


def mend_text(text: str) -> str:
    """Join surrogate pairs and replace lone halves, which no table can hold, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_reply(body: str, *, model: str, latency_ms: float, attempts: int) -> ChatReply:
    """Read the body of an answer with status 200.

    Args:
        body: The body as text.
        model: Name to keep when the server does not name the model.
        latency_ms: Time of the request, in milliseconds.
        attempts: Requests sent so far.

    Raises:
        CallError: `html_body` not JSON, `error_body` an error object, `no_choices` no answer inside,
            `refusal` or `content_filter` an answer withheld. The message holds the server's text in full;
            whoever shows it hides keys first and shortens then.
    """
    answer = _parse_object(body)
    choice = _find_choice(answer, body)
    message, finish = _as_object(choice.get("message")), choice.get("finish_reason")
    text, calls = _join_content(message.get("content")), _convert_calls(message.get("tool_calls"))
    refusal, named = message.get("refusal"), answer.get("model")
    if finish == "content_filter":
        raise CallError("content_filter", "the server withheld the answer (finish_reason content_filter)")
    if isinstance(refusal, str) and refusal and not text and not calls:
        raise CallError("refusal", f"the model refused: {refusal}")
    usage = _as_object(answer.get("usage"))
    return ChatReply(
        text=mend_text(text),
        model=mend_text(named) if isinstance(named, str) and named else model,
        finish_reason=mend_text(finish) if isinstance(finish, str) else None,
        tool_calls_json=mend_text(dump_json(calls)) if calls else None,
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cached_tokens=_count(_as_object(usage.get("prompt_tokens_details")), "cached_tokens"),
        reasoning_tokens=_count(_as_object(usage.get("completion_tokens_details")), "reasoning_tokens"),
        latency_ms=latency_ms,
        attempts=attempts,
    )


def find_message(error: JsonValue) -> str:
    """Return the sentence in an error object of any server, else the object as text, not shortened."""
    if isinstance(error, str):
        return error
    for name in ("message", "detail", "error"):
        if isinstance(error, dict) and error.get(name):
            return find_message(error[name])
    return json.dumps(error, ensure_ascii=False)


def _parse_object(body: str) -> dict[str, JsonValue]:
    try:
        value: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        raise CallError("html_body", f"status 200 with a body that is not JSON: {body}") from None
    if not isinstance(value, dict):
        raise CallError("no_choices", f"no choices in the answer: {body}")
    return value


def _as_object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}


def _find_choice(answer: dict[str, JsonValue], body: str) -> dict[str, JsonValue]:
    """Return the first choice, which has a message; an error beside or inside it wins."""
    choices = answer.get("choices")
    choice = _as_object(choices[0]) if isinstance(choices, list) and choices else {}
    failure = answer.get("error") or choice.get("error")
    if failure:
        raise CallError("error_body", f"status 200 with an error: {find_message(failure)}")
    if not isinstance(choice.get("message"), dict):
        raise CallError("no_choices", f"no choices in the answer: {body}")
    return choice


def _join_content(content: JsonValue) -> str:
    """Return the text of a message; servers that answer in parts get their text parts joined."""
    if isinstance(content, list):
        texts = [_as_object(part).get("text") for part in content]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _convert_calls(calls: JsonValue) -> list[JsonValue]:
    """Return tool calls in Foundry form; arguments that are not JSON stay the text they are."""
    converted: list[JsonValue] = []
    for call in calls if isinstance(calls, list) else []:
        entry = _as_object(call)
        function = _as_object(entry.get("function"))
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            with contextlib.suppress(ValueError, RecursionError):
                arguments = parse_json(arguments)
        name, call_id = function.get("name"), entry.get("id")
        converted.append({"type": "tool_call", "tool_call_id": call_id, "name": name, "arguments": arguments})
    return converted


def _count(usage: dict[str, JsonValue], name: str) -> int | None:
    value = usage.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INT64_MAX:
        return value
    return None
