"""What the batches of a run share: target, judge, evaluators, traffic, and answers of earlier runs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from assay.chat.prices import check_priced, read_prices
from assay.chat.traffic import Traffic
from assay.engine.canaries import open_canaries
from assay.engine.own import open_catalog
from assay.engine.recording import sum_spent
from assay.engine.reuse import open_reused
from assay.targets.catalog import build_target, check_target

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from assay.chat.client import ModelChat
    from assay.chat.embeddings import EmbeddingModel
    from assay.config import RunConfig
    from assay.store.layout import RunFolder
    from assay.store.past import PastCalls
    from assay.targets.contract import Target
    from evaluators.canaries import Probe
    from evaluators.catalog import Catalog

GRACE_S = 4.0  # that calls under way get to end once the run is stopped
CEILING = 128  # rows worked on side by side where a model is called and the user names no number


class Monitor(Protocol):
    """Somebody who watches a run."""

    def advance(self, done: int, errors: int) -> None:
        """Note that `done` pieces of work ended, `errors` of them in an error."""
        ...

    def watch(self, traffic: Traffic) -> None:
        """Take note of the calls of the run, once, before the first is made."""
        ...


class Silent:
    """A monitor that does not look."""

    def advance(self, done: int, errors: int) -> None:
        """Do nothing."""

    def watch(self, traffic: Traffic) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What a batch works with."""

    target: Target
    judges: tuple[ModelChat, ...]
    embedder: EmbeddingModel | None
    catalog: Catalog
    traffic: Traffic
    past: PastCalls | None
    canaries: tuple[Probe, ...] = ()

    @property
    def ceiling(self) -> int:
        """Rows that are worked on side by side."""
        return self.traffic.ceiling or CEILING


def check_endpoints(config: RunConfig) -> None:
    """Refuse what cannot be called: no key, a bad URL, a file that is not there; nothing is called.

    Raises:
        ConfigError: The message names the variable, URL or file.
    """
    for endpoint in (config.target.endpoint, *config.judges, config.embeddings):
        if endpoint is not None:
            from assay.chat.endpoints import locate_model  # the client takes a second to import

            locate_model(endpoint, "embeddings" if endpoint is config.embeddings else None)
    check_target(config)
    check_priced(config, read_prices(config.limits.prices))


def _set_deadline(traffic: Traffic) -> Callable[[], None]:
    """End the calls of a run at its deadline, and return what calls that off."""
    deadline = traffic.limits.deadline_s
    if deadline is None:
        return lambda: None
    loop = asyncio.get_running_loop()
    told = f"the deadline of {deadline:g} s is over"
    timers = (
        loop.call_later(deadline, traffic.halt.stop, "deadline", told),
        loop.call_later(deadline + GRACE_S, traffic.halt.abort),
    )

    def call_off() -> None:
        for timer in timers:
            timer.cancel()

    return call_off


@asynccontextmanager
async def open_tools(config: RunConfig, folder: RunFolder) -> AsyncGenerator[Tools]:
    """Open the target and the judge, and close them at the end.

    Args:
        config: What was asked for.
        folder: The run; what it spent already counts in its budget.

    Raises:
        ConfigError: No key, or an endpoint that cannot be written as a URL.
    """
    traffic = Traffic(config, run_id=folder.run_id)
    if config.limits.is_budget:
        traffic.meter.begin(*sum_spent(folder))
    async with AsyncExitStack() as opened:
        judges: list[ModelChat] = []
        for endpoint in config.judges:
            from assay.chat.client import open_chat  # the client takes a second to import

            judges.append(open_chat(endpoint, traffic))
            opened.push_async_callback(judges[-1].aclose)
        embedder = None
        if config.embeddings is not None:
            from assay.chat.embeddings import open_embeddings  # the same

            embedder = open_embeddings(config.embeddings, traffic)
            opened.push_async_callback(embedder.aclose)
        target = build_target(config, traffic)
        opened.push_async_callback(target.aclose)
        past = open_reused(config, folder.run_id)
        if past is not None:
            opened.callback(past.close)
        opened.callback(_set_deadline(traffic))
        catalog = open_catalog(config)
        probes = open_canaries(config, catalog)
        yield Tools(target, tuple(judges), embedder, catalog, traffic, past, probes)
