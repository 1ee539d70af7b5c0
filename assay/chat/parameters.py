"""The body of a chat request, and what a server taught about the parameters it takes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.chat import ChatRequest

Body: TypeAlias = "dict[str, object]"

_REFUSED = re.compile(
    r"unsupported|not support|unrecognized|unknown|unexpected|not permitted|not allowed|deprecated"
    r"|only the default|response_format\.type'? must be",
    re.IGNORECASE,
)
_DROPPABLE = ("temperature", "response_format", "max_completion_tokens")


def build_body(model: str, request: ChatRequest) -> Body:
    """Return the request as the chat-completions API takes it; what is None is left out."""
    body: Body = {"model": model, "messages": [dict(message) for message in request.messages]}
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_output_tokens is not None:
        body["max_tokens"] = request.max_output_tokens
    if request.json_object:
        body["response_format"] = {"type": "json_object"}
    return body


class Learnt:
    """Parameters that one server refused, kept so that each is refused once per chat."""

    def __init__(self) -> None:
        self._renamed: dict[str, str] = {}
        self._dropped: set[str] = set()

    def adapt(self, body: Mapping[str, object]) -> Body:
        """Return a body that holds only what the server is known to take."""
        renamed = {self._renamed.get(name, name): value for name, value in body.items()}
        return {name: value for name, value in renamed.items() if name not in self._dropped}

    def learn(self, sent: Mapping[str, object], complaint: str) -> bool:
        """Read a refusal (status 400 or 422) and say whether the next body will differ from `sent`."""
        if "max_tokens" in sent and "max_completion_tokens" in complaint:
            self._renamed["max_tokens"] = "max_completion_tokens"
            return True
        refused = [name for name in _DROPPABLE if name in sent and name in complaint]
        if not refused or not _REFUSED.search(complaint):
            return False
        self._dropped.update(refused)
        return True
