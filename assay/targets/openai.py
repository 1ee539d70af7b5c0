"""Target `openai`: a model behind any OpenAI-compatible URL answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.targets.contract import TargetKind
from assay.targets.conversation import ConversationTarget, build_conversation

if TYPE_CHECKING:
    from assay.config import RunConfig


def _build(config: RunConfig) -> ConversationTarget:
    return build_conversation(config, "openai")


KIND = TargetKind("openai", "asks a model behind an OpenAI-compatible URL", _build)
