"""All kinds of targets, and the way from a configuration to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.chat.traffic import Traffic
from assay.errors import ConfigError
from assay.targets import azure, cmd, http, openai, python, stored
from assay.targets.conversation import ConversationTarget

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.targets.contract import Target

TARGETS = (stored.KIND, openai.KIND, azure.KIND, python.KIND, cmd.KIND, http.KIND)
ASKS_A_MODEL = ("openai", "azure")


def build_target(config: RunConfig, traffic: Traffic) -> Target:
    """Open the target that a configuration names; nothing is sent yet.

    Raises:
        ConfigError: The kind is unknown, no model is named, or key or URL are missing.
    """
    for kind in TARGETS:
        if kind.name == config.target.kind:
            if kind.build is None:
                return stored.StoredTarget()
            return ConversationTarget(kind.build(config, traffic), config.target.system)
    raise ConfigError.unknown("target", config.target.kind, (kind.name for kind in TARGETS))


def check_target(config: RunConfig) -> None:
    """Refuse a target that cannot work, such as a function that is not there, without asking it.

    Raises:
        ConfigError: The message names what is missing.
    """
    for kind in TARGETS:
        if kind.name == config.target.kind and kind.build is not None and kind.name not in ASKS_A_MODEL:
            kind.build(config, Traffic(config))  # opens nothing before its first call
