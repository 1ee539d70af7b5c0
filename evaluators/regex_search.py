"""Regex search: the program that searches texts by Python's `re` in a process of its own.

It imports nothing of this project, so that it starts in a few milliseconds.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PLACEHOLDER = "{{ground_truth}}"
NO_MATCH = -1
TOO_LONG = "regex_timeout"
INVALID = "invalid_pattern"

_TICK = 0.02  # seconds of CPU time between two looks at the clock


class _OverdueError(Exception):
    """A search took more than its time."""


class Searcher:
    """Searches within a limit of CPU time, which a timer of this process watches."""

    def __init__(self, limit: float) -> None:
        """Take the limit of one row in seconds; call `watch` before the first search."""
        self._limit = limit
        self._started = math.inf
        self._parent = os.getppid()

    def watch(self) -> None:
        """Start the timer; `re` lets its signal through while it searches.

        An interrupt from the keyboard is left to the parent, which ends its batch in order.
        """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGVTALRM, self._check_time)
        signal.setitimer(signal.ITIMER_VIRTUAL, _TICK, _TICK)

    def rest(self) -> None:
        """Stop the timer, which would end a process that has no handler any more."""
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def search(self, patterns: Sequence[str], text: str, expected: str | None) -> int | str:
        """Return the place of the first pattern that is found, NO_MATCH, TOO_LONG or INVALID.

        An empty text holds nothing. `{{ground_truth}}` in a pattern stands for the expected text, literally.
        """
        try:
            return self._search(patterns, text, expected)
        except _OverdueError:
            return TOO_LONG
        except (re.error, OverflowError, RecursionError):
            return INVALID

    def _search(self, patterns: Sequence[str], text: str, expected: str | None) -> int:
        self._started = time.process_time()
        try:
            return find_first(patterns, text, expected)
        finally:
            self._started = math.inf

    def _check_time(self, *_: object) -> None:
        if os.getppid() != self._parent:
            sys.exit("nobody waits for the results")
        if time.process_time() - self._started > self._limit:
            self._started = math.inf
            raise _OverdueError


def find_first(patterns: Sequence[str], text: str, expected: str | None) -> int:
    """Return the place of the first pattern that is found, else NO_MATCH."""
    for place, pattern in enumerate(patterns if text else ()):
        if compile_pattern(pattern, expected if PLACEHOLDER in pattern else None).search(text):
            return place
    return NO_MATCH


@functools.lru_cache(maxsize=4096)
def compile_pattern(pattern: str, expected: str | None) -> re.Pattern[str]:
    """Compile a pattern with the expected text, escaped, in place of `{{ground_truth}}`."""
    return re.compile(pattern if expected is None else pattern.replace(PLACEHOLDER, re.escape(expected)))


def main() -> None:
    """Read limit, sets of patterns and rows of [number of a set, text, expected] as JSON; write results."""
    asked = json.load(sys.stdin.buffer)
    searcher = Searcher(asked["limit"])
    searcher.watch()
    results = [searcher.search(asked["sets"][each], text, expected) for each, text, expected in asked["rows"]]
    searcher.rest()
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main()
