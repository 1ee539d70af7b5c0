"""Signals: the first SIGINT or SIGTERM asks a run to end in order, the second acts as usual."""

from __future__ import annotations

import logging
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

logger = logging.getLogger("assay")
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@dataclass(slots=True)
class Request:
    """Whether somebody asked the run to end, and by which signal."""

    signal: signal.Signals | None = None


@contextmanager
def listening(act: Callable[[], None]) -> Generator[Request]:
    """Call `act` on the first signal while the block lasts. Only the main thread can listen."""
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(number: int, _frame: object) -> None:
        request.signal = signal.Signals(number)
        for each in EXIT_CODES:
            signal.signal(each, signal.SIG_DFL)
        logger.warning("%s: ending after the work under way; once more ends at once", request.signal.name)
        act()

    before = {number: signal.signal(number, note) for number in EXIT_CODES}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
