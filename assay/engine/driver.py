"""The local driver: all batches of a run in this process, stopped in order by a signal."""

from __future__ import annotations

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.engine.batch import Batch, run_batch
from assay.engine.commit import Outcome, commit
from assay.engine.tools import open_tools
from assay.errors import EndpointError, UndecidedError
from assay.store.parts import discard_run, has_part

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

    from assay.engine.prepare import Prepared
    from assay.engine.tools import Monitor

ENGINE = "local"
EXIT_OF_SIGNAL = {signal.SIGINT: 130, signal.SIGTERM: 143}


def drive(prepared: Prepared, monitor: Monitor) -> Outcome:
    """Run every batch and commit.

    SIGINT and SIGTERM end the run in order: what is stored is committed as `partial`.

    Raises:
        EndpointError: The first calls proved a key, model or URL wrong; nothing is left in the store.
        UndecidedError: The endpoint failed later; what is stored is committed as `partial`.
    """
    stop = Stop()
    with stop.listening():
        try:
            _call(work_batches(prepared, monitor, stop))
        except EndpointError as error:
            _give_up(prepared, error)
    if stop.signal is None:
        return commit(prepared, engine=ENGINE)
    outcome = commit(prepared, engine=ENGINE, status="partial")
    message = f"stopped by {stop.signal.name}; the finished part is committed as partial"
    return Outcome(outcome.run_id, "partial", EXIT_OF_SIGNAL[stop.signal], message)


async def work_batches(prepared: Prepared, monitor: Monitor, stop: Stop) -> None:
    """Work on all batches in order until done or told to stop."""
    async with open_tools(prepared.request.config) as tools:
        for index in range(prepared.request.batches):
            batch = Batch(prepared.folder, index, prepared.request.config, tools, monitor)
            if not await stop.watch(asyncio.ensure_future(run_batch(batch))):
                return


def _give_up(prepared: Prepared, error: EndpointError) -> None:
    if not has_part(prepared.folder.part("scores", 0)):
        discard_run(prepared.folder)
        raise error
    commit(prepared, engine=ENGINE, status="partial")
    raise UndecidedError(f"{error}; the part that was finished is committed as partial") from error


def _call(work: Coroutine[object, object, None]) -> None:
    """Run a coroutine to its end, also where an event loop is already running (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


class Stop:
    """A request to end, set by the first signal; it cancels the batch under way."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self._batch: asyncio.Future[int] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def listening(self) -> Generator[None]:
        """Catch SIGINT and SIGTERM; a second signal acts as usual. Only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._note) for number in EXIT_OF_SIGNAL}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, _frame: object) -> None:
        self.signal = signal.Signals(number)
        for each in EXIT_OF_SIGNAL:
            signal.signal(each, signal.SIG_DFL)
        if self._batch is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._batch.cancel)

    async def watch(self, batch: asyncio.Future[int]) -> bool:
        """Wait for a batch; return whether the run goes on."""
        self._batch, self._loop = batch, asyncio.get_running_loop()
        try:
            await batch
        except asyncio.CancelledError:
            if self.signal is None:
                raise
        return self.signal is None
