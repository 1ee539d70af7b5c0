"""The target and the judge of a run, opened once and shared by its batches."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from assay.engine.own import open_catalog
from assay.targets.catalog import build_target

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from assay.chat.client import ModelChat
    from assay.config import RunConfig
    from assay.targets.contract import Target
    from evaluators.catalog import Catalog


class Monitor(Protocol):
    """Somebody who watches a run."""

    def advance(self, done: int, errors: int) -> None:
        """Note that `done` pieces of work ended, `errors` of them in an error."""
        ...


class Silent:
    """A monitor that does not look."""

    def advance(self, done: int, errors: int) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a batch works with."""

    target: Target
    judge: ModelChat | None
    catalog: Catalog


def check_endpoints(config: RunConfig) -> None:
    """Refuse an endpoint without a key or with a URL that cannot be called, without calling it.

    Raises:
        ConfigError: The message names the variable or URL.
    """
    for endpoint in (config.target.endpoint, config.judge):
        if endpoint is not None:
            from assay.chat.endpoints import locate_model  # the client takes a second to import

            locate_model(endpoint)


@asynccontextmanager
async def open_tools(config: RunConfig) -> AsyncGenerator[Tools]:
    """Open the target and the judge, and close them at the end.

    Raises:
        ConfigError: No key, or an endpoint that cannot be written as a URL.
    """
    judge = None
    if config.judge is not None:
        from assay.chat.client import open_chat  # the client takes a second to import

        judge = open_chat(config.judge, concurrency=config.concurrency, timeout_s=config.timeout_s)
    try:
        target = build_target(config)
    except BaseException:
        if judge is not None:
            await judge.aclose()
        raise
    try:
        yield Tools(target, judge, open_catalog(config))
    finally:
        await target.aclose()
        if judge is not None:
            await judge.aclose()
