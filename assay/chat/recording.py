"""Recording: a call is made only when its answer is not known yet, and kept as soon as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.contracts.json_text import dump_json
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from assay.chat.client import ModelChat
    from assay.contracts.chat import ChatReply, ChatRequest, Recorder


async def ask_once(
    recorder: Recorder, kind: str, request: str, ask: Callable[[], Awaitable[ChatReply]]
) -> ChatReply:
    """Return the known answer to a request, else ask and keep what comes.

    Args:
        recorder: What is known.
        kind: Who asks.
        request: The request as canonical JSON.
        ask: Asks.

    Raises:
        CallError: The call failed, now or before.
        StoreError: The answer cannot be kept.
    """
    key, known = recorder.find(kind, request)
    if isinstance(known, CallError):
        raise known
    if known is not None:
        return known
    try:
        reply = await ask()
    except CallError as error:
        recorder.keep(key, error)
        raise
    recorder.keep(key, reply)
    return reply


@dataclass(frozen=True, slots=True)
class RecordedChat:
    """A chat that asks nothing twice.

    Attributes:
        chat: The model.
        recorder: What is known.
        kind: Who asks, such as the name and version of an evaluator.
    """

    chat: ModelChat
    recorder: Recorder
    kind: str

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request; see `ask_once`."""
        text = dump_json(self.chat.describe(request))
        if request.nonce:
            text = text.replace(
                request.nonce, "0" * len(request.nonce)
            )  # so the same question is found again
        return await ask_once(self.recorder, self.kind, text, lambda: self.chat.complete(request))
