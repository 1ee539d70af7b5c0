"""The gate of one endpoint: how many calls are under way, how fast they start, and when all of them pause."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from http import HTTPStatus
from typing import TYPE_CHECKING

from assay.chat.buckets import Bucket
from assay.chat.pace import Pace

if TYPE_CHECKING:
    from assay.chat.failures import Failure
    from assay.chat.halt import Halt

FIRST_LIMIT = 32
LONGEST_PAUSE_S = 60.0
ROOM = 1.25  # times the calls that a pace keeps under way, so that their number never chokes it
RECENT = 0.1  # weight of the last answer in the mean latency


class Gate:
    """Admits calls in the order they came: so many under way, so many a second, none during a pause.

    The limit doubles with every clean round trip until the first trouble (429, 503, timeout); from then on
    trouble halves it and a clean round trip adds one. Where the server refused for the rate (429), a pace
    is learnt as well. Belongs to one event loop at a time; a call enters and leaves in the same task.

    Attributes:
        limit: Calls that may be under way now.
        in_flight: Calls that are.
        refused: Requests that were told to come later.
    """

    def __init__(
        self,
        ceiling: int,
        halt: Halt,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        longest_s: float = LONGEST_PAUSE_S,
    ) -> None:
        """Open the gate.

        Args:
            ceiling: Most calls under way at one time.
            halt: The word to stop, which ends every wait.
            rpm: Requests that may start in a minute.
            tpm: Tokens that those may take.
            longest_s: Longest pause that a server may ask for; one that asks for more is not waited for.
        """
        self._ceiling = max(1, ceiling)
        self.limit = min(FIRST_LIMIT, self._ceiling)
        self.in_flight = 0
        self.refused = 0
        self._halt = halt
        self._longest_s = longest_s
        self._requests = Bucket(rpm) if rpm else None
        self._tokens = Bucket(tpm) if tpm else None
        self._pace = Pace()
        self._paused_until = 0.0
        self._slow_start = True
        self._halved_at = -math.inf
        self._answered = 0  # since the limit changed
        self._latency_s: float | None = None
        self._keeps_pace = False
        self._queue: deque[tuple[asyncio.Future[bool], int]] = deque()
        self._started: dict[asyncio.Task[object] | None, float] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        halt.on_stop(self._send_away)

    @property
    def waiting(self) -> int:
        """Calls that wait to be admitted."""
        return len(self._queue)

    @property
    def rate(self) -> float | None:
        """Requests a second that are started, None while no pace was learnt."""
        return self._pace.rate

    @property
    def paused_s(self) -> float:
        """Seconds left of a pause for all."""
        return max(0.0, self._paused_until - self._loop.time()) if self._loop else 0.0

    async def enter(self, tokens: int = 0) -> None:
        """Wait for a slot and for the moment to start.

        Args:
            tokens: What the call is expected to take.

        Raises:
            CallError: The run was stopped meanwhile.
        """
        if self._halt.reason is not None:
            raise self._halt.to_error()
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move(loop)
        now = loop.time()
        if self._queue or self.in_flight >= self.limit or self._find_moment(now, tokens) > now:
            await self._wait(loop, tokens)
            now = loop.time()
        else:
            self._admit(now, tokens)
        self._started[asyncio.current_task()] = now

    def leave(self, failure: Failure | None) -> None:
        """Give the slot back and learn from how the call went; None: it was answered."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        started = self._started.pop(asyncio.current_task(), now)
        self.in_flight -= 1
        if failure is None:
            self._note_answer(now - started)
        elif failure.is_trouble:
            self._note_trouble(failure, now, started)
        if self._queue:
            self._release()

    def correct(self, expected: int, used: int) -> None:
        """Replace the tokens that a call was expected to take by those it took."""
        if self._tokens is not None:
            self._tokens.correct(expected, used)

    def _find_moment(self, now: float, tokens: int) -> float:
        """Return when a call may start, were there a slot; not after `now`: at once."""
        moment = max(self._paused_until, self._pace.next_at)
        if self._requests is not None:
            moment = max(moment, self._requests.find_moment(now, 1))
        if self._tokens is not None:
            moment = max(moment, self._tokens.find_moment(now, tokens))
        return moment

    def _admit(self, now: float, tokens: int) -> None:
        self.in_flight += 1
        self._pace.take(now)
        if self._requests is not None:
            self._requests.take(now, 1)
        if self._tokens is not None:
            self._tokens.take(now, tokens)

    async def _wait(self, loop: asyncio.AbstractEventLoop, tokens: int) -> None:
        """Wait in the queue."""
        place = (loop.create_future(), tokens)
        self._queue.append(place)
        if len(self._queue) == 1:
            self._release()
        try:
            admitted = await place[0]
        except asyncio.CancelledError:
            if place in self._queue:
                self._queue.remove(place)
            elif not place[0].cancelled() and place[0].result():
                self.in_flight -= 1
            self._release()
            raise
        if not admitted:
            raise self._halt.to_error()

    def _release(self) -> None:
        """Admit those at the head of the queue whose moment has come, and set the timer for the next."""
        loop = asyncio.get_running_loop()
        while self._queue and self.in_flight < self.limit:
            waiter, tokens = self._queue[0]
            now = loop.time()
            moment = self._find_moment(now, tokens)
            if moment > now and not waiter.done():
                self._set_timer(loop, moment)
                return
            self._queue.popleft()
            if not waiter.done():
                self._admit(now, tokens)
                waiter.set_result(True)

    def _set_timer(self, loop: asyncio.AbstractEventLoop, moment: float) -> None:
        if self._timer is not None:
            if self._timer.when() == moment:
                return
            self._timer.cancel()
        self._timer = loop.call_at(moment, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._release()

    def _send_away(self) -> None:
        """End every wait: the run was stopped."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue:
            waiter, _ = self._queue.popleft()
            if not waiter.done():
                waiter.set_result(False)

    def _move(self, loop: asyncio.AbstractEventLoop) -> None:
        """Serve another event loop; those who waited in the last one are gone with it."""
        self._loop = loop
        self._timer = None
        self._queue.clear()
        self._started.clear()

    def _note_answer(self, latency_s: float) -> None:
        mean = self._latency_s
        self._latency_s = latency_s if mean is None else mean + RECENT * (latency_s - mean)
        self._answered += 1
        if self._answered >= self.limit:
            self._answered = 0
            self.limit = min(self._ceiling, self.limit * 2 if self._slow_start else self.limit + 1)
        if self._keeps_pace:
            self._make_room()

    def _note_trouble(self, failure: Failure, now: float, started: float) -> None:
        wait_s = failure.wait_s or 0.0
        asked_too_much = wait_s > self._longest_s
        if failure.is_refusal:
            self.refused += 1
        if failure.is_refusal and not asked_too_much:
            self._paused_until = max(self._paused_until, now + wait_s)
        if started > self._halved_at:
            self._slow_start = False
            self._halved_at, self._answered = now, 0
            self.limit = max(1, self.limit // 2)
            self._keeps_pace = False
        if failure.status == HTTPStatus.TOO_MANY_REQUESTS and not asked_too_much:
            self._pace.slow_down(now, started, wait_s)
            self._keeps_pace = True
            self._make_room()
        elif wait_s and not asked_too_much and self._pace.rate is None:
            self._pace.spread(self._paused_until, self.limit, self._latency_s or 0.0)

    def _make_room(self) -> None:
        """Keep the limit above what the pace needs: a rate was refused, not a number of calls."""
        rate, latency_s = self._pace.rate, self._latency_s
        if rate is not None and latency_s is not None:
            needed = math.ceil(ROOM * rate * latency_s + self._pace.ahead) + 1
            self.limit = min(self._ceiling, max(self.limit, needed))
