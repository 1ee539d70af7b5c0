"""Signals: the first SIGINT or SIGTERM asks a run to end in order, the second ends it at once."""

from __future__ import annotations

import logging
import os
import signal
import sys
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
def listening(act: Callable[[], None], resume: str = "") -> Generator[Request]:
    """Call `act` on the first signal while the block lasts, and end the process on the second.

    Only the main thread can listen.

    Args:
        act: Ends the work in order.
        resume: How to go on; said before the process ends.
    """
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def end(number: int, _frame: object) -> None:
        if resume:
            sys.stderr.write(f"assay: ended at once; {resume}\n")
            sys.stderr.flush()
        os._exit(EXIT_CODES[signal.Signals(number)])

    def note(number: int, _frame: object) -> None:
        request.signal = signal.Signals(number)
        for each in EXIT_CODES:
            signal.signal(each, end)
        logger.warning("%s: ending after the work under way; once more ends at once", request.signal.name)
        act()

    before = {number: signal.signal(number, note) for number in EXIT_CODES}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
