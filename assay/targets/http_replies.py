"""Answers of an HTTP service with status 200: whole or in events, read as a reply or as the failure it is."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from assay.contracts.json_text import LENIENT, is_deep
from assay.errors import CallError
from assay.targets.json_paths import parse_path
from assay.targets.replies import read_reply, unfold_choices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.chat import ChatReply
    from assay.contracts.json_text import JsonValue
    from assay.targets.http_file import HttpFile

    JsonObject = dict[str, JsonValue]

_DELTAS = [
    parse_path(text, "delta")
    for text in (
        "choices[0].delta.content",
        "delta.text",
        "delta",
        "output_text",
        "answer",
        "text",
        "content",
    )
]
_ALWAYS = ("error", "model", "usage")  # read from their usual places all the same


def read_answer(file: HttpFile, text: str, latency_ms: float) -> ChatReply:
    """Read a body.

    Args:
        file: Where the body holds what.
        text: The body.
        latency_ms: Time of the request, in milliseconds.

    Raises:
        CallError: As `read_reply`; `html_body` for a body that is not JSON, `empty` for none.
    """
    if not text.strip():
        raise CallError("empty", "status 200 without a body")
    value = _parse(text)
    return read_reply(
        _collect(file, [value]),
        model=file.place,
        latency_ms=latency_ms,
        shown=text,
        wanted=_tell_wanted(file),
    )


def read_events(file: HttpFile, events: Sequence[str], latency_ms: float) -> ChatReply:
    """Read the data of the events of an answer, but for the one that ends it.

    The text is that of all pieces, else what the path of `output_text` leads to; everything else is read
    from the last event that has it.

    Args:
        file: Where the events hold what.
        events: Their data, in order.
        latency_ms: Time of the request, in milliseconds.

    Raises:
        CallError: As `read_reply`; `html_body` for an event that is not JSON where a path is to be read.
    """
    delta = None if file.stream is None else file.stream.delta
    values: list[JsonValue] = []
    pieces: list[str] = []
    for event in events:
        try:
            values.append(_parse(event))
        except CallError:
            if delta is not None or file.paths or event.lstrip().startswith(("{", "<")):
                raise
            pieces.append(event)  # a service that sends bare text
            continue
        paths = _DELTAS if delta is None else [delta]
        found = (path.read(values[-1]) for path in paths)
        pieces += [next((text for text in found if isinstance(text, str)), "")]
    answer = _collect(file, values)
    if any(pieces):
        answer = {**answer, "output_text": "".join(pieces)}
    shown = "\n".join(events[-1:]) or "no event"
    return read_reply(
        answer, model=file.place, latency_ms=latency_ms, shown=shown, wanted=_tell_wanted(file, "a delta")
    )


def _parse(text: str) -> JsonValue:
    with suppress(ValueError, RecursionError):
        value: JsonValue = LENIENT.decode(text)
        if not is_deep(text, value):
            return value
    raise CallError("html_body", f"status 200 with a body that is not JSON: {text}")


def _collect(file: HttpFile, values: Sequence[JsonValue]) -> JsonObject:
    """Return the answer object that the values make, the last that has something winning.

    Where the place of the text is named, the usual places of what is not named do not count.
    """
    answer: JsonObject = {}
    for value in values:
        usual = unfold_choices(value) if isinstance(value, dict) else {}
        names = _ALWAYS if "output_text" in file.paths else tuple(usual)
        answer |= {name: usual[name] for name in names if usual.get(name) is not None}
        found = {name: path.read(value) for name, path in file.paths.items()}
        answer |= {name: member for name, member in found.items() if member is not None}
    return answer


def _tell_wanted(file: HttpFile, other: str = "") -> str:
    """Say where a text was looked for."""
    path = file.paths.get("output_text")
    if path is not None:
        return f"looked for {path.text}"
    usual = "looked for output_text, response, answer, text, output and choices[0].message.content"
    return f"{usual}{' and ' + other if other else ''}; name its path as output_text in [response]"
