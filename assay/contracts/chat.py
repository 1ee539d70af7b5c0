"""The one-method protocol through which judges and targets talk to a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.json_text import JsonValue
    from assay.errors import CallError

N = TypeVar("N", int, float)
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
        top_p: Nucleus that is sampled from; None leaves it to the server.
        seed: Seed of the sampling, where the server has one.
        stop: Texts that end an answer.
        max_output_tokens: Upper bound of the answer; None leaves it to the server.
        json_object: Ask the server for a JSON object.
        json_schema: JSON Schema of that object, for servers that can hold an answer to one.
        nonce: A random text inside the messages; the request is the same one whatever it is.
        fixed_budget: Whether an answer that is cut off stays cut, instead of being asked for with more room.
        params: Further parameters of the API, by their names there.
    """

    messages: tuple[Message, ...]
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    max_output_tokens: int | None = None
    json_object: bool = False
    json_schema: Mapping[str, JsonValue] | None = None
    nonce: str = ""
    fixed_budget: bool = False
    params: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more calls, and what they cost; None where nobody says.

    Attributes:
        input_tokens: Tokens of the requests.
        output_tokens: Tokens of the answers, reasoning included.
        cached_tokens: Part of the input served from a cache.
        reasoning_tokens: Part of the output spent on reasoning.
        cost_usd: Price in US dollars.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None

    @property
    def total(self) -> int:
        """Tokens in and out."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def plus(self, other: Usage) -> Usage:
        """Return the sum; a None counts as nothing beside a number."""
        return Usage(
            _add(self.input_tokens, other.input_tokens),
            _add(self.output_tokens, other.output_tokens),
            _add(self.cached_tokens, other.cached_tokens),
            _add(self.reasoning_tokens, other.reasoning_tokens),
            _add(self.cost_usd, other.cost_usd),
        )


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What came back.

    Attributes:
        text: The answer; empty when the model said nothing.
        model: The model as the server names it.
        finish_reason: Why the answer ended, as the server says it.
        tool_calls_json: JSON list of tool calls with `type`, `tool_call_id`, `name`, `arguments`.
        output_items_json: JSON list of canonical messages, where the answer is more than text and calls.
        retrieval_json: JSON list of what was retrieved for the answer, where the target says so.
        usage: Tokens of all requests that were sent for the answer.
        latency_ms: Time of the last request, in milliseconds.
        attempts: Requests sent, retries included.
        from_ledger: Whether the answer was taken from the ledger instead of being asked for.
    """

    text: str
    model: str
    finish_reason: str | None = None
    tool_calls_json: str | None = None
    output_items_json: str | None = None
    retrieval_json: str | None = None
    usage: Usage = field(default_factory=Usage)
    latency_ms: float = 0.0
    attempts: int = 1
    from_ledger: bool = False


class Chat(Protocol):
    """Something that answers a chat request."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request.

        Raises:
            CallError: This call failed for good; the row keeps the code.
            EndpointError: Key, model or URL are wrong; no further call makes sense.
        """
        ...


class Recorder(Protocol):
    """Keeps what was answered, so that no answer is paid for twice."""

    def find(self, kind: str, request: str) -> tuple[str, ChatReply | CallError | None]:
        """Look a request up.

        Args:
            kind: Who asks, such as `target` or `judge Relevance 1`.
            request: The request as canonical JSON: model, messages, parameters.

        Returns:
            The key of this occurrence of the request, and what is known of it: the answer, the failure that
            would come again, or None when it has to be asked.
        """
        ...

    def keep(self, key: str, outcome: ChatReply | CallError) -> None:
        """Keep an outcome under the key that `find` gave; returns when it is written.

        Raises:
            StoreError: It cannot be written.
        """
        ...


def _add(first: N | None, second: N | None) -> N | None:
    if first is None or second is None:
        return second if first is None else first
    return first + second
