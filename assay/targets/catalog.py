"""All kinds of targets, and the way from a configuration to one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import ConfigError
from assay.targets import azure, openai, stored

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.targets.contract import Target

TARGETS = (stored.KIND, openai.KIND, azure.KIND)


def build_target(config: RunConfig) -> Target:
    """Open the target that a configuration names; nothing is sent yet.

    Raises:
        ConfigError: The kind is unknown, no model is named, or key or URL are missing.
    """
    for kind in TARGETS:
        if kind.name == config.target.kind:
            return kind.build(config)
    raise ConfigError.unknown("target", config.target.kind, (kind.name for kind in TARGETS))
