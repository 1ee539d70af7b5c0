"""Panels: judges asked about a row, several times and several of them, and their verdicts made one."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from statistics import fmean, median, median_high, median_low
from typing import TYPE_CHECKING, Any, Literal

from assay.errors import CallError
from evaluators.outcomes import describe_details, describe_failure, describe_replies, describe_verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from assay.contracts.chat import Chat, ChatReply, ChatRequest
    from evaluators.contract import Embed, Verdict
    from evaluators.outcomes import Outcome

    Ask = Callable[[Chat], Awaitable[Verdict]]
    Reduce = Callable[[Sequence[float]], float]

MAX_KEPT = 2_000  # characters of a reply that could not be read
_UNREAD = frozenset({"unparseable"})
_OF_REPEATS = frozenset({"repeats", "agreement", "spread", "verdicts"})


@dataclass(frozen=True, slots=True)
class Judging:
    """How judges are asked.

    Attributes:
        chats: The models, more than one of a jury.
        concurrency: Rows under way at one time.
        on_done: Called after each row that was put to the judges.
        repeats: How often each of them is asked about a row.
        vote: How a jury comes to one verdict.
        embed: Turns texts into vectors; None: no model does.
    """

    chats: tuple[Chat, ...]
    concurrency: int
    on_done: Callable[[], None]
    repeats: int = 1
    vote: Literal["majority", "mean"] = "majority"
    embed: Embed | None = None


class _Listener:
    """A chat that keeps the replies, so that those of a failed row are counted too."""

    def __init__(self, chat: Chat, replies: list[ChatReply]) -> None:
        self._chat, self._replies = chat, replies

    async def complete(self, request: ChatRequest) -> ChatReply:
        try:
            reply = await self._chat.complete(request)
        except CallError as error:
            if error.reply is not None:
                self._replies.append(error.reply)
            raise
        self._replies.append(reply)
        return reply


async def ask_row(ask: Ask, judging: Judging, *, higher_is_better: bool = True) -> Outcome:
    """Ask the judges about one row and return what their verdict, or its lack, leaves in the row.

    Args:
        ask: Puts the question to one chat.
        judging: Who is asked, and how often.
        higher_is_better: Which end of the scale is the good one; a tied jury takes the other.

    Raises:
        EndpointError: A judge's key, model or URL are wrong.
    """
    replies: list[ChatReply] = []
    try:
        verdict = await _ask_panel(ask, judging, replies, higher_is_better=higher_is_better)
        outcome = describe_verdict(verdict)
    except Exception as error:  # noqa: BLE001 - whatever an evaluator raises belongs to its row
        outcome = describe_failure(error)
        if outcome["error_code"] in _UNREAD and replies:
            said = {"replies": [reply.text[:MAX_KEPT] for reply in replies]}
            outcome |= describe_details(said)
    judging.on_done()
    return describe_replies(replies) | outcome


async def _ask_panel(
    ask: Ask, judging: Judging, replies: list[ChatReply], *, higher_is_better: bool
) -> Verdict:
    if len(judging.chats) == 1:
        return await _ask_one(ask, judging.chats[0], judging.repeats, replies)
    seats: list[list[ChatReply]] = [[] for _ in judging.chats]
    seated = zip(judging.chats, seats, strict=True)
    outcomes = await _gather(_ask_one(ask, chat, judging.repeats, said) for chat, said in seated)
    for said in seats:
        replies += said
    worse: Reduce = median_low if higher_is_better else median_high
    combined, told = _decide(outcomes, fmean if judging.vote == "mean" else worse)
    jury = [_tell(each, said) for each, said in zip(outcomes, seats, strict=True)]
    told |= {"vote": judging.vote, "disagreement": 1 - told.pop("agreement"), "jury": jury}
    return replace(combined, details={**(combined.details or {}), **told})


async def _ask_one(ask: Ask, chat: Chat, repeats: int, replies: list[ChatReply]) -> Verdict:
    """Ask one judge as often as is wanted; its median counts."""
    heard = _Listener(chat, replies)
    if repeats == 1:
        return await ask(heard)
    outcomes = await _gather(ask(heard) for _ in range(repeats))
    combined, told = _decide(outcomes, median)
    told |= {"repeats": repeats, "verdicts": [_tell(each) for each in outcomes]}
    return replace(combined, details={**(combined.details or {}), **told})


async def _gather(asked: Iterable[Awaitable[Verdict]]) -> list[Verdict | CallError]:
    """Return verdicts and failed calls in order; whatever else is raised is raised once all have ended."""
    found: list[Verdict | CallError] = []
    for outcome in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, CallError):
            raise outcome
        found.append(outcome)
    return found


def _decide(outcomes: Sequence[Verdict | CallError], reduce: Reduce) -> tuple[Verdict, dict[str, Any]]:
    """Return one verdict of many, and how far they agree.

    The score is what `reduce` makes of the scores, the label that of the majority, if there is one, the
    reason that of the verdict nearest to the score; details are those that all share. Agreement is the share
    of verdicts that are the most common one.

    Raises:
        CallError: The first failure, when half of the verdicts or more are missing.
    """
    given = [each for each in outcomes if not isinstance(each, CallError)]
    if 2 * len(given) <= len(outcomes):
        raise next(each for each in outcomes if isinstance(each, CallError))
    scores = [each.score for each in given if each.score is not None]
    score = reduce(scores) if scores else None
    near = min(given, key=lambda each: abs((each.score or 0.0) - (score or 0.0)))
    counts = Counter((each.score, each.label) for each in given)
    spread = max(scores) - min(scores) if scores else None
    told: dict[str, Any] = {"agreement": max(counts.values()) / len(given), "spread": spread}
    return replace(near, score=score, label=_find_label(given), details=_share_details(given)), told


def _find_label(given: Sequence[Verdict]) -> str | None:
    """Return the label that most verdicts have; None at a tie."""
    ranked = Counter(each.label for each in given if each.label is not None).most_common(2)
    if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]):
        return None
    return ranked[0][0]


def _share_details(given: Sequence[Verdict]) -> dict[str, object]:
    """Return the details that are alike in all verdicts."""
    first, *rest = [each.details or {} for each in given]
    return {
        key: value
        for key, value in first.items()
        if key not in _OF_REPEATS and all(each.get(key) == value for each in rest)
    }


def _tell(outcome: Verdict | CallError, replies: Sequence[ChatReply] = ()) -> dict[str, object]:
    """Return one of several verdicts for the details; of a judge that spoke, under the name of its model."""
    named: dict[str, object] = {"model": replies[-1].model} if replies else {}
    if isinstance(outcome, CallError):
        return named | {"error": outcome.code, "message": outcome.message}
    parts = {"score": outcome.score, "label": outcome.label, "reason": outcome.reason}
    own = {key: value for key, value in (outcome.details or {}).items() if key in _OF_REPEATS}
    return named | {name: value for name, value in parts.items() if value is not None} | own
