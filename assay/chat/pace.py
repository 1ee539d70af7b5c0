"""How fast an endpoint takes requests, learnt from those it refuses, and the moment the next may start."""

from __future__ import annotations

import math
import random
from array import array
from bisect import bisect_left, bisect_right, insort

from assay.chat.buckets import PROBE, WINDOW_S, Windows

MARGIN = 0.98  # of the rate that passed up to a refusal: the pace that is held
HOLD = 9.0  # a pace is held so many times as long as its refusal made everyone wait
LONGER_HOLD = 5.0  # more of it each time the same pace proves right
LONGEST_HOLD = 30.0
SHORTEST_HOLD_S, LONGEST_HOLD_S = 5.0, 60.0
UNSURE_HOLD_S = 1.5  # of a pace that is not known to be right
DOUBTED_HOLD_S = 4.0  # of one that was doubted, before a trial
GENTLE = 0.015  # part of the pace that is added in a second after it was held,
GENTLE_S = 3.0  # so long: who counts by the second is met just above what he takes,
LEAP = 0.02  # and on top of it so much,
LEAP_S = 0.6  # doubled as often: a limit that rose is followed
STEEP = 0.1  # part added to the pace from which on the climb is too fast to say where it was refused
STEEP_REQUESTS = 1.5  # the same in requests a second: few are counted coarsely
EPISODE_S = 1.0  # refusals within it have one cause: a window of a second may be full to its end
DOUBT = 0.12  # part taken off a pace that was held and refused all the same; more each time in a row
MOST_DOUBTS = 2  # in a row that are counted
BELOW = 0.96  # of a pace that was doubted: what is held next, whatever a climb seems to show
RISEN = 1.1  # times a doubted pace: what passed above tells of a limit that rose
GUESS = 0.75  # of the pace before: a deeper cut is a guess, and the climb from it leaps at once
LEAST_CUT = 0.5
FASTEST = 5_000.0  # requests a second that nobody has to pace
SLACK_S = 0.02  # how far the schedule is caught up with after a late timer
LONG_WAIT_S = 5.0  # a server that asks for more counts over longer than a second
MEMORY_S = 60.0
SAMPLE = 20.0  # requests that a rate is measured over, and one second at least
SHORTEST_SPREAD_S, LONGEST_SPREAD_S = 0.1, 1.0  # over which requests start again after a pause
FEWEST = 8.0  # requests a second at which a trial can tell whether the server counts in windows
AHEAD_S, FULL_S = 0.15, 0.8  # a trial lasts so long, and no longer, if there are windows to fill
NEAR = 1.04  # times a pace: what passes in the last second of a trial if the pace was right
LATE_S = 0.5  # a refusal that took longer tells nothing about a window
TRIALS = 2  # in vain, after which the next is put off
NO_TRIAL_S = 60.0  # so long, and twice as long the next time,
PROVEN_NO_TRIAL_S = 5.0  # or so long where windows were seen before
OTHER_WAITS_S = 600.0  # or so long where other waits than a second are asked for
AFTER_S = 0.1  # after the moment of the last refusal, which may have been the end of a window
AGAIN_S = 3.0 + AFTER_S  # from a trial in vain to the next
EARLIER_S = 1e-3  # so that the first request of a window is counted in it

_dice = random.SystemRandom()


