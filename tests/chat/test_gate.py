"""The gate of an endpoint against simulated servers, in virtual time."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.chat.buckets import Bucket
from assay.chat.failures import Failure
from assay.chat.gate import FIRST_LIMIT, Gate
from assay.chat.halt import Halt
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]

LIMIT = 50.0  # requests a second
TIMEOUT = Failure("timeout", "no answer in time")


def refuse(wait_s: float | None, status: int = 429) -> Failure:
    return Failure("rate_limited" if status == 429 else "server_error", "later", wait_s or None, status)


class Server(Protocol):
    limit: float

    def take(self, now: float, in_flight: int, /) -> float | None:
        """Return None for an answer, else the exact seconds until a request would be taken."""
        ...


@dataclass
class Windows:
    """Takes so many requests in each window."""

    limit: float
    length_s: float = 1.0
    _window: int = 0
    _taken: int = 0

    def take(self, now: float, _: int) -> float | None:
        window = math.floor((now + 0.3) / self.length_s)
        self._taken = 0 if window != self._window else self._taken
        self._window = window
        if self._taken >= self.limit * self.length_s:
            return (window + 1) * self.length_s - now - 0.3
        self._taken += 1
        return None


@dataclass
class Sliding:
    """Takes so many requests in any second."""

    limit: float
    _taken: deque[float] = field(default_factory=deque[float])

    def take(self, now: float, _: int) -> float | None:
        while self._taken and self._taken[0] <= now - 1:
            self._taken.popleft()
        if len(self._taken) >= self.limit:
            return self._taken[0] + 1 - now
        self._taken.append(now)
        return None


@dataclass
class Tokens:
    """Takes requests while its bucket holds one."""

    limit: float
    size: float = 1.0
    _level: float = 0.0
    _filled_at: float = 0.0

    def take(self, now: float, _: int) -> float | None:
        self._level = min(self.size, self._level + (now - self._filled_at) * self.limit)
        self._filled_at = now
        if self._level < 1 - 1e-9:
            return (1 - self._level) / self.limit
        self._level -= 1
        return None


@dataclass
class Busy:
    """Takes so many requests at one time."""

    limit: float

    def take(self, _: float, in_flight: int) -> float | None:
        return None if in_flight <= self.limit else 1.0


def name_exactly(wait_s: float) -> float | None:
    return wait_s


def name_whole_seconds(wait_s: float) -> float | None:
    return max(1.0, math.ceil(wait_s))


def name_nothing(_: float) -> float | None:
    return None


@dataclass
class Drive:
    """Rows sent through a gate to a server, as the caller does it.

    Attributes:
        passed: Seconds after the start at which requests were answered.
        refused: Those at which they were not.
        lost: Rows without an answer.
    """

    server: Server
    ceiling: int = 128
    latency_s: float = 0.05
    name_wait: Callable[[float], float | None] = name_whole_seconds
    status: int = 429
    limits: dict[float, float] = field(default_factory=dict[float, float])  # by the second they begin
    passed: list[float] = field(default_factory=list[float])
    refused: list[float] = field(default_factory=list[float])
    lost: int = 0
    _in_flight: int = 0

    async def run(self, seconds: float) -> None:
        self.gate = Gate(self.ceiling, Halt())
        self._began = asyncio.get_running_loop().time()
        await asyncio.gather(*(self._work(seconds) for _ in range(self.ceiling)))
        assert (self.gate.in_flight, self.gate.waiting) == (0, 0)
        assert self.gate.refused == len(self.refused)

    def rate(self, since: float, until: float) -> float:
        return sum(since <= moment < until for moment in self.passed) / (until - since)

    def share_refused(self) -> float:
        return len(self.refused) / (len(self.refused) + len(self.passed))

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._began

    async def _work(self, seconds: float) -> None:
        while self._now < seconds:
            refused = 0
            while (failure := await self._ask()) is not None:
                refused += 1
                delay = failure.choose_delay(0, refused, proven=True, longest_s=60.0)
                if delay is None:
                    self.lost += 1
                    break
                await asyncio.sleep(delay)

    async def _ask(self) -> Failure | None:
        await self.gate.enter()
        assert self.gate.in_flight <= self.ceiling
        failure: Failure | None = None
        self._in_flight += 1
        try:
            failure = await self._serve()
        finally:
            self._in_flight -= 1
            self.gate.leave(failure)
        return failure

    async def _serve(self) -> Failure | None:
        self.server.limit = next(
            (limit for begin, limit in reversed(self.limits.items()) if self._now >= begin), self.server.limit
        )
        wait_s = self.server.take(self._now, self._in_flight)
        (self.passed if wait_s is None else self.refused).append(self._now)
        await asyncio.sleep(self.latency_s if wait_s is None else 0.01)
        return None if wait_s is None else refuse(self.name_wait(wait_s), self.status)


@pytest.mark.parametrize(
    ("server", "name_wait", "ceiling", "latency_s", "settled"),
    [
        (Windows(LIMIT), name_exactly, 512, 0.05, 10),
        (Windows(LIMIT), name_whole_seconds, 128, 0.05, 10),
        (Windows(LIMIT), name_nothing, 128, 2.0, 10),
        (Sliding(LIMIT), name_whole_seconds, 128, 0.05, 10),
        (Sliding(LIMIT), name_whole_seconds, 512, 2.0, 10),
        (Sliding(LIMIT), name_exactly, 128, 2.0, 10),
        (Tokens(LIMIT, 50), name_whole_seconds, 128, 0.05, 10),
        (Tokens(LIMIT), name_exactly, 512, 2.0, 20),
    ],
)
def test_a_limited_server_is_used_to_nine_tenths_and_refuses_few(
    run_virtually: Run,
    server: Server,
    name_wait: Callable[[float], float | None],
    ceiling: int,
    latency_s: float,
    settled: int,
) -> None:
    drive = Drive(server, ceiling, latency_s, name_wait)
    run_virtually(drive.run(60))
    assert drive.rate(settled, 60) >= 0.9 * LIMIT
    assert drive.share_refused() <= 0.1
    assert drive.lost == 0


@pytest.mark.parametrize(("server", "share"), [(Windows(LIMIT), 0.97), (Tokens(LIMIT), 0.88)])
def test_servers_that_ask_for_more_than_they_need_cost_little_more(
    run_virtually: Run, server: Server, share: float
) -> None:
    drive = Drive(server)
    run_virtually(drive.run(100))
    assert drive.rate(25, 100) >= share * LIMIT  # but for windows, a second is lost with every probe
    assert drive.share_refused() <= 0.1


@pytest.mark.parametrize(
    ("server", "name_wait", "late_s"),
    [
        (Sliding(LIMIT), name_exactly, 14),
        (Tokens(LIMIT, 50), name_exactly, 14),
        (Sliding(LIMIT), name_whole_seconds, 24),
        (Windows(LIMIT), name_whole_seconds, 8),
    ],
)
def test_a_limit_that_falls_and_rises_is_followed(
    run_virtually: Run, server: Server, name_wait: Callable[[float], float | None], late_s: float
) -> None:
    drive = Drive(server, name_wait=name_wait, limits={30: LIMIT / 2, 50: LIMIT})
    run_virtually(drive.run(90))
    assert drive.rate(34, 50) >= 0.8 * LIMIT / 2
    assert drive.rate(50 + late_s, 90) >= 0.9 * LIMIT
    assert drive.share_refused() <= 0.1
    assert drive.lost == 0


def test_a_server_that_counts_by_the_minute_is_used_up_every_minute(run_virtually: Run) -> None:
    drive = Drive(Windows(LIMIT, 60.0), latency_s=0.2)
    run_virtually(drive.run(180))
    assert drive.rate(59.7, 179.7) >= 0.9 * LIMIT
    assert drive.share_refused() <= 0.1
    assert drive.lost == 0


@pytest.mark.parametrize(("status", "name_wait"), [(503, name_nothing), (429, name_nothing)])
def test_a_busy_server_is_kept_busy(
    run_virtually: Run, status: int, name_wait: Callable[[float], float | None]
) -> None:
    drive = Drive(Busy(20), latency_s=0.5, name_wait=name_wait, status=status)
    run_virtually(drive.run(60))
    assert drive.rate(10, 60) >= 0.7 * 20 / 0.5
    assert drive.share_refused() <= 0.1
    assert drive.lost == 0


async def pass_through(gate: Gate, calls: int, failure: Failure | None = None) -> None:
    """Have so many calls under way at one time, all of which end alike."""

    async def call() -> None:
        await gate.enter()
        await asyncio.sleep(0.1)
        gate.leave(failure)

    await asyncio.gather(*(call() for _ in range(calls)))


def test_the_limit_doubles_each_clean_round_trip_until_trouble_then_adds_one(run_virtually: Run) -> None:
    async def check() -> list[int]:
        gate = Gate(100, Halt())
        limits = [gate.limit]
        for failure in (None, None, None, TIMEOUT, None, None):
            await pass_through(gate, gate.limit, failure)
            limits.append(gate.limit)
        return limits

    assert run_virtually(check()) == [FIRST_LIMIT, 64, 100, 100, 50, 51, 52]


@pytest.mark.parametrize("failure", [TIMEOUT, refuse(None, 503)])
def test_trouble_halves_once_for_all_that_were_under_way(run_virtually: Run, failure: Failure) -> None:
    gate = Gate(8, Halt())
    run_virtually(pass_through(gate, 8, failure))
    assert (gate.limit, gate.rate) == (4, None)


def test_the_limit_never_falls_below_one_nor_exceeds_a_low_ceiling(run_virtually: Run) -> None:
    gate = Gate(2, Halt())
    for failure in (None, TIMEOUT, TIMEOUT, TIMEOUT):
        run_virtually(pass_through(gate, 1, failure))
    assert gate.limit == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_pause_holds_for_all_and_they_start_one_after_the_other(run_virtually: Run, status: int) -> None:
    async def check() -> None:
        loop, gate = asyncio.get_running_loop(), Gate(16, Halt())
        await pass_through(gate, 16, refuse(3.0, status))
        assert gate.paused_s == pytest.approx(3.0)
        began, starts = loop.time(), list[float]()

        async def call() -> None:
            await gate.enter()
            starts.append(loop.time() - began)
            gate.leave(None)

        await asyncio.gather(*(call() for _ in range(16)))
        assert starts[0] >= 3.0
        assert len({round(start, 6) for start in starts[:8]}) == 8

    run_virtually(check())


def test_a_wait_beyond_what_rows_wait_for_pauses_nobody(run_virtually: Run) -> None:
    gate = Gate(8, Halt(), longest_s=60.0)
    run_virtually(pass_through(gate, 8, refuse(300.0)))
    assert (gate.paused_s, gate.rate, gate.refused) == (0.0, None, 8)


def test_the_word_to_stop_ends_every_wait(run_virtually: Run) -> None:
    async def check() -> None:
        halt = Halt()
        gate = Gate(1, halt)
        await gate.enter()
        waits = [asyncio.create_task(gate.enter()) for _ in range(5)]
        await asyncio.sleep(0.1)
        assert gate.waiting == 5
        halt.stop("budget", "the budget is spent")
        results = await asyncio.gather(*waits, gate.enter(), return_exceptions=True)
        assert [error.code for error in results if isinstance(error, CallError)] == ["budget"] * 6
        assert (gate.waiting, gate.in_flight) == (0, 1)

    run_virtually(check())


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), max_size=40), st.integers(1, 4))
def test_calls_are_admitted_in_order_and_none_waits_for_ever(
    run_virtually: Run, calls: list[tuple[float, float, bool]], ceiling: int
) -> None:
    async def check() -> None:
        gate, asked, admitted = Gate(ceiling, Halt(), rpm=6_000), list[int](), list[int]()

        async def call(number: int, delay: float, length: float) -> None:
            await asyncio.sleep(delay)
            asked.append(number)
            await gate.enter()
            admitted.append(number)
            assert gate.in_flight <= gate.limit <= ceiling
            try:
                await asyncio.sleep(length)
            finally:
                gate.leave(None)

        tasks = [asyncio.create_task(call(n, d, length)) for n, (d, length, _) in enumerate(calls)]
        await asyncio.sleep(0.7)
        gone = [task.cancel() for task, (*_, leaves) in zip(tasks, calls, strict=True) if leaves]
        await asyncio.gather(*tasks, return_exceptions=True)
        assert admitted == [number for number in asked if number in set(admitted)]
        assert len(admitted) >= len(calls) - len(gone)
        assert (gate.in_flight, gate.waiting) == (0, 0)

    run_virtually(check())


@given(st.floats(1, 600), st.lists(st.tuples(st.floats(0, 20), st.integers(1, 50)), max_size=60))
def test_no_minute_takes_more_than_the_limit(limit: float, asks: list[tuple[float, int]]) -> None:
    bucket, now, taken = Bucket(limit), 1_000.0, list[tuple[float, float]]()
    for pause, amount in asks:
        now += pause
        while (moment := bucket.find_moment(now, amount)) > now:
            now = moment
        bucket.take(now, amount)
        used = min(amount, limit) / 2
        bucket.correct(amount, round(used))
        taken.append((now, amount))
    for begin, _ in taken:
        spent = [(at, amount) for at, amount in taken if begin <= at < begin + 60]
        assert sum(round(min(amount, limit) / 2) for _, amount in spent) <= limit


def test_requests_a_minute_are_spread_over_the_minute(run_virtually: Run) -> None:
    async def check() -> list[float]:
        loop, gate, starts = asyncio.get_running_loop(), Gate(8, Halt(), rpm=120), list[float]()
        for _ in range(240):
            await gate.enter()
            starts.append(loop.time() - 1_000)
            gate.leave(None)
        return starts

    starts = run_virtually(check())
    assert 118.0 <= starts[-1] <= 121.0
    assert all(sum(begin <= at < begin + 60 for at in starts) <= 120 for begin in starts)
