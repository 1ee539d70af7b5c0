"""Threads for functions that block: reused, and left alone when nobody waits for them any more."""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Jobs: TypeAlias = "SimpleQueue[Callable[[], None] | None]"


class Threads(Generic[T]):
    """As many threads as functions run at one time; belongs to the event loop that uses it.

    A pool of the standard library would be joined at the end of the process, and one function that never
    returns would keep it alive. These end with the process.
    """

    def __init__(self, most_stuck: int) -> None:
        """Start none yet.

        Args:
            most_stuck: So many calls may be given up without having returned.
        """
        self._idle: list[Jobs] = []
        self._closed = False
        self._stuck, self._most_stuck = 0, most_stuck

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in a thread; when the caller is cancelled, the thread goes on by itself.

        Raises:
            CallError: `timeout`: too many calls were given up and have not returned.
        """
        if self._stuck >= self._most_stuck:
            told = f"{self._stuck} calls were given up and never returned; no other is made until one does"
            raise CallError("timeout", told)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        jobs = self._idle.pop() if self._idle else _start_thread()

        def work() -> None:
            try:
                settle = partial(future.set_result, context.run(function))
            except BaseException as error:  # noqa: BLE001 - it is raised where the function was called
                settle = partial(future.set_exception, error)
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(self._settle, jobs, future, settle)

        jobs.put(work)
        try:
            return await future
        except asyncio.CancelledError:
            self._stuck += future.cancelled()
            raise

    def close(self) -> None:
        """End the threads; those that are busy end when their function does."""
        self._closed = True
        for jobs in self._idle:
            jobs.put(None)
        self._idle.clear()

    def _settle(self, jobs: Jobs, future: asyncio.Future[T], settle: Callable[[], None]) -> None:
        self._stuck -= future.cancelled()
        if self._closed:
            jobs.put(None)
        else:
            self._idle.append(jobs)
        if not future.done():
            settle()


def _start_thread() -> Jobs:
    jobs: Jobs = SimpleQueue()

    def serve() -> None:
        while (work := jobs.get()) is not None:
            work()

    Thread(target=serve, name="assay-target", daemon=True).start()
    return jobs
