"""Panels: judges asked about a row, several times and several of them, and their verdicts made one."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from statistics import fmean, median, median_high, median_low
from typing import TYPE_CHECKING, Literal

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
    asked = (_ask_one(ask, chat, judging.repeats, said) for chat, said in seated)
    outcomes = await _gather(asked)
    for said in seats:
        replies += said
    given = [each for each in outcomes if not isinstance(each, CallError)]
    _check_majority(outcomes, given)
    scores = [each.score for each in given if each.score is not None]
    worse: Reduce = median_low if higher_is_better else median_high
    combined = _combine(given, scores, fmean if judging.vote == "mean" else worse)
    jury = [
        {"model": said[-1].model if said else None, **_tell(outcome)}
        for outcome, said in zip(outcomes, seats, strict=True)
    ]
    told = {"vote": judging.vote, "disagreement": 1 - _agree(given), "spread": _spread(scores), "jury": jury}
    return replace(combined, details={**_common(given), **told})


async def _ask_one(ask: Ask, chat: Chat, repeats: int, replies: list[ChatReply]) -> Verdict:
    """Ask one judge as often as is wanted; its median counts."""
    heard = _Listener(chat, replies)
    if repeats == 1:
        return await ask(heard)
    outcomes = await _gather(ask(heard) for _ in range(repeats))
    given = [each for each in outcomes if not isinstance(each, CallError)]
    _check_majority(outcomes, given)
    scores = [each.score for each in given if each.score is not None]
    combined = _combine(given, scores, median)
    verdicts = [_tell(each) for each in outcomes]
    told = {"repeats": repeats, "agreement": _agree(given), "spread": _spread(scores), "verdicts": verdicts}
    return replace(combined, details={**_common(given), **told})


async def _gather(asked: Iterable[Awaitable[Verdict]]) -> list[Verdict | CallError]:
    """Return verdicts and failed calls in order; whatever else is raised is raised once all have ended."""
    found: list[Verdict | CallError] = []
    for outcome in await asyncio.gather(*asked, return_exceptions=True):
        if isinstance(outcome, BaseException) and not isinstance(outcome, CallError):
            raise outcome
        found.append(outcome)
    return found


def _check_majority(outcomes: Sequence[Verdict | CallError], given: Sequence[Verdict]) -> None:
    """Refuse a verdict of a minority.

    Raises:
        CallError: The first failure, when half of the verdicts or more are missing.
    """
    if 2 * len(given) <= len(outcomes):
        raise next(each for each in outcomes if isinstance(each, CallError))


def _combine(given: Sequence[Verdict], scores: Sequence[float], reduce: Reduce) -> Verdict:
    """Return one verdict: the reduced score, the label of the majority, and the nearest one's reason."""
    labels = Counter(each.label for each in given if each.label is not None)
    ranked = labels.most_common(2)
    label = ranked[0][0] if ranked and (len(ranked) == 1 or ranked[0][1] > ranked[1][1]) else None
    if not scores:
        first = next((each for each in given if each.label == label), given[0])
        return replace(first, label=label)
    score = reduce(scores)
    scored = [each for each in given if each.score is not None]
    near = min(scored, key=lambda each: abs((each.score or 0.0) - score))
    return replace(near, score=score, label=label)


def _agree(given: Sequence[Verdict]) -> float:
    """Return the share of verdicts that are the most common one."""
    counts = Counter((each.score, each.label) for each in given)
    return max(counts.values()) / len(given)


def _spread(scores: Sequence[float]) -> float | None:
    return max(scores) - min(scores) if scores else None


def _common(given: Sequence[Verdict]) -> dict[str, object]:
    """Return the details that are alike in all verdicts."""
    first = given[0].details or {}
    return {
        key: value
        for key, value in first.items()
        if key not in _OF_REPEATS and all((each.details or {}).get(key) == value for each in given)
    }


def _tell(outcome: Verdict | CallError) -> dict[str, object]:
    if isinstance(outcome, CallError):
        return {"error": outcome.code, "message": outcome.message}
    parts = {"score": outcome.score, "label": outcome.label, "reason": outcome.reason}
    own = {key: value for key, value in (outcome.details or {}).items() if key in _OF_REPEATS}
    return {name: value for name, value in parts.items() if value is not None} | own
