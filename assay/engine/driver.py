"""The local driver: all batches of a run in this process, ended in order by a signal."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, TypeVar

from assay.engine.batch import Batch, run_batch
from assay.engine.commit import Outcome, commit
from assay.engine.intake import StoppedReadingError
from assay.engine.parting import RepeatsFoundError
from assay.engine.signals import EXIT_CODES, listening
from assay.engine.tools import open_tools
from assay.errors import AssayError, SetupError, UndecidedError
from assay.store.parts import discard_run, has_part

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from signal import Signals

    from assay.engine.prepare import Preparation, Prepared
    from assay.engine.tools import Monitor, Tools

ENGINE = "local"
T = TypeVar("T")


def drive(prepared: Prepared, monitor: Monitor) -> Outcome:
    """Run every batch and commit.

    SIGINT and SIGTERM end the run in order: what is stored is committed as `partial`.

    Raises:
        SetupError: The first calls proved a key, model or URL wrong; nothing is left in the store.
        UndecidedError: The endpoint failed later; what is stored is committed as `partial`.
    """
    work = _Work()
    with listening(work.stop) as request:
        try:
            run_coroutine(work.run(prepared, monitor))
        except asyncio.CancelledError:
            if request.signal is None:
                raise
        except SetupError as error:
            give_up(prepared, error, engine=ENGINE)
        except Exception:  # whatever it was: what is finished stays of use
            with suppress(AssayError):
                if has_part(prepared.folder.part("scores", 0)):
                    commit(prepared, engine=ENGINE, status="partial")
            raise
    if request.signal is not None:
        return commit_stopped(prepared, request.signal, engine=ENGINE)
    return commit(prepared, engine=ENGINE)


def drive_ahead(preparation: Preparation, monitor: Monitor) -> Outcome:
    """Read, evaluate and write a run at once, and commit: the next part is read while one is evaluated.

    No model is called, so nothing that was paid for is lost with a run that is given up.

    Raises:
        SetupError: The rest of the input cannot be used; nothing is left in the store.
    """
    work = _Work()
    with listening(work.stop) as request:
        try:
            run_coroutine(work.run_ahead(preparation, monitor))
        except (asyncio.CancelledError, StoppedReadingError):
            if request.signal is None:
                preparation.discard()
                raise
        except SetupError:
            preparation.discard()
            raise
        except Exception:  # whatever it was: what is finished stays of use
            with suppress(AssayError):
                if has_part(preparation.folder.part("scores", 0)):
                    commit(preparation.finish(), engine=ENGINE, status="partial")
                else:
                    preparation.discard()
            raise
    prepared = preparation.finish()
    if request.signal is not None:
        return commit_stopped(prepared, request.signal, engine=ENGINE)
    return commit(prepared, engine=ENGINE)


def commit_stopped(prepared: Prepared, signal: Signals, *, engine: str) -> Outcome:
    """Commit what a stopped run has as `partial`; the exit code is that of the signal."""
    outcome = commit(prepared, engine=engine, status="partial")
    message = (
        f"stopped by {signal.name}; what was finished is committed as partial: assay show {outcome.run_id}"
    )
    return Outcome(outcome.run_id, "partial", EXIT_CODES[signal], message)


def give_up(prepared: Prepared, error: SetupError | UndecidedError, *, engine: str) -> NoReturn:
    """End a run that cannot work: its endpoint, mostly.

    Raises:
        SetupError or UndecidedError: Nothing was scored; the run is gone from the store.
        UndecidedError: Something was; it is committed as `partial`.
    """
    if drop_unscored(prepared):
        raise error
    commit(prepared, engine=engine, status="partial")
    raise UndecidedError(f"{error}; what was finished is committed as partial") from error


def drop_unscored(prepared: Prepared) -> bool:
    """Delete a run that has no scores yet; return whether it was deleted."""
    if has_part(prepared.folder.part("scores", 0)):
        return False
    discard_run(prepared.folder)
    return True


def run_coroutine(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine to its end, also where an event loop is already running (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


class _Work:
    """All batches of a run, as one task that a signal can cancel."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._reading: Preparation | None = None

    async def run(self, prepared: Prepared, monitor: Monitor) -> None:
        """Work on all batches in order."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        config = prepared.request.config
        async with open_tools(config) as tools:
            for index in range(prepared.request.batches):
                await run_batch(Batch(prepared.folder, index, config, tools, monitor))
                await asyncio.sleep(0)  # a batch without calls never waits; let a signal through

    async def run_ahead(self, preparation: Preparation, monitor: Monitor) -> None:
        """Work on each batch while the next one is read; start anew where the input has to be read again."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._reading = preparation
        async with open_tools(preparation.config) as tools:
            while True:
                try:
                    await self._follow(preparation, tools, monitor)
                except RepeatsFoundError as found:
                    preparation.restart(found.repeats)
                else:
                    return

    async def _follow(self, preparation: Preparation, tools: Tools, monitor: Monitor) -> None:
        parts = preparation.write_parts()
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(next, parts, None)
            while (index := await asyncio.wrap_future(ahead)) is not None:
                ahead = reader.submit(next, parts, None)
                await run_batch(Batch(preparation.folder, index, preparation.config, tools, monitor))

    def stop(self) -> None:
        """Cancel the work at its next wait, and the reading at its next block."""
        if self._reading is not None:
            self._reading.stop()
        if self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
