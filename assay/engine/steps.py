"""The three steps by paths and ids alone, for drivers that run elsewhere."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from assay.config import RunConfig
from assay.contracts.hiding import refuse_secrets
from assay.engine.batch import Batch, run_batch
from assay.engine.driver import drop_unscored, finish
from assay.engine.prepare import Prepared, prepare
from assay.engine.request import RunRequest
from assay.engine.tools import GRACE_S, Silent, open_tools
from assay.errors import ConfigError, SetupError
from assay.store.layout import RunFolder, open_store
from assay.store.locking import lock_run
from assay.store.parts import read_request

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from assay.engine.commit import Outcome
    from assay.engine.tools import Tools


class _Open(NamedTuple):
    tools: Tools
    loop: asyncio.AbstractEventLoop


_open: dict[str, _Open] = {}
"""Tools of the runs that this process works on: limits, budgets and what was learnt hold for a whole run."""


def prepare_file(path: str) -> Prepared:
    """Prepare the run that a JSON file of a RunConfig describes.

    Raises:
        ConfigError: The file is missing or not a run configuration.
    """
    try:
        config = RunConfig.model_validate_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error
    refuse_secrets(config.model_dump(), path)
    return prepare(config)


def load_prepared(store: str, run_id: str) -> Prepared:
    """Return a prepared run from its folder."""
    folder = RunFolder(open_store(store, create=False), run_id)
    return Prepared(folder, RunRequest.model_validate(read_request(folder)))


@asynccontextmanager
async def shared_tools(store: str, run_id: str) -> AsyncGenerator[None]:
    """Open the tools of a run once for all batches that this process works on while the block lasts."""
    prepared = load_prepared(store, run_id)
    with lock_run(prepared.folder):
        async with open_tools(prepared.request.config, prepared.folder) as tools:
            _open[run_id] = _Open(tools, asyncio.get_running_loop())
            try:
                yield
            finally:
                del _open[run_id]


def stop_calls(run_id: str) -> bool:
    """End the calls of a run that this process works on, in order; return whether it does.

    May be called from a signal handler.
    """
    if run_id not in _open:
        return False
    tools, loop = _open[run_id].tools, _open[run_id].loop

    def stop() -> None:
        tools.traffic.halt.stop("stopped", "the run was stopped")
        loop.call_later(GRACE_S, tools.traffic.halt.abort)

    loop.call_soon_threadsafe(stop)
    return True


async def work_batch(store: str, run_id: str, index: int) -> int:
    """Work on one batch; return how many evaluations ended in an error.

    In a process that did not open the tools of the run, the batch has tools of its own.

    Raises:
        SetupError: A key, model or URL is wrong; a run without any scores is then gone from the store.
    """
    prepared = load_prepared(store, run_id)
    try:
        if run_id in _open:
            return await _work(prepared, index, _open[run_id].tools)
        async with open_tools(prepared.request.config, prepared.folder) as tools:
            return await _work(prepared, index, tools)
    except SetupError:
        drop_unscored(prepared)
        raise


async def _work(prepared: Prepared, index: int, tools: Tools) -> int:
    if tools.traffic.halt.reason is not None:
        return 0
    return await run_batch(Batch(prepared.folder, index, prepared.request.config, tools, Silent()))


def commit_prepared(store: str, run_id: str, *, engine: str, flow_run_id: str | None) -> Outcome:
    """Commit a run whose batches are done, or were ended by its budget or its endpoint."""
    reason = _open[run_id].tools.traffic.halt.reason if run_id in _open else None
    return finish(load_prepared(store, run_id), reason, engine=engine, flow_run_id=flow_run_id)
