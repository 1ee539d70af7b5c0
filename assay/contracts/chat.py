"""The one-method protocol through which judges and targets talk to a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.json_text import JsonValue


Role = Literal["system", "developer", "user", "assistant", "tool"]
Message: TypeAlias = (
    "Mapping[str, JsonValue]"  # chat-completions form: role, content, tool_calls, tool_call_id
)


def text_message(role: Role, content: str) -> Message:
    """Return a message that holds nothing but text."""
    return {"role": role, "content": content}


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What to ask.

    Attributes:
        messages: The conversation so far, oldest first.
        temperature: Sampling temperature; None leaves it to the server.
        max_output_tokens: Upper bound of the answer; None leaves it to the server.
        json_object: Ask the server for a JSON object.
    """

    messages: tuple[Message, ...]
    temperature: float | None = None
    max_output_tokens: int | None = None
    json_object: bool = False


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back.

    Attributes:
        text: The answer; empty when the model said nothing.
        model: The model as the server names it.
        finish_reason: Why the answer ended, as the server says it.
        tool_calls_json: JSON list of tool calls with `type`, `tool_call_id`, `name`, `arguments`.
        input_tokens: Tokens of the request, None when the server does not say.
        output_tokens: Tokens of the answer.
        cached_tokens: Part of the input served from a cache.
        reasoning_tokens: Part of the output spent on reasoning.
        latency_ms: Time of the last request, in milliseconds.
        attempts: Requests sent, retries included.
    """

    text: str
    model: str
    finish_reason: str | None = None
    tool_calls_json: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    latency_ms: float = 0.0
    attempts: int = 1


class Chat(Protocol):
    """Something that answers a chat request."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request.

        Raises:
            CallError: This call failed for good; the row keeps the code.
            EndpointError: Key, model or URL are wrong; no further call makes sense.
        """
        ...
