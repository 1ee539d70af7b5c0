"""The local driver: all batches of a run in this process, ended in order by a signal."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeVar

from assay.config import DEFAULT_STORE
from assay.contracts.tables import SCORES
from assay.engine.batch import Batch, run_batch
from assay.engine.commit import EXIT_UNDECIDED, Outcome, commit
from assay.engine.intake import StoppedReadingError
from assay.engine.pacing import run_batches
from assay.engine.parting import RepeatsFoundError, makes_calls
from assay.engine.signals import EXIT_CODES, listening
from assay.engine.tools import GRACE_S, open_tools
from assay.errors import AssayError, SetupError, UndecidedError
from assay.store.ledger import has_calls
from assay.store.parts import discard_run, list_parts

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from signal import Signals

    from assay.chat.halt import Halt, Reason
    from assay.chat.meter import Meter
    from assay.engine.prepare import Preparation, Prepared
    from assay.engine.tools import Monitor, Tools

ENGINE = "local"
SCORING_S = 5.0  # that what was answered gets to be scored and written after that
logger = logging.getLogger("assay")
T = TypeVar("T")


def drive(prepared: Prepared, monitor: Monitor) -> Outcome:
    """Run every batch and commit.

    The first SIGINT or SIGTERM ends the run in order: no further call is made, those under way get
    `GRACE_S`, and what is there is committed as `partial`. So do a spent budget and an endpoint that failed.

    Raises:
        SetupError: The first calls proved a key, model or URL wrong; nothing is left in the store but
            answers that were paid for.
        UndecidedError: The store failed; what is stored is committed as `partial` where that can be done.
    """
    work = _Work()
    with listening(work.stop, name_resume(prepared)) as request:
        try:
            run_coroutine(work.run(prepared, monitor))
        except asyncio.CancelledError:
            if request.signal is None:
                raise
        except SetupError as error:
            give_up(prepared, error, engine=ENGINE)
        except Exception:  # whatever it was: what is finished stays of use
            with suppress(AssayError):
                if list_parts(prepared.folder, SCORES):
                    commit(prepared, engine=ENGINE, status="partial")
            raise
    if request.signal is not None:
        return commit_stopped(prepared, request.signal, engine=ENGINE)
    return finish(prepared, work.reason, engine=ENGINE)


def finish(
    prepared: Prepared, reason: Reason | None, *, engine: str, flow_run_id: str | None = None
) -> Outcome:
    """Commit a run that came to its end, its own or that of its budget."""
    if reason is None:
        return commit(prepared, engine=engine, flow_run_id=flow_run_id)
    outcome = commit(prepared, engine=engine, status="partial", flow_run_id=flow_run_id)
    more = " with a larger budget" if reason.code == "budget" else ""
    message = f"{reason.message}; what was finished is committed as partial; {name_resume(prepared)}{more}"
    return Outcome(outcome.run_id, "partial", EXIT_UNDECIDED, message)


def name_resume(prepared: Prepared) -> str:
    """Return how a run is gone on with."""
    folder = prepared.folder
    store = "" if folder.store.root == Path(DEFAULT_STORE).absolute() else f" --store {folder.store.root}"
    return f"go on with: assay run --resume {folder.run_id}{store}"


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
                if list_parts(preparation.folder, SCORES):
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
    commit(prepared, engine=engine, status="partial")
    return describe_stop(prepared, signal)


def describe_stop(prepared: Prepared, signal: Signals) -> Outcome:
    """Return how a run ended that a signal stopped."""
    message = f"stopped by {signal.name}; what was finished is committed as partial; {name_resume(prepared)}"
    return Outcome(prepared.folder.run_id, "partial", EXIT_CODES[signal], message)


def give_up(prepared: Prepared, error: SetupError | UndecidedError, *, engine: str) -> NoReturn:
    """End a run that cannot work: its endpoint, mostly.

    Raises:
        SetupError or UndecidedError: Nothing was scored; the run is gone from the store, unless answers were
            paid for.
        UndecidedError: Something was; it is committed as `partial`.
    """
    if drop_unscored(prepared):
        raise error
    if list_parts(prepared.folder, SCORES):
        commit(prepared, engine=engine, status="partial")
        raise UndecidedError(
            f"{error}; what was finished is committed as partial; {name_resume(prepared)}"
        ) from error
    run_id = prepared.folder.run_id
    more = f"{name_resume(prepared)}, or elsewhere with --reuse {run_id}"
    raise type(error)(f"{error}; the answers so far are kept: {more}") from error


def drop_unscored(prepared: Prepared) -> bool:
    """Delete a run that has neither scores nor answers; return whether it was deleted."""
    if list_parts(prepared.folder, SCORES) or has_calls(prepared.folder):
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
    """All batches of a run, as one task that a signal can end.

    Attributes:
        reason: Why the run ended before its last batch; None when it did not.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._reading: Preparation | None = None
        self._halt: Halt | None = None

    async def run(self, prepared: Prepared, monitor: Monitor) -> None:
        """Work on all batches in order."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        async with open_tools(prepared.request.config, prepared.folder) as tools:
            monitor.watch(tools.traffic)
            if makes_calls(prepared.request.config):
                self._halt = tools.traffic.halt
            await run_batches(prepared, tools, monitor)
            self.reason = tools.traffic.halt.reason
            tell_truncated(tools.traffic.meter)

    async def run_ahead(self, preparation: Preparation, monitor: Monitor) -> None:
        """Work on each batch while the next one is read; start anew where the input has to be read again."""
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._reading = preparation
        async with open_tools(preparation.config, preparation.folder) as tools:
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
        """Make no further call and end what is under way after `GRACE_S`; without calls, end at once."""
        if self._reading is not None:
            self._reading.stop()
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._loop is None or self._task is None:
            return
        if self._halt is None:
            self._task.cancel()
            return
        self._halt.stop("stopped", "the run was stopped")
        self._loop.call_later(GRACE_S, self._halt.abort)
        self._loop.call_later(GRACE_S + SCORING_S, self._task.cancel)


def tell_truncated(meter: Meter) -> None:
    """Say how many answers met the output limit, which costs money and scores."""
    if meter.truncated:
        logger.warning("%d of %d model calls hit the output limit", meter.truncated, meter.calls)
