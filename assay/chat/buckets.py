"""What an endpoint takes in a span of time: as much as its user lets it, or as its server counts."""

from __future__ import annotations

import math
from collections import deque

MINUTE_S = 60.0
WINDOW_S = 1.0
PROBE = 2.0  # times what a window takes, to start in one that is probed: it is full at its middle
PROBE_EVERY_S = 5.0
BURST = 4.0  # times the rate at which a window is filled after a pause
BEGIN_S, END_S, LAST_START_S = 0.02, 0.85, 0.75  # of a window: its start is known some milliseconds late
SPARE = 0.02  # of what a window takes, for requests that arrive in its neighbour
MOST_SPARE = 0.1
AS_KNOWN, MORE, MUCH_MORE, ABSURD = 0.9, 1.03, 1.1, 0.25  # times what a window takes: what passed in one
STRIKES = 4  # refusals that came unexpected, with none as expected between: these are no windows


class Bucket:
    """Fills as time passes and holds one second's worth; what the last minute took is kept beside it.

    The bucket spreads, the minute bounds: no minute takes more than the limit, wherever it begins.
    """

    def __init__(self, per_minute: float) -> None:
        self._limit = per_minute
        self._per_s = per_minute / MINUTE_S
        self._size = max(1.0, self._per_s)
        self._level = self._size
        self._filled_at = 0.0
        self._taken: deque[list[float]] = deque()  # moment and amount
        self._total = 0.0

    def find_moment(self, now: float, amount: float) -> float:
        """Return when the amount may be taken, in seconds of the loop's clock; not after `now`: at once.

        An amount above the limit is let through when nothing else was taken for a minute.
        """
        self._fill(now)
        missing = min(amount, self._size) - self._level
        spread = now + missing / self._per_s if missing > 0 else now
        excess = self._total + min(amount, self._limit) - self._limit
        for moment, taken in self._taken:
            if excess <= 0:
                break
            excess -= taken
            spread = max(spread, moment + MINUTE_S)
        return spread

    def take(self, now: float, amount: float) -> None:
        """Take an amount; what the bucket does not hold is owed."""
        self._fill(now)
        self._level -= amount
        self._taken.append([now, amount])
        self._total += amount

    def correct(self, expected: float, used: float) -> None:
        """Replace an amount taken by the one that was used.

        Too much is given back to the oldest entries and too little added to the newest, so that the
        minute never counts less than was used.
        """
        self._level = min(self._size, self._level + expected - used)
        change = used - expected
        if change > 0 and self._taken:
            self._taken[-1][1] += change
            self._total += change
        for entry in self._taken:
            if change >= 0:
                break
            given = min(entry[1], -change)
            entry[1] -= given
            self._total -= given
            change += given

    def _fill(self, now: float) -> None:
        self._level = min(self._size, self._level + max(0.0, now - self._filled_at) * self._per_s)
        self._filled_at = now
        while self._taken and self._taken[0][0] + MINUTE_S <= now:
            self._total -= self._taken.popleft()[1]
        if not self._taken:
            self._total = 0.0  # no dust of rounding


class Windows:
    """A server that takes so many requests in each second of its clock, and says "come in a second" after.

    A window is filled evenly, but for its end. One that is probed is filled twice as fast, and on: a refusal
    at its middle ends its pause at the middle of the next, which is time enough to fill that.

    Attributes:
        takes: Requests that a window takes.
        since: When the first of them began that is known.
        proven: Whether a window after a pause took as many as it should.
    """

    def __init__(self, began: float, takes: int) -> None:
        """Begin with what is known.

        Args:
            began: When a window began, in seconds of the loop's clock.
            takes: Requests that it took.
        """
        self.takes = takes
        self.since = began
        self.proven = False
        self._began = began
        self._spare = int(SPARE * takes)
        self._started = 0
        self._probes = self._resumed = False
        self._probed, self._probe_at = -math.inf, began + PROBE_EVERY_S
        self._sure = False  # of the moment at which windows begin
        self._settled = False  # the last refusal came as expected
        self._strikes = 0

    @property
    def aim(self) -> int:
        """Requests to start in a window."""
        return max(1, self.takes - self._spare)

    def find_start(self, moment: float) -> float:
        """Return when the window of a moment began."""
        return self._began + math.floor((moment - self._began) / WINDOW_S) * WINDOW_S

    def take(self, now: float) -> float:
        """Start a request and return when the next may."""
        if now >= self._began + WINDOW_S:
            self._turn(now)
        self._started += 1
        if self._probes:
            return now + 1 / (PROBE * self.takes)
        left, left_s = self.aim - self._started, self._began + END_S - now
        if left <= 0 or left_s <= 0:
            return self._began + WINDOW_S + BEGIN_S
        return now + max(left_s / left, 1 / (BURST * self.takes))

    def resume(self, moment: float) -> float:
        """Return when to go on, given the end of a pause."""
        self._began, self._started = self.find_start(moment), 0
        self._probes, self._resumed = False, True
        return moment if moment < self._began + LAST_START_S else self._began + WINDOW_S + BEGIN_S

    def explain(self, sent: float, passed: int, began: float) -> bool:
        """Learn from a refusal; False: windows do not explain it.

        Args:
            sent: When the refused request had started.
            passed: Requests of the same window that had passed.
            began: When the first window began, if it took as many.
        """
        start, known = self.find_start(sent), self.takes
        self._probe_at = start + PROBE_EVERY_S
        if abs(start - self._probed) > WINDOW_S / 2:
            self._fall(passed if passed >= ABSURD * known else known - 1)  # else the one before was too full
        elif passed >= ABSURD * known:
            self._rise(passed, began)
        else:
            return False
        return self._strikes < STRIKES

    def _fall(self, passed: int) -> None:
        """Learn from a window that took less than was known."""
        near = passed >= AS_KNOWN * self.aim
        self._spare = min(near * self._spare + near + int(SPARE * passed), int(MOST_SPARE * passed))
        self.takes, self._settled = passed, False
        self._strikes += 1

    def _rise(self, passed: int, began: float) -> None:
        """Learn from a window that was probed; who counted back too few took windows to begin too late."""
        ratio = passed / self.takes
        self._settled = AS_KNOWN <= ratio <= MUCH_MORE
        self._strikes += not self._settled
        if not self._sure and self._strikes <= 1 and ratio > MORE:
            self._began -= self.since - began
            self.since = began
        elif self._settled:
            self._sure = True
        if ratio >= AS_KNOWN:
            self.takes = passed

    def _turn(self, now: float) -> None:
        """Begin a window; one that was probed and took more than was known shows that the limit rose."""
        if self._resumed and self._settled and self._started >= self.aim:
            self._strikes, self.proven = 0, True
        rose = self._probes and self._started > self.takes + self._spare
        if rose:
            self.takes = self._started
        self._began, self._started = self.find_start(now), 0
        self._resumed = False
        self._probes = rose or self._began >= self._probe_at
        if self._probes:
            self._probed, self._probe_at = self._began, self._began + PROBE_EVERY_S
