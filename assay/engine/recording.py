"""The recorder of a batch: its own calls, those of earlier runs, and how an answer is written down."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from assay.contracts.chat import ChatReply, Usage
from assay.errors import CallError
from assay.store.ledger import read_calls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.chat.meter import Meter
    from assay.contracts.json_text import JsonValue
    from assay.store.layout import RunFolder
    from assay.store.ledger import Segment
    from assay.store.past import PastCalls

    JsonObject = dict[str, JsonValue]

_SPENT = tuple(each.name for each in fields(Usage))
_KEPT = tuple(each.name for each in fields(ChatReply) if each.name not in {"usage", "from_ledger"})
LASTING = frozenset({"content_filter", "refusal", "truncated", "empty"})
"""Codes of failures that the same request would meet again: they are not asked for twice."""


class BatchRecorder:
    """Finds and keeps the answers of one batch.

    A request that comes several times in a batch is another one each time, so repeats never get one answer;
    which of equal rows gets which answer does not matter.

    Attributes:
        waiting: Requests whose answers are to come later; a batch with such requests is not done.
    """

    def __init__(self, segment: Segment, past: PastCalls | None, meter: Meter) -> None:
        self.waiting = 0
        self._segment, self._past, self._meter = segment, past, meter
        self._seen: Counter[str] = Counter()

    def find(self, kind: str, request: str) -> tuple[str, ChatReply | CallError | None]:
        """Look a request up in the batch, then in earlier runs, whose failures are asked again."""
        content = hashlib.sha256(f"{kind}\n{request}".encode("utf-8", "surrogatepass")).hexdigest()
        repeat = self._seen[content]
        self._seen[content] += 1
        key = hashlib.sha256(f"{content} {repeat}".encode()).hexdigest()
        known = self._segment.find(key)
        if known is not None:
            self._meter.hits += 1
            outcome = read_outcome(known)
            return key, _make_free(outcome) if "reused" in known and isinstance(
                outcome, ChatReply
            ) else outcome
        if self._past is None or (found := self._past.find(key)) is None:
            return key, None
        reply = read_outcome(found)
        if isinstance(reply, CallError):
            return key, None
        self._meter.hits += 1
        self._segment.append(key, write_outcome(reply, datetime.now(UTC)) | {"reused": True})
        return key, _make_free(reply)

    def keep(self, key: str, outcome: ChatReply | CallError) -> None:
        """Append an answer, or a failure that would come again; others are asked again some day."""
        if isinstance(outcome, CallError) and outcome.code not in LASTING:
            return
        self._segment.append(key, write_outcome(outcome, datetime.now(UTC)))


def write_outcome(outcome: ChatReply | CallError, now: datetime) -> JsonObject:
    """Return an outcome as JSON; what is None is left out."""
    written: JsonObject = {"at": now.isoformat(timespec="milliseconds")}
    reply = outcome.reply if isinstance(outcome, CallError) else outcome
    if isinstance(outcome, CallError):
        written |= {"code": outcome.code, "message": outcome.message, "attempts": outcome.attempts}
    if reply is not None:
        parts: JsonObject = {name: value for name in _KEPT if (value := getattr(reply, name)) is not None}
        usage = reply.usage
        parts["usage"] = {name: value for name in _SPENT if (value := getattr(usage, name)) is not None}
        written["reply"] = parts
    return written


def read_outcome(written: Mapping[str, JsonValue]) -> ChatReply | CallError:
    """Read what `write_outcome` wrote; fields of a later version are left out."""
    parts = written.get("reply")
    reply = None
    if isinstance(parts, dict):
        usage = parts.get("usage")
        spent = Usage(**_pick(Usage, usage if isinstance(usage, dict) else {}))
        known = _pick(ChatReply, parts)
        reply = replace(ChatReply(**known), usage=spent, from_ledger=True)
    if reply is not None and "code" not in written:
        return reply
    attempts = written.get("attempts")
    return CallError(
        str(written.get("code")),
        str(written.get("message")),
        attempts=attempts if isinstance(attempts, int) else 1,
        reply=reply,
    )


def sum_spent(folder: RunFolder) -> tuple[int, Usage]:
    """Return how many answers a run has paid for so far, and what they came to."""
    count, spent = 0, Usage()
    for _, written in read_calls(folder):
        outcome = read_outcome(written)
        reply = outcome.reply if isinstance(outcome, CallError) else outcome
        if reply is not None and "reused" not in written:
            count, spent = count + 1, spent.plus(reply.usage)
    return count, spent


def _make_free(reply: ChatReply) -> ChatReply:
    """Return an answer that an earlier run paid for."""
    return replace(reply, usage=replace(reply.usage, cost_usd=0.0))


def _pick(kind: type[ChatReply | Usage], parts: Mapping[str, JsonValue]) -> dict[str, Any]:
    names = _SPENT if kind is Usage else _KEPT
    return {name: parts[name] for name in names if name in parts}
