"""Graders: Python sources with a function `grade(sample, item)`, run in a child process behind walls."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

import orjson

from assay.errors import ConfigError, ContractError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

TIMEOUT_S = 120.0
MAX_REPLY = 64 << 10  # bytes of one reply; the child bounds what it says far below
START_S = 30.0  # until the child stands; a slow disk is no fault of the grader
_ROOT = str(Path(__file__).parents[2])
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from assay.sandbox.child import serve; "
    "sys.path.pop(0); serve()"
)


@dataclass(frozen=True, slots=True)
class Grade:
    """What a grader said about one row: a score, or an error code with a message.

    Attributes:
        score: Finite number; None for an error.
        error_code: `grader_error` (it raised), `grader_timeout`, `grader_memory`, `grader_crash` (its
            process ended) or `invalid_result` (no finite number).
        error_message: What happened, for a person.
    """

    score: float | None
    error_code: str | None = None
    error_message: str | None = None


_FORGED = Grade(None, "invalid_result", "the grader wrote into the pipe for its results")
_stops: list[float] = []  # when graders were told to stop


def stop_graders() -> None:
    """End the graders that run now, within a second; the rest of their rows is not graded."""
    _stops.append(time.monotonic())


def check_network(*, allow_network: bool) -> None:
    """Make sure that graders can run here as they should.

    Raises:
        ConfigError: This system does not let a process cut itself off the network, and that is not allowed.
    """
    refused = "" if allow_network else find_obstacle()
    if refused:
        raise ConfigError(
            "Python graders run without network, which this system does not let a process give up "
            f"({refused}); --allow-graders-network runs them with it"
        )


@functools.cache
def find_obstacle() -> str:
    """Return why processes cannot be isolated here, empty where they can; one child tries it, once."""
    with _Child(TIMEOUT_S, isolate=True, network=False) as child:
        return child.find_refusal()


def run_grader(
    source: str, rows: Sequence[bytes], *, timeout_s: float = TIMEOUT_S, allow_network: bool = False
) -> list[Grade]:
    """Grade rows in a child process, in order.

    The child has no environment, 2 GB of memory, an empty folder and two cores, and starts no process.
    It serves all rows, so what the source keeps in globals lasts from row to row; where it ends or is ended,
    another takes the rest. Where the system allows it, it also has no network and a root of its own. All
    that lies there are the libraries of the system and of this Python (`lib`, `lib64` and `share` of its
    prefixes, installed packages, this one), read-only, and five devices that store nothing: no file of the
    user, no secret of `/etc`, no `/proc`, no pipe, socket or disk. Packages that are installed by a link to
    a folder elsewhere cannot be imported.

    What remains: the source can read those libraries and write to a pipe or socket that lies among them. As
    it shares a process with what calls it, it can answer for its rows whatever it likes; an answer without
    the number of its row is `invalid_result`. With `allow_network`, the network is all its own, and a system
    without namespaces leaves the files of the user open to it.

    Args:
        source: Python text that defines `grade`.
        rows: One JSON line each, without its end: `{"sample": ..., "item": ...}`.
        timeout_s: Seconds of wall time for one row, and for loading the source.
        allow_network: Whether the network stays, and whether a system without isolation will do.

    Raises:
        ConfigError: As `check_network`.
    """
    check_network(allow_network=allow_network)
    isolate, stops = not find_obstacle(), len(_stops)
    grades: list[Grade] = []
    while len(grades) < len(rows):
        if len(_stops) > stops:
            return [
                *grades,
                *[Grade(None, "grader_stopped", "the run was stopped")] * (len(rows) - len(grades)),
            ]
        with _Child(timeout_s, isolate=isolate, network=allow_network) as child:
            failure = child.load(source)
            if failure is not None:
                return [*grades, *[failure] * (len(rows) - len(grades))]
            child.feed(rows, len(grades))
            grades.extend(_read_grades(child, range(len(grades), len(rows))))
    return grades


def _read_grades(child: _Child, numbers: range) -> Iterator[Grade]:
    """Yield grades until all are there or the child is of no more use, the last one saying so."""
    for number in numbers:
        answer = child.read()
        if answer is None:
            yield child.explain()
            return
        if answer.get("row") != number:
            yield _FORGED
            return
        yield _read_grade(answer)


def _read_grade(answer: dict[str, Any]) -> Grade:
    score = answer.get("score")
    if isinstance(score, float) and math.isfinite(score):
        return Grade(score)
    code, message = answer.get("code", "invalid_result"), answer.get("message", "the grader gave no result")
    return Grade(None, str(code), str(message))


class _Child:
    """A running child; leaving the context ends it and removes what it wrote."""

    def __init__(self, timeout_s: float, *, isolate: bool, network: bool) -> None:
        self._timeout_s, self._stops = timeout_s, len(_stops)
        self._deadline = math.inf
        self._lock = threading.Lock()
        self._late = self._garbled = False
        self._ended = threading.Event()
        with contextlib.ExitStack() as stack:
            folder = "/"  # isolated, it finds one of its own
            if not isolate:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-grader-"))
            settings = {"isolate": isolate, "network": network, "timeout_s": timeout_s}
            self._process = _start(folder, settings)
            self._requests, self._replies = _take(self._process.stdin), _take(self._process.stdout)
            self._threads = [threading.Thread(target=self._watch, daemon=True)]
            self._threads[0].start()
            stack.callback(self._end)
            self._closing = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def find_refusal(self) -> str:
        """Return why the child could not put up its walls, empty when it could."""
        answer = self.read(START_S)
        if answer is None:
            return "the child did not start"
        return "" if "walled" in answer else str(answer.get("refused", "no answer"))

    def load(self, source: str) -> Grade | None:
        """Hand over the source; return what is wrong with it."""
        refused = self.find_refusal()
        if refused:
            return Grade(None, "grader_crash", f"no child process for the grader: {refused}")
        self._send([orjson.dumps(source)])
        answer = self.read()
        if answer is None:
            return self.explain()
        return None if "ready" in answer else _read_grade(answer.get("failed", {}))

    def feed(self, rows: Sequence[bytes], first: int) -> None:
        """Begin to hand over rows from the first on, by number; the child reads them at its own pace."""
        lines = (b"%d %b" % (number, rows[number]) for number in range(first, len(rows)))
        self._threads.append(threading.Thread(target=self._send, args=(lines,), daemon=True))
        self._threads[-1].start()

    def read(self, limit: float | None = None) -> dict[str, Any] | None:
        """Return the next answer; None when the child ended, was ended for being late, or talks nonsense."""
        self._deadline = time.monotonic() + (self._timeout_s if limit is None else limit)
        line = self._replies.readline(MAX_REPLY)
        with self._lock:  # either the answer counts or the child is late, for this row alone
            self._deadline = math.inf
        self._garbled = bool(line)
        try:
            return None if self._late else dict(orjson.loads(line))
        except (ValueError, TypeError):
            return None

    def explain(self) -> Grade:
        """Say how the child ended."""
        self._end()
        code = self._process.returncode
        if self._late or code == -getattr(signal, "SIGXCPU", 0):
            return Grade(None, "grader_timeout", f"the grader took more than {self._timeout_s:g} s")
        if self._garbled:
            return _FORGED
        try:
            how = signal.Signals(-code).name
        except ValueError:
            how = f"exit code {code}"
        return Grade(None, "grader_crash", f"the grader ended its process: {how}")

    def _watch(self) -> None:
        """End the child once it is late."""
        while not self._ended.wait(min(1.0, self._timeout_s / 4)):
            with self._lock:
                self._late = time.monotonic() > self._deadline
                if self._late or len(_stops) > self._stops:
                    return _kill(self._process)
        return None

    def _send(self, lines: Iterable[bytes]) -> None:
        try:
            for line in lines:
                self._requests.write(line + b"\n")
            self._requests.flush()
        except (OSError, ValueError):
            return  # the child has ended; the reading side finds out

    def _end(self) -> None:
        if self._ended.is_set():
            return
        self._ended.set()
        if self._process.poll() is None:
            _kill(self._process)
        self._process.wait()
        for thread in self._threads:
            thread.join()
        with contextlib.suppress(OSError):
            self._requests.close()
        self._replies.close()


def _start(folder: str, settings: dict[str, Any]) -> subprocess.Popen[bytes]:
    told = orjson.dumps(settings | {"parent": os.getpid()}).decode()
    return subprocess.Popen(  # noqa: S603 - fixed arguments, no shell
        [sys.executable, "-I", "-B", "-X", "utf8", "-c", _START, _ROOT, told],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={},
        start_new_session=True,  # Ctrl-C is for the parent
    )


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process that was not waited for yet, and its group where there are such."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _take(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise ContractError("a child without pipes")
    return pipe
