"""The caller of an endpoint: when it asks again, when it gives up, and when the whole run ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from assay.chat.caller import WAVE, Caller
from assay.chat.failures import FailedCallError, Failure
from assay.chat.traffic import Traffic
from assay.config import RunConfig
from assay.contracts.chat import ChatReply, Usage
from assay.errors import CallError, EndpointError

OK = ChatReply("ok", "m", usage=Usage(10, 5))
AWAY = Failure("unreachable", "nobody listens")
KEY = "sk-marked-key"


class Desk:
    """Where the endpoint is."""

    def hide_key(self, text: str) -> str:
        return text.replace(KEY, "***")

    def explain(self, code: str, said: str) -> str:
        return f"desk: {code}: {said}"


class Script:
    """Sends nothing; answers as it was told."""

    def __init__(self, *outcomes: ChatReply | Failure) -> None:
        self._outcomes = list(outcomes)
        self.sent = 0

    async def send(self) -> ChatReply:
        self.sent += 1
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Failure):
            raise FailedCallError(outcome)
        return outcome


class Office:
    """A caller with its traffic; waits are noted and not waited for."""

    def __init__(self, **config: Any) -> None:
        self.waits: list[float] = []
        self.traffic = Traffic(RunConfig.model_validate({"datasets": ("x",)} | config), sleep=self._sleep)
        self.caller = Caller(Desk(), "m", self.traffic.open_gate("desk", 4), self.traffic)

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def prove(self) -> None:
        await self.caller.call(Script(OK).send)


@pytest.mark.parametrize("code", ["auth", "not_found", "quota"])
async def test_a_wrong_setup_is_said_after_one_call(code: str) -> None:
    office, script = Office(), Script(Failure(code, f"no {KEY}"))
    with pytest.raises(EndpointError, match=rf"^desk: {code}: no \*\*\*$"):
        await office.caller.call(script.send)
    assert script.sent == 1


async def test_a_server_that_was_never_reached_is_tried_twice() -> None:
    script = Script(AWAY)
    with pytest.raises(EndpointError):
        await Office().caller.call(script.send)
    assert script.sent == 2


async def test_a_quota_that_ends_later_stops_the_run_with_the_first_row() -> None:
    office = Office()
    await office.prove()
    with pytest.raises(CallError) as caught:
        await office.caller.call(Script(Failure("quota", "used up")).send)
    assert caught.value.code == "quota"
    reason = office.traffic.halt.reason
    assert reason is not None
    assert reason.message == "desk: quota: used up"


@pytest.mark.parametrize("code", ["auth", "not_found", "unreachable", "network"])
async def test_an_outage_stops_the_run_after_one_wave_of_rows(code: str) -> None:
    office, script = Office(), Script(Failure(code, "gone"))
    await office.prove()
    codes: list[str] = []
    for _ in range(WAVE + 2):
        with pytest.raises(CallError) as caught:
            await office.caller.call(script.send)
        codes.append(caught.value.code)
    lost = "network" if code == "unreachable" else code
    assert codes == [lost] * WAVE + ["stopped"] * 2
    assert office.traffic.halt.reason is not None


async def test_an_answer_in_between_begins_the_wave_anew() -> None:
    office = Office()
    for _ in range(3):
        await office.prove()
        for _ in range(WAVE - 1):
            with pytest.raises(CallError):
                await office.caller.call(Script(Failure("auth", "no")).send)
    assert office.traffic.halt.reason is None


async def test_refusals_are_put_off_as_long_as_the_server_says_and_do_not_count_as_failures() -> None:
    office = Office()
    slow = Failure("rate_limited", "429: slow down", 0.02, 429)
    script = Script(*[slow] * 6, OK)
    reply = await office.caller.call(script.send)
    assert (reply.text, reply.attempts, script.sent) == ("ok", 7, 7)
    assert all(wait >= 0.02 for wait in office.waits)


async def test_a_wait_beyond_the_cap_is_an_error_of_the_row_with_the_wait() -> None:
    office = Office(limits={"max_wait_s": 30})
    script = Script(Failure("rate_limited", "429: slow down", 300.0, 429))
    with pytest.raises(CallError, match=r"wait of 300 s, longer than 30 s") as caught:
        await office.caller.call(script.send)
    assert (caught.value.code, script.sent, office.waits) == ("rate_limited", 1, [])


async def test_a_call_takes_no_longer_than_the_timeout() -> None:
    office = Office(timeout_s=0.02)

    async def hang() -> ChatReply:
        await asyncio.sleep(30)
        return OK

    with pytest.raises(CallError) as caught:
        await office.caller.call(hang)
    assert (caught.value.code, caught.value.attempts) == ("timeout", 5)


async def test_calls_under_way_end_when_the_run_is_aborted() -> None:
    office = Office()

    async def hang() -> ChatReply:
        office.traffic.halt.stop("stopped", "the run was stopped")
        office.traffic.halt.abort()
        await asyncio.sleep(30)
        return OK

    with pytest.raises(CallError, match="not asked: the run was stopped") as caught:
        await office.caller.call(hang)
    assert caught.value.code == "stopped"


async def test_paid_answers_that_were_of_no_use_count_in_the_usage() -> None:
    office = Office()
    broken = Failure("network", "the stream ended early", reply=ChatReply("", "m", usage=Usage(10, 90)))
    reply = await office.caller.call(Script(broken, broken, OK).send)
    assert (reply.usage.input_tokens, reply.usage.output_tokens, reply.attempts) == (30, 185, 3)
    lasting = Failure("refusal", "no", reply=ChatReply("", "m", usage=Usage(1, 1)))
    with pytest.raises(CallError) as caught:
        await office.caller.call(Script(broken, lasting).send)
    assert caught.value.reply is not None
    assert caught.value.reply.usage.total == 102
    assert office.traffic.meter.usage.total == 215 + 102


async def test_one_call_that_ends_already_does_not_keep_others_from_being_aborted() -> None:
    office, loop = Office(), asyncio.get_running_loop()

    async def linger() -> ChatReply:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)  # as a program does that is being ended
            raise
        return OK

    calls = [asyncio.ensure_future(office.caller.call(linger)) for _ in range(3)]
    await asyncio.sleep(0.01)
    office.traffic.halt.stop("stopped", "the run was stopped")
    office.traffic.halt.abort()
    loop.call_later(0.02, office.traffic.halt.abort)
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [each.code for each in outcomes if isinstance(each, CallError)] == ["stopped"] * 3


async def test_the_budget_counts_what_is_under_way() -> None:
    office = Office(limits={"max_tokens": 60}, concurrency=2)
    await office.prove()
    script = Script(OK)

    async def send() -> ChatReply:
        await asyncio.sleep(0.01)
        return await script.send()

    outcomes = await asyncio.gather(*(office.caller.call(send) for _ in range(6)), return_exceptions=True)
    assert script.sent == 3
    assert [each.code for each in outcomes if isinstance(each, CallError)] == ["budget"] * 3
    assert office.traffic.meter.usage.total == 60


async def test_answers_are_priced_by_the_name_the_server_gives_else_by_the_one_asked_for() -> None:
    office = Office()
    named = await office.caller.call(Script(ChatReply("x", "gpt-4o-mini", usage=Usage(1000, 1000))).send)
    unknown = await office.caller.call(Script(ChatReply("x", "who-knows", usage=Usage(1000, 1000))).send)
    assert named.usage.cost_usd is not None
    assert unknown.usage.cost_usd is None
    meter = office.traffic.meter
    assert (meter.calls, meter.unpriced, meter.usage.cost_usd) == (2, 1, named.usage.cost_usd)
