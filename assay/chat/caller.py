"""The caller of one endpoint: every call admitted, timed, retried and counted, every failure named."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from assay.chat.failures import CALL_FAILURES, Failure, read_failure
from assay.chat.halt import SETUP
from assay.contracts.chat import Usage
from assay.contracts.hiding import Secrets
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from assay.chat.failures import CallFailure, Site
    from assay.chat.gate import Gate
    from assay.chat.traffic import Traffic
    from assay.contracts.chat import ChatReply

_UNSENT = Failure("stopped", "")  # a call that teaches the gate nothing
TEXTS = ("text", "model", "finish_reason", "tool_calls_json", "output_items_json", "retrieval_json")
WAVE = 8  # rows given up one after the other for a fault that is not theirs, before the run stops


class Caller:
    """Makes the calls to one endpoint; belongs to the event loop that first uses it.

    Attributes:
        site: Where the endpoint is; it explains what is wrongly set up, and hides secrets.
        model: What prices are looked up by when an answer names no model.
    """

    def __init__(
        self, site: Site, model: str, gate: Gate, traffic: Traffic, secrets: Secrets | None = None
    ) -> None:
        self.site = site
        self.model = model
        self._secrets = secrets or Secrets()
        self._gate, self._traffic = gate, traffic
        self._name = traffic.name_gate(gate)
        self._proven = False
        self._lost = 0

    async def call(
        self, send: Callable[[], Awaitable[ChatReply]], *, tokens: int = 0, retry: bool = True
    ) -> ChatReply:
        """Send until there is an answer or no hope of one; a call that waits holds no slot.

        Args:
            send: Sends one request; raises one of CALL_FAILURES.
            tokens: What the call is expected to take, for the limit of tokens a minute.
            retry: Whether a call that failed is made again, where that may help.

        Raises:
            CallError: This call failed for good, or was not made because the run ends.
            EndpointError: The first calls proved key, model or URL wrong, or the quota used up.
        """
        attempts = failed = refused = 0
        spent = Usage()  # by requests that were paid for in vain
        while True:
            outcome = await self._try(send, tokens)
            attempts += 1
            if not isinstance(outcome, Failure):
                self._proven, self._lost = True, 0
                if attempts == 1:
                    return outcome
                usage = outcome.usage.plus(spent)
                return replace(outcome, attempts=outcome.attempts + attempts - 1, usage=usage)
            if outcome.reply is not None:
                spent = spent.plus(outcome.reply.usage)
                outcome = replace(outcome, reply=replace(outcome.reply, usage=spent))
            refused += outcome.is_refusal
            failed += not outcome.is_refusal
            delay = outcome.choose_delay(failed, refused, proven=self._proven, longest_s=self._longest_s)
            if delay is None or not retry:
                raise self._give_up(outcome, attempts)
            await self._traffic.sleep(delay)

    @property
    def _longest_s(self) -> float:
        return self._traffic.limits.max_wait_s

    async def _try(self, send: Callable[[], Awaitable[ChatReply]], tokens: int) -> ChatReply | Failure:
        """Send once, within the limits and the time."""
        traffic, gate = self._traffic, self._gate
        await gate.enter(tokens)
        failure: Failure | None = _UNSENT
        try:
            held = await traffic.budget.admit(self._name)
        except BaseException:
            gate.leave(_UNSENT)
            raise
        scope = asyncio.timeout(traffic.timeout_s)
        try:
            async with scope:
                traffic.halt.enter(scope)
                traffic.meter.requests += 1
                reply = await send()
        except CALL_FAILURES as error:
            if scope.expired() and traffic.halt.aborted:
                raise traffic.halt.to_error() from None
            late = Failure("timeout", f"no answer within {traffic.timeout_s:g} s")
            failure = late if scope.expired() else self._read(error)
            return failure
        else:
            failure = None
            return self._note(reply, tokens)
        finally:
            traffic.halt.leave(scope)
            traffic.budget.release(held)
            gate.leave(failure)

    def _read(self, error: CallFailure) -> Failure:
        failure = read_failure(error)
        self._traffic.meter.refused += failure.is_refusal
        if failure.reply is not None:
            failure = replace(failure, reply=self._note(failure.reply, 0))
        return failure

    def _note(self, reply: ChatReply, tokens: int) -> ChatReply:
        """Price and count an answer that was paid for, and hide what it repeats of our secrets."""
        reply, usage = hide_in_reply(reply, self._secrets), reply.usage
        priced = self._price(reply.model, usage)
        if priced is not usage:
            reply = replace(reply, usage=priced)
        self._traffic.meter.note_answer(priced)
        self._traffic.budget.note(self._name, priced)
        if tokens:
            self._gate.correct(tokens, (usage.input_tokens or 0) + (usage.output_tokens or 0))
        return reply

    def _price(self, model: str, usage: Usage) -> Usage:
        if usage.cost_usd is not None:
            return usage
        cost = self._traffic.prices.price_answer(self.model, model, usage)
        return usage if cost is None else replace(usage, cost_usd=cost)

    def _give_up(self, failure: Failure, attempts: int) -> Exception:
        """Return what to raise; a fault of the endpoint that shows late ends the run in order."""
        self._traffic.meter.failed += 1
        error = failure.to_error(self.site, proven=self._proven, attempts=attempts, longest_s=self._longest_s)
        if isinstance(error, CallError) and failure.is_of_endpoint:
            self._lost += 1
            if failure.code == "quota" or self._lost >= max(WAVE, self._gate.limit):
                self._traffic.halt.stop(failure.code, self.site.explain(failure.code, error.message))
        elif isinstance(error, CallError):
            self._lost = 0
        else:
            self._traffic.halt.stop(SETUP, str(error))  # now, or those that wait would still be sent
        return error


def hide_in_reply(reply: ChatReply, secrets: Secrets) -> ChatReply:
    """Return the reply without secrets in any of its texts; nearly always that is the reply itself."""
    changed: dict[str, Any] = {}
    for name in TEXTS:
        text: str | None = getattr(reply, name)
        if text and (hidden := secrets.hide_in_data(text)) != text:
            changed[name] = hidden
    return replace(reply, **changed) if changed else reply
