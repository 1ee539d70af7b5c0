"""The child: a program that loads a grader and scores rows, one JSON line in and one out for each.

Its last argument is JSON: `isolate`, `network`, `parent` and `timeout_s`. The first line it writes says
`walled` or `refused` (no isolation here). The first it reads is the source as a JSON text, and the next it
writes says `ready` or `failed` (the source cannot be loaded). Each further line it reads is a number, a
space and a row; what it writes repeats the number. It starts anew for each batch, so it imports nothing but
the standard library.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any, SupportsFloat

from assay.sandbox import walls

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType

SOURCE = "<grader>"
MAX_MESSAGE = 500


class _Source(SourceFileLoader):
    """Loads a module from its text."""

    def __init__(self, text: str) -> None:
        super().__init__("grader", SOURCE)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        del fullname
        return compile(self._text, SOURCE, "exec", dont_inherit=True)


class _Trap(contextlib.AbstractContextManager["_Trap"]):
    """Keeps whatever is raised inside, SystemExit and KeyboardInterrupt too."""

    error: BaseException | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return True


def _load(text: str) -> Callable[[Any, Any], Any]:
    loader = _Source(text)
    module = ModuleType("grader")
    sys.modules["grader"] = module
    loader.exec_module(module)
    return module.grade


def _describe(error: BaseException) -> dict[str, str]:
    """Say what the grader raised, and in which line of it."""
    code = "grader_memory" if isinstance(error, MemoryError) else "grader_error"
    line, trace = 0, error.__traceback__
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == SOURCE else line
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == SOURCE:
        line = error.lineno or line
    text = "no message"
    with _Trap():
        text = (
            str(error.msg if isinstance(error, SyntaxError) else error)[:MAX_MESSAGE]
            .encode("utf-8", "replace")
            .decode()
        )
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return {"code": code, "message": f"{what} (line {line})" if line else what}


def _check(value: str | bytes | SupportsFloat) -> dict[str, object]:
    """Return the score as a float; a text is none, nor is what float() does not take."""
    number = math.nan
    if not isinstance(value, str | bytes | bytearray):
        with _Trap():
            number = float(value)
    if math.isfinite(number):
        return {"score": number}
    shown = type(value).__name__
    with _Trap():
        shown = repr(value)[:80].encode("utf-8", "replace").decode()
    return {"code": "invalid_result", "message": f"grade returned {shown}, not a finite number"}


def _grade(grade: Callable[[Any, Any], Any], line: bytes) -> dict[str, Any]:
    with _Trap() as trap:
        row: dict[str, Any] = json.loads(line)
        sample, item = row["sample"], row["item"]
        if hasattr(item, "setdefault"):
            item.setdefault("sample", sample)
        return _check(grade(sample, item))
    return _describe(trap.error or RuntimeError("no error"))


def _take_pipes() -> tuple[Any, Any]:
    """Move the two pipes out of the way of the grader's own reading and printing."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(nothing, standard)
    os.close(nothing)
    return requests, replies


def _wall_in(settings: dict[str, Any]) -> str:
    """Put up all walls; return why there can be none."""
    if settings["isolate"]:
        try:
            walls.isolate(network=settings["network"])
        except OSError as error:
            return str(error)
    walls.limit_resources()
    walls.lock_in(settings["parent"], network=settings["network"])
    os.environ.clear()
    return ""


def serve() -> None:
    """Answer until the requests end."""
    settings = json.loads(sys.argv[-1])
    requests, replies = _take_pipes()

    def reply(answer: dict[str, Any]) -> None:
        replies.write(json.dumps(answer).encode() + b"\n")

    refused = _wall_in(settings)
    reply({"refused": refused} if refused else {"walled": True})
    if refused:
        return None
    del sys.argv[1:]
    walls.limit_time(settings["timeout_s"])
    grade = None
    with _Trap() as trap:
        grade = _load(json.loads(requests.readline()))
    if grade is None:
        return reply({"failed": _describe(trap.error or TypeError("grade is None"))})
    reply({"ready": True})
    for line in requests:
        walls.limit_time(settings["timeout_s"])
        number, _, row = line.partition(b" ")
        reply({"row": int(number)} | _grade(grade, row))
    return None
