"""The budget of a run: each call under way holds back what a call to its endpoint takes in the mean."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.chat.halt import Halt
    from assay.chat.meter import Meter
    from assay.config import Limits
    from assay.contracts.chat import Usage


@dataclass(frozen=True, slots=True)
class Amount:
    """Money in US dollars, and tokens in and out."""

    money: float = 0.0
    tokens: float = 0.0

    def plus(self, other: Amount) -> Amount:
        """Return the sum."""
        return Amount(self.money + other.money, self.tokens + other.tokens)

    def minus(self, other: Amount) -> Amount:
        """Return the difference."""
        return Amount(self.money - other.money, self.tokens - other.tokens)

    def over(self, count: int) -> Amount:
        """Return the share of one of `count`; nothing of none."""
        return Amount(self.money / count, self.tokens / count) if count else Amount()


@dataclass(slots=True)
class _Past:
    calls: int = 0
    spent: Amount = field(default_factory=Amount)


class Budget:
    """Lets a call be made while it can be paid for; belongs to one event loop at a time."""

    def __init__(self, limits: Limits, meter: Meter, halt: Halt) -> None:
        """Take the limits; without any, every call is let through."""
        self._limits, self._meter, self._halt = limits, meter, halt
        self._past: dict[str, _Past] = {}
        self._held = Amount()
        self._changed = asyncio.Event()
        halt.on_stop(self._changed.set)

    async def admit(self, endpoint: str) -> Amount:
        """Wait until a call can be paid for whatever those under way come to, and hold its price back.

        Args:
            endpoint: Who is asked; the prices of its answers so far say what the next one will take.

        Returns:
            What is held back, to be given to `release`.

        Raises:
            CallError: The rest of the budget is too small for the call, or the run ends anyway.
        """
        if self._limits.max_cost is None and self._limits.max_tokens is None:
            self._halt.check()
            return Amount()
        while True:
            self._halt.check()
            expected = self._expect(endpoint)
            spent = self._count_spent()
            self._stop_beyond(spent.plus(expected), spent)
            self._halt.check()
            if self._fits(spent.plus(self._held).plus(expected)):
                self._held = self._held.plus(expected)
                return expected
            self._changed.clear()
            await self._changed.wait()

    def note(self, endpoint: str, usage: Usage) -> None:
        """Learn what a call to an endpoint took."""
        past = self._past.setdefault(endpoint, _Past())
        past.calls += 1
        past.spent = past.spent.plus(_read(usage))

    def release(self, held: Amount) -> None:
        """Free what a call held back, once it has ended and its usage counts."""
        self._held = self._held.minus(held)
        self._changed.set()

    def _expect(self, endpoint: str) -> Amount:
        """Return the mean of the endpoint, else of the run before it was resumed, else nothing."""
        past = self._past.get(endpoint)
        if past is not None:
            return past.spent.over(past.calls)
        return _read(self._meter.before).over(self._meter.before_calls)

    def _count_spent(self) -> Amount:
        return _read(self._meter.before).plus(_read(self._meter.usage))

    def _fits(self, amount: Amount) -> bool:
        limits = self._limits
        return (limits.max_cost is None or amount.money <= limits.max_cost * _SLACK) and (
            limits.max_tokens is None or amount.tokens <= limits.max_tokens * _SLACK
        )

    def _stop_beyond(self, foreseen: Amount, spent: Amount) -> None:
        """End the run when the call alone would pass a limit."""
        limits = self._limits
        if limits.max_cost is not None and foreseen.money > limits.max_cost * _SLACK:
            money = f"{spent.money:.4f} US dollars are spent"
            self._halt.stop("budget", f"another call would pass --max-cost {limits.max_cost:g}; {money}")
        if limits.max_tokens is not None and foreseen.tokens > limits.max_tokens * _SLACK:
            tokens = f"{spent.tokens:.0f} are spent"
            told = f"another call would pass --max-tokens-total {limits.max_tokens}; {tokens}"
            self._halt.stop("budget", told)


_SLACK = 1 + 1e-9  # sums of floats that are equal on paper


def _read(usage: Usage) -> Amount:
    return Amount(usage.cost_usd or 0.0, usage.total)
