"""Sampling: how a model is to sample its answer, where options of an evaluator say it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from pydantic import Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import Options

if TYPE_CHECKING:
    from assay.contracts.chat import Chat, ChatReply, ChatRequest


class Sampling(Options):
    """How a model samples; what is not said stays as it is for all judges."""

    temperature: float | None = Field(default=None, ge=0, description="0 is the least random")
    top_p: float | None = Field(default=None, gt=0, le=1, description="share of likely tokens to draw from")
    seed: int | None = Field(default=None, description="seed of the draws, where the server has one")
    max_completions_tokens: int | None = Field(default=None, ge=1, description="room for the answer")
    max_completion_tokens: int | None = Field(
        default=None, ge=1, description="the same, as it is spelt elsewhere"
    )
    reasoning_effort: str | None = Field(default=None, description="how long a reasoning model thinks")

    @model_validator(mode="after")
    def _check_room(self) -> Self:
        if None not in (self.max_completion_tokens, self.max_completions_tokens):
            raise PydanticCustomError("room", "one of max_completion_tokens and max_completions_tokens")
        return self


@dataclass(frozen=True, slots=True)
class SampledChat:
    """A chat whose requests are sampled as options say.

    Attributes:
        chat: Who is asked.
        sampling: How.
    """

    chat: Chat
    sampling: Sampling

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request; see `Chat`."""
        asked = self.sampling
        room = asked.max_completion_tokens or asked.max_completions_tokens
        params: dict[str, JsonValue] = dict(request.params)
        if asked.reasoning_effort is not None:
            params["reasoning_effort"] = asked.reasoning_effort
        changed = replace(
            request,
            temperature=request.temperature if asked.temperature is None else asked.temperature,
            top_p=request.top_p if asked.top_p is None else asked.top_p,
            seed=request.seed if asked.seed is None else asked.seed,
            max_output_tokens=room or request.max_output_tokens,
            params=params,
        )
        return await self.chat.complete(changed)
