"""Progress on standard error: a bar on a terminal, a plain line every ten seconds elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.engine.prepare import Preparation

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from assay.engine.prepare import Prepared
    from assay.engine.request import RunRequest
    from assay.engine.tools import Monitor

LINE_EVERY_S = 10.0
POLL_EVERY_S = 0.5


class _Quiet:
    def advance(self, done: int, errors: int) -> None:
        """Show nothing."""


class _Bar:
    """A rich progress bar with rate, time left and errors so far."""

    def __init__(self, total: int | None) -> None:
        from rich.console import Console  # only a terminal needs it, and it takes long to import
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._errors, self._done, self._began = 0, 0, time.monotonic()
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[errors]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self.progress.add_task("evaluating", total=total, rate="", errors="")

    def advance(self, done: int, errors: int) -> None:
        """Move the bar on."""
        self._errors += errors
        self._done += done
        rate = self._done / max(time.monotonic() - self._began, 1e-6)
        shown = f"{self._errors} errors" if self._errors else ""
        self.progress.update(self._task, advance=done, rate=f"{rate:,.0f}/s", errors=shown)


class _Lines:
    """Plain lines for a log: at most one per `LINE_EVERY_S`."""

    def __init__(self, total: int | None) -> None:
        self._total, self._done, self._errors = total, 0, 0
        self._began = self._said = time.monotonic()

    def advance(self, done: int, errors: int) -> None:
        """Count, and say so when it is time."""
        self._done += done
        self._errors += errors
        now = time.monotonic()
        if now - self._said < LINE_EVERY_S:
            return
        self._said = now
        rate = self._done / (now - self._began)
        known = self._total is not None and rate
        left = f"{((self._total or 0) - self._done) / rate:,.0f} s left" if known else "time left unknown"
        of = "" if self._total is None else f"/{self._total}"
        sys.stderr.write(f"{self._done}{of} done, {rate:,.1f}/s, {left}, {self._errors} errors\n")


@contextmanager
def watch_reading(*, quiet: bool) -> Generator[Callable[[int], None]]:
    """Say every `LINE_EVERY_S` how many rows were read; a short input is read before the first time."""
    said = time.monotonic()

    def on_rows(rows: int) -> None:
        nonlocal said
        if not quiet and time.monotonic() - said >= LINE_EVERY_S:
            said = time.monotonic()
            sys.stderr.write(f"{rows:,} rows read\n")

    yield on_rows


@contextmanager
def watch_run(prepared: Prepared | Preparation, *, quiet: bool, poll: bool) -> Generator[Monitor]:
    """Show how far a run is.

    Args:
        prepared: The run.
        quiet: Show nothing.
        poll: The work is done elsewhere; look at the parts in the store.
    """
    if quiet:
        yield _Quiet()
        return
    total = None if isinstance(prepared, Preparation) else _count_work(prepared.request, poll=poll)
    if not sys.stderr.isatty():
        with _polling(prepared, lines := _Lines(total), poll=poll):
            yield lines
        return
    bar = _Bar(total)
    with bar.progress, _polling(prepared, bar, poll=poll):
        yield bar


def _count_work(request: RunRequest, *, poll: bool) -> int:
    targets = request.turns if request.config.target.kind != "stored" else 0
    return request.batches if poll else request.evaluations + targets


@contextmanager
def _polling(prepared: Prepared | Preparation, monitor: Monitor, *, poll: bool) -> Generator[None]:
    if not poll:
        yield
        return
    ended = threading.Event()

    def look() -> None:
        seen = 0
        while not ended.wait(POLL_EVERY_S):
            there = len(list((prepared.folder.path / "scores").glob("part-*.parquet")))
            monitor.advance(there - seen, 0)
            seen = there

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
