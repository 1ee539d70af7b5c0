from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from assay.chat.budget import Budget
from assay.chat.halt import Halt
from assay.chat.meter import Meter
from assay.config import Limits
from assay.contracts.chat import Usage
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Sequence

CHEAP, DEAR = 0.0001, 0.01  # US dollars a call


class Shop:
    """A budget, and calls that take a moment and cost what is said."""

    def __init__(self, **limits: float) -> None:
        self.halt, self.meter = Halt(), Meter()
        self.budget = Budget(Limits.model_validate(limits), self.meter, self.halt)
        self.sent = 0
        self.most = self.open = 0

    async def buy(self, endpoint: str, price: float, tokens: int = 10) -> None:
        held = await self.budget.admit(endpoint)
        self.sent += 1
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0.001)
        usage = Usage(tokens, 0, cost_usd=price)
        self.meter.note_answer(usage)
        self.budget.note(endpoint, usage)
        self.open -= 1
        self.budget.release(held)

    async def buy_all(self, orders: Sequence[tuple[str, float]]) -> int:
        outcomes = await asyncio.gather(*(self.buy(*order) for order in orders), return_exceptions=True)
        return sum(isinstance(each, CallError) for each in outcomes)

    @property
    def spent(self) -> float:
        return self.meter.usage.cost_usd or 0.0


async def test_a_dear_judge_behind_a_cheap_target_does_not_pass_the_budget() -> None:
    shop = Shop(max_cost=0.05)
    for _ in range(200):  # the target's answers make calls look cheap
        await shop.buy("target", CHEAP)
    await shop.buy("judge", DEAR)
    refused = await shop.buy_all([("judge", DEAR)] * 50)
    assert shop.spent <= 0.05
    assert refused == 50 - 2
    assert shop.halt.reason is not None
    assert "another call would pass --max-cost 0.05; 0.0500 US dollars" in shop.halt.reason.message


async def test_a_budget_is_used_to_its_end_when_calls_cost_alike() -> None:
    shop = Shop(max_tokens=1000)
    await shop.buy("m", 0.0)
    refused = await shop.buy_all([("m", 0.0)] * 150)
    assert (shop.sent, refused, shop.meter.usage.total) == (100, 51, 1000)
    assert shop.most > 50


async def test_calls_wait_for_those_under_way_before_the_run_is_ended() -> None:
    shop = Shop(max_tokens=55)
    await shop.buy("m", 0.0, tokens=25)  # so the next are taken to need 25 each
    await shop.buy_all([("m", 0.0), ("m", 0.0), ("m", 0.0)])  # and need 10
    assert shop.meter.usage.total == 45
    assert shop.sent == 3


async def test_what_a_resumed_run_spent_before_counts_and_foretells() -> None:
    shop = Shop(max_tokens=100)
    shop.meter.begin(9, Usage(90, 0))
    assert await shop.buy_all([("m", 0.0)] * 3) == 2


@pytest.mark.parametrize("limits", [{}, {"deadline_s": 5.0}])
async def test_without_a_budget_nobody_waits(limits: dict[str, float]) -> None:
    shop = Shop(**limits)
    assert await shop.buy_all([("m", DEAR)] * 20) == 0
    assert shop.most == 20


async def test_who_waits_for_room_is_told_when_the_run_stops() -> None:
    shop = Shop(max_tokens=25)
    shop.meter.begin(1, Usage(10, 0))
    held = await shop.budget.admit("m")
    waiting = asyncio.ensure_future(shop.budget.admit("m"))
    await asyncio.sleep(0)
    shop.halt.stop("stopped", "the run was stopped")
    with pytest.raises(CallError, match="stopped"):
        await waiting
    shop.budget.release(held)
