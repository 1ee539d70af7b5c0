"""Target `azure`: a deployment of an Azure OpenAI resource answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.targets.contract import TargetKind
from assay.targets.conversation import ConversationTarget, build_conversation

if TYPE_CHECKING:
    from assay.config import RunConfig


def _build(config: RunConfig) -> ConversationTarget:
    return build_conversation(config, "azure")


KIND = TargetKind("azure", "asks a deployment of an Azure OpenAI resource", _build)
