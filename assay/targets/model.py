"""A model as what answers: the conversation so far goes out, the model's answer comes back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.contracts.chat import ChatRequest
from assay.contracts.json_text import dump_json
from assay.errors import ConfigError

if TYPE_CHECKING:
    from assay.chat.client import ModelChat
    from assay.chat.traffic import Traffic
    from assay.config import RunConfig, Sampling
    from assay.contracts.chat import ChatReply
    from assay.targets.contract import Ask


@dataclass(frozen=True, slots=True)
class ModelAnswerer:
    """Asks a model.

    Attributes:
        chat: How to ask it; closed with the answerer.
        sampling: How it draws.
    """

    chat: ModelChat
    sampling: Sampling

    def describe(self, ask: Ask) -> str:
        """Return the body of the request."""
        return dump_json(self.chat.describe(self._build(ask)))

    async def answer(self, ask: Ask) -> ChatReply:
        """Ask the model."""
        return await self.chat.complete(self._build(ask))

    async def aclose(self) -> None:
        """Close the chat."""
        await self.chat.aclose()

    def _build(self, ask: Ask) -> ChatRequest:
        how = self.sampling
        return ChatRequest(
            ask.messages,
            temperature=how.temperature,
            top_p=how.top_p,
            seed=how.seed,
            stop=how.stop,
            max_output_tokens=how.max_output_tokens,
            fixed_budget=how.max_output_tokens is not None,
            params=how.params,
        )


def build_model(config: RunConfig, traffic: Traffic) -> ModelAnswerer:
    """Open the model that a configuration asks for; nothing is sent yet.

    Raises:
        ConfigError: No model is named, or key or URL are missing.
    """
    from assay.chat.client import open_chat  # slow to import, and not needed for stored answers

    endpoint = config.target.endpoint
    kind = config.target.kind
    if endpoint is None:
        raise ConfigError(f"target {kind!r} needs a model; name it with --model")
    provider = "azure" if kind == "azure" else "openai"
    chat = open_chat(endpoint.model_copy(update={"provider": provider}), traffic)
    return ModelAnswerer(chat, config.target.sampling)
