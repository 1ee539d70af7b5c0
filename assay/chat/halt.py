"""The word to stop: no further call is made, and those under way get a last moment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Callable

SETUP = "setup"  # code of the reason where an endpoint proved wrong: what is under way is kept, not scored
QUEUED = "queued"  # code of a request whose answer is to come from a batch job
NEVER_ASKED = ("stopped", "budget", "deadline", QUEUED)  # codes of rows not asked, or not to the end


@dataclass(frozen=True, slots=True)
class Reason:
    """Why no further call is made.

    Attributes:
        code: One of `NEVER_ASKED`, or the code of the failure that ended the run.
        message: One sentence.
    """

    code: str
    message: str


class Halt:
    """Told once by whoever ends a run early, and asked before every call. One event loop at a time.

    Attributes:
        reason: Why; None while calls go on.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self._aborted = False
        self._scopes: set[asyncio.Timeout] = set()
        self._wake: list[Callable[[], None]] = []
        self._stopped: asyncio.Event | None = None

    def stop(self, code: str, message: str) -> None:
        """Make no further call; the first reason stays."""
        if self.reason is not None:
            return
        self.reason = Reason(code, message)
        if self._stopped is not None:
            self._stopped.set()
        for wake in self._wake:
            wake()

    def abort(self) -> None:
        """End the calls under way as well."""
        self._aborted = True
        for scope in tuple(self._scopes):
            with suppress(RuntimeError):  # it ends already
                scope.reschedule(0)

    def on_stop(self, wake: Callable[[], None]) -> None:
        """Have a function called when the word comes, such as one that wakes who waits."""
        self._wake.append(wake)

    def check(self) -> None:
        """Refuse a call once the word has come.

        Raises:
            CallError: With the code of the reason.
        """
        if self.reason is not None:
            raise self.to_error()

    def to_error(self) -> CallError:
        """Return the error of a call that was not made."""
        reason = self.reason or Reason("stopped", "the run was stopped")
        code = reason.code if reason.code in NEVER_ASKED else "stopped"
        return CallError(code, f"not asked: {reason.message}", attempts=0)

    def enter(self, scope: asyncio.Timeout) -> None:
        """Remember a call under way, so that `abort` reaches it."""
        self._scopes.add(scope)
        if self._aborted:
            scope.reschedule(0)

    def leave(self, scope: asyncio.Timeout) -> None:
        """Forget a call that ended."""
        self._scopes.discard(scope)

    @property
    def aborted(self) -> bool:
        """Whether calls under way were ended too."""
        return self._aborted

    async def sleep(self, seconds: float) -> None:
        """Wait, but no longer than until the word comes."""
        if self._stopped is None:
            self._stopped = asyncio.Event()
            if self.reason is not None:
                self._stopped.set()
        try:
            async with asyncio.timeout(seconds):
                await self._stopped.wait()
        except TimeoutError:
            return
