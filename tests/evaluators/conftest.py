"""What the tests of evaluators share: one evaluation over a few rows, and a chat that follows a script."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.contracts.chat import ChatReply
from evaluators.catalog import resolve_evaluation
from evaluators.panel import Judging
from evaluators.runner import run_evaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assay.contracts.chat import ChatRequest


class ScriptedChat:
    """Answers the n-th request with the n-th reply, the last one over and over; an exception is raised."""

    def __init__(self, replies: Sequence[ChatReply | Exception]) -> None:
        self.replies = list(replies)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture(scope="session")
def scripted_chat() -> Callable[..., ScriptedChat]:
    def build(*replies: str | ChatReply | Exception) -> ScriptedChat:
        return ScriptedChat([ChatReply(r, "judge-1") if isinstance(r, str) else r for r in replies])

    return build


@pytest.fixture(scope="session")
def score() -> Callable[..., pl.DataFrame]:
    def run(
        name: str,
        rows: Mapping[str, Sequence[str | None]],
        chat: ScriptedChat | None = None,
        **options: Any,
    ) -> pl.DataFrame:
        judging = Judging((chat,), 4, lambda: None) if chat else None
        evaluation = resolve_evaluation(name, options)
        return asyncio.run(run_evaluation(evaluation, pl.DataFrame(rows), judging))

    return run