class Pace:
    """The learnt rate: just below what was refused, held for a while, then raised in growing steps.

    Who asks to wait for a second at every refusal may count by the second. A trial at twice the rate tells:
    it is refused at once by a limit that slides, but only when a window is full. Windows are kept to then.

    All moments are seconds of the loop's clock.

    Attributes:
        rate: Requests a second; None while none was learnt.
        next_at: When the next request may start.
    """

    def __init__(self) -> None:
        self.rate: float | None = None
        self.next_at = 0.0
        self._base = 0.0  # the rate that is held, from which it climbs
        self._climbed = 0.0  # seconds of the climb
        self._late = 1.0  # times that it is slower, because refusals come late
        self._hold = HOLD
        self._right = self._proven = False
        self._doubts = 0
        self._doubted = math.inf
        self._taken_at = 0.0
        self._hold_until = 0.0
        self._cut_at = self._resumed = 0.0  # the last refusal, and the end of its pause
        self._before: float | None = None  # rate, held rate and end of the pause before that refusal
        self._held = self._since = 0.0
        self._spread_until, self._spread_rate = 0.0, 1.0
        self._sent = array("d")
        self._trim_at = 4_096
        self._refused: list[float] = []
        self._windows: Windows | None = None
        self._tried_at: float | None = None  # when a trial began that asks whether there are windows
        self._told_at = -math.inf  # requests that had started before have told all they could
        self._trials, self._no_trial_until, self._no_trial_s = 0, 0.0, NO_TRIAL_S
        self._has_windows = False  # perhaps: it asks to wait for a second
        self._counts = False  # it did have some
        self._measured = False  # the held rate is one that passed

    @property
    def ahead(self) -> float:
        """Requests that may start in a moment on top of the rate."""
        return (self.rate or 0.0) if self._windows or self._tried_at else 0.0

    def take(self, now: float) -> None:
        """Start a request."""
        self._sent.append(now)
        if len(self._sent) >= self._trim_at:
            self._trim(now)
        if self._windows is not None:
            self.next_at, self.rate = self._windows.take(now), float(self._windows.aim)
            return
        rate = self.rate
        if rate is not None:
            rate = self._climb(now, rate)
            self.rate = rate if rate < FASTEST else None
        elif now < self._spread_until:
            rate = self._spread_rate
        if rate is not None:
            self.next_at = max(self.next_at, now - SLACK_S) + 1 / rate

    def spread(self, until: float, requests: int, round_trip_s: float) -> None:
        """Let requests start one after the other when a pause ends, where no rate is known."""
        spread_s = min(LONGEST_SPREAD_S, max(SHORTEST_SPREAD_S, round_trip_s))
        self._spread_until, self._spread_rate = until + spread_s, requests / spread_s
        self.next_at = max(self.next_at, until + _dice.uniform(0.0, 1.0) / self._spread_rate)

    def slow_down(self, now: float, sent: float, wait_s: float) -> None:
        """Learn from a request that was refused for its rate.

        A request that had started before the refusal it follows does not slow down again: it makes the
        measure of the same rate better.

        Args:
            now: When the refusal came.
            sent: When the request had started.
            wait_s: Seconds that the server asks to wait, 0 when it names none.
        """
        insort(self._refused, sent)
        self._has_windows = wait_s == WINDOW_S and now - sent < LATE_S
        if wait_s != WINDOW_S:
            self._no_trial_until = now + OTHER_WAITS_S
        if sent <= self._told_at:
            return
        if self._windows is not None:
            self._follow(self._windows, now, sent, wait_s)
            return
        tried_at, self._tried_at = self._tried_at, None
        if tried_at is not None and sent > tried_at and self._has_windows:
            self._judge(now, sent, tried_at)
            return
        if (sent > self._cut_at and now >= self._cut_at + EPISODE_S) or not self._base:
            self._before, self._held, self._since = self.rate, self._base, self._resumed
            self._doubts = min(MOST_DOUBTS, self._doubts + 1) if self._before == self._held else 0
            self._proven = self._right
            self._cut_at = now
        tried, passed = self._measure(sent, wait_s)
        least = max(LEAST_CUT * (self._before or tried), 1 / max(1.0, wait_s))
        rate = self._choose_rate(passed)
        self._measured = rate >= MARGIN * least and (self._before or 0.0) <= self._held
        self._base = self.rate = max(rate, MARGIN * least)
        self._late = max(1.0, now - sent)
        self._resumed = max(self._resumed, now + wait_s)
        self._plan(wait_s)
        self.next_at = self._resumed + _dice.uniform(0.0, 1.0) / self.rate

    def _follow(self, windows: Windows, now: float, sent: float, wait_s: float) -> None:
        """Learn from a refusal of a server that counts in windows, as it seems."""
        held = windows.aim
        _, passed = self._count(windows.find_start(sent), sent)
        began = self._look_back(windows.since, passed - windows.takes)
        if self._has_windows and windows.explain(sent, passed, began):
            self._wait_for(windows, now)
            return
        self._windows, self._base = None, float(held)
        if windows.proven:
            self._counts, self._no_trial_until = True, now + PROVEN_NO_TRIAL_S
        else:
            self._put_off_trials(now)
        self._right = False
        self._keep(now, wait_s)

    def _judge(self, now: float, sent: float, tried_at: float) -> None:
        """Say what the trial that was refused shows: windows, or nothing, which leaves the pace as it was."""
        lasted = sent - tried_at
        takes = round(self._base / MARGIN)
        if AHEAD_S * (1 + self._doubts) <= lasted <= FULL_S:
            self._windows, self._trials = Windows(self._look_back(sent, takes), takes), 0
            self._wait_for(self._windows, now)
            return
        self._trials += 1
        _, passed = self._count(sent - 1.0, sent)
        told = self._right or self._no_trial_s > NO_TRIAL_S or self._trials == TRIALS
        self._right = told if lasted > FULL_S else self._right or passed <= NEAR * self._base
        self._hold = min(LONGEST_HOLD, self._hold + LONGER_HOLD)
        self._keep(now, WINDOW_S)
        if told:
            self._put_off_trials(now)
        elif lasted <= FULL_S:
            self._hold_until = sent + AGAIN_S

    def _keep(self, now: float, wait_s: float) -> None:
        """Go on as before after a pause."""
        self._told_at, self.rate, self._climbed = now, self._base, 0.0
        self._resumed = now + wait_s
        self._hold_until = self._resumed + (self._hold if self._right else UNSURE_HOLD_S)
        self.next_at = self._resumed + _dice.uniform(0.0, 1.0) / self._base

    def _wait_for(self, windows: Windows, now: float) -> None:
        """Go on with windows after a pause."""
        self._told_at, self.rate = now, float(windows.aim)
        self.next_at = windows.resume(now + WINDOW_S)

    def _look_back(self, moment: float, requests: int) -> float:
        """Return a moment before which so many requests had not yet started."""
        place = bisect_left(self._sent, moment) - requests
        return self._sent[min(max(0, place), len(self._sent) - 1)] - EARLIER_S

    def _put_off_trials(self, now: float) -> None:
        """Try no more for a while whether there are windows, for a longer one each time."""
        self._trials = 0
        self._no_trial_until, self._no_trial_s = now + self._no_trial_s, 2 * self._no_trial_s

    def _choose_rate(self, passed: float) -> float:
        """Return the rate to hold, given the one that passed up to a refusal."""
        before, held = self._before, self._held
        if before is None:
            return MARGIN * passed
        if before <= held:
            self._doubted = before
            return min(MARGIN * passed, (1 - DOUBT * self._doubts) * before)
        rate = MARGIN * min(passed, before)
        if self._proven and before <= self._steep:
            rate = (rate + held) / 2
        if passed > RISEN * self._doubted:
            self._doubted = math.inf
        return min(rate, BELOW * self._doubted)

    @property
    def _steep(self) -> float:
        """The rate above which a climb was too fast to tell; few requests a second are counted coarsely."""
        return self._held * (1 + STEEP) + STEEP_REQUESTS

    def _plan(self, wait_s: float) -> None:
        """Choose how long to hold the rate and how to climb then; a rate found in a slow climb is right."""
        before, held = self._before, self._held
        self._right = before is not None and held < before <= self._steep
        self._hold = min(LONGEST_HOLD, self._hold + LONGER_HOLD) if self._right and self._proven else HOLD
        hold_s = min(LONGEST_HOLD_S, max(SHORTEST_HOLD_S, self._hold * wait_s))
        self._hold_until = self._resumed + (hold_s + AFTER_S if self._right else UNSURE_HOLD_S)
        if self._doubts and self._may_try and not self._counts:
            self._hold_until = self._resumed + DOUBTED_HOLD_S
        guessed = before is None or (before <= held and self._base < GUESS * before)
        self._climbed = GENTLE_S if guessed else 0.0

    def _measure(self, sent: float, wait_s: float) -> tuple[float, float]:
        """Return the requests a second that were started and that passed, up to a refused one."""
        span = max(1.0, SAMPLE / self._before) if self._before else 1.0
        since = max(sent - span, min(self._since, sent - 1.0))
        tried, passed = self._count(since, sent)
        lasted = sent - since
        if wait_s > LONG_WAIT_S:  # the server counts over longer than a second
            whole = max(sent - MEMORY_S, self._since)
            _, all_passed = self._count(whole, sent)
            return tried / lasted, min(passed / lasted, all_passed / (sent - whole + wait_s))
        return tried / lasted, passed / lasted

    def _count(self, since: float, until: float) -> tuple[int, int]:
        started = bisect_right(self._sent, until) - bisect_right(self._sent, since)
        refused = bisect_right(self._refused, until) - bisect_right(self._refused, since)
        return started, started - refused

    def _climb(self, now: float, rate: float) -> float:
        """Return the rate, raised while requests wait for it after it was held."""
        if now > self._hold_until and now - self.next_at < max(SLACK_S, 1 / rate):
            if self._tried_at is not None or self._may_try:
                return self._try(now)
            self._climbed += min(now - max(self._taken_at, self._hold_until), 2 / rate) / self._late
            leaps = max(0.0, self._climbed - GENTLE_S) / LEAP_S
            rate = self._base * (1 + GENTLE * self._climbed + LEAP * (2**leaps - 1))
        self._taken_at = now
        return rate

    @property
    def _may_try(self) -> bool:
        known = self._has_windows and (self._right or self._measured)
        return known and self._base >= FEWEST and self._taken_at >= self._no_trial_until

    def _try(self, now: float) -> float:
        """Return the rate of a trial; one that nobody refuses shows a limit that rose."""
        if self._tried_at is None:
            self._tried_at = now
        elif now > self._tried_at + 2 * WINDOW_S:
            self._tried_at, self._base = now, MARGIN * PROBE * self._base
        self._taken_at = now
        return PROBE * self._base

    def _trim(self, now: float) -> None:
        old = bisect_right(self._sent, now - MEMORY_S)
        del self._sent[:old]
        del self._refused[: bisect_right(self._refused, now - MEMORY_S)]
        self._trim_at = max(4_096, 2 * len(self._sent))
