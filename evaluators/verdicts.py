"""Verdicts: what a judge's reply says, read strictly."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from assay.contracts.json_text import parse_json
from assay.errors import CallError
from evaluators.contract import Verdict

if TYPE_CHECKING:
    from assay.contracts.chat import ChatReply
    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Scale

MAX_SHOWN = 200  # characters of a reply in a message
_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL | re.IGNORECASE)


class _UnusableError(Exception):
    """A reply is not what was asked for."""


def read_verdict(reply: ChatReply, scale: Scale) -> Verdict:
    """Read a reply that should be one JSON object with `reason` and `score` or `label`.

    A fence around the object is allowed and other keys are ignored. Nothing is guessed, repaired or moved
    onto the scale.

    Args:
        reply: The judge's answer.
        scale: Where the score must lie.

    Returns:
        The verdict, resting on `reply`.

    Raises:
        CallError: `truncated` when the reply is unusable because it was cut off, else `unparseable`.
    """
    try:
        reason, score, label = _read_parts(reply.text, scale)
    except _UnusableError as error:
        cut = reply.finish_reason == "length"
        problem = "the reply ended at the output limit" if cut else str(error)
        message = f"{problem}; the judge said: {_shorten(reply.text)}"
        raise CallError("truncated" if cut else "unparseable", message) from error
    return Verdict(score=score, label=label, reason=reason, replies=(reply,))


def _read_parts(text: str, scale: Scale) -> tuple[str, float | None, str | None]:
    found = _read_object(text)
    reason, label = found.get("reason"), found.get("label")
    if not isinstance(reason, str):
        raise _UnusableError("no text under `reason`")
    if label is not None and not isinstance(label, str):
        raise _UnusableError("`label` is not a text")
    if label is not None and "score" not in found:
        return reason, None, label
    return reason, _read_score(found.get("score"), scale), label


def _read_object(text: str) -> dict[str, JsonValue]:
    stripped = text.strip()
    fenced = _FENCE.fullmatch(stripped)
    try:
        value = parse_json(fenced.group(1) if fenced else stripped)
    except (ValueError, RecursionError) as error:
        raise _UnusableError("no JSON object") from error
    if not isinstance(value, dict):
        raise _UnusableError("no JSON object")
    return value


def _read_score(value: JsonValue, scale: Scale) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _UnusableError("no number under `score`")
    if value not in scale:
        raise _UnusableError(f"`score` is off the scale {scale}")
    return float(value)


def _shorten(text: str) -> str:
    return repr(text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…")
