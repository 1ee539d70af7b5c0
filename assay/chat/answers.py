"""What the answers of servers have in common: texts, usage, error objects, the marks of a filter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import orjson

from assay.contracts.chat import Usage
from assay.contracts.json_text import LENIENT, MAX_DEPTH, TOO_DEEP, is_deep
from assay.errors import CallError

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

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


def parse_body(body: bytes) -> JsonObject:
    """Read the body of an answer with status 200 as a JSON object.

    Raises:
        CallError: `html_body` not JSON, `no_choices` JSON of another kind, `unparseable` nested deeper
            than tables hold. The message holds the body in full; whoever shows it hides keys first and
            shortens then.
    """
    try:
        value: JsonValue = orjson.loads(body)
    except ValueError:
        value = _parse_slowly(body.decode("utf-8-sig", "replace"))
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH and is_deep(show_body(body), value):
        raise CallError("unparseable", f"the answer is {TOO_DEEP}: {show_body(body)}")
    if not isinstance(value, dict):
        raise CallError("no_choices", f"no choices in the answer: {show_body(body)}")
    return value


def show_body(body: bytes) -> str:
    """Return a body as text, whatever its encoding."""
    return body.decode("utf-8", "replace")


def read_usage(value: JsonValue) -> Usage:
    """Read the usage of chat completions or of responses; what it does not name is None."""
    usage = as_object(value)
    if not usage:
        return Usage()
    taken = as_object(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    written = as_object(usage.get("completion_tokens_details") or usage.get("output_tokens_details"))
    return Usage(
        _count(usage, "prompt_tokens", "input_tokens"),
        _count(usage, "completion_tokens", "output_tokens"),
        _count(taken, "cached_tokens"),
        _count(written, "reasoning_tokens"),
    )


def find_message(error: JsonValue) -> str:
    """Return the sentence in an error object of any server, else the object as text, not shortened."""
    if isinstance(error, str):
        return error
    for name in ("message", "detail", "error"):
        if isinstance(error, dict) and error.get(name):
            return find_message(error[name])
    return json.dumps(error, ensure_ascii=False)


def list_filtered(value: JsonValue) -> str:
    """Return the categories that a filter reacted to, for the end of a message; empty when it names none.

    Args:
        value: An answer or a part of it, with objects such as `{"violence": {"filtered": true}}` anywhere.
    """
    names: dict[str, None] = {}
    waiting: list[JsonValue] = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            names |= {name: None for name, entry in part.items() if as_object(entry).get("filtered") is True}
            waiting += reversed(part.values())
        elif isinstance(part, list):
            waiting += reversed(part)
    return f" (filtered: {', '.join(names)})" if names else ""


def join_content(content: JsonValue) -> str:
    """Return the text of a message; servers that answer in parts get their text parts joined."""
    if isinstance(content, list):
        texts = [as_object(part).get("text") for part in content]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def name_model(value: JsonValue, usual: str) -> str:
    """Return the model as the server names it, else the usual name."""
    return mend_text(value) if isinstance(value, str) and value else usual


def as_object(value: JsonValue) -> JsonObject:
    """Return the value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_objects(value: JsonValue) -> list[JsonObject]:
    """Return the objects in a list; empty when the value is none."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _parse_slowly(text: str) -> JsonValue:
    """Read what the quick parser refuses: half characters, NaN (as null), a byte order mark."""
    try:
        value: JsonValue = LENIENT.decode(text)
    except (ValueError, RecursionError):
        raise CallError("html_body", f"status 200 with a body that is not JSON: {text}") from None
    return value


def _count(usage: JsonObject, *names: str) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _INT64_MAX:
            return value
    return None
