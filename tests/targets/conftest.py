"""How targets are worked with in tests: nothing is known before, nothing is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from assay.targets.contract import Work

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.contracts.chat import ChatReply
    from assay.errors import CallError


class Forgetful:
    """A recorder that knows nothing and counts what it was given."""

    def __init__(self) -> None:
        self.kept: list[ChatReply | CallError] = []

    def find(self, kind: str, request: str) -> tuple[str, None]:
        return f"{kind} {request}", None

    def keep(self, key: str, outcome: ChatReply | CallError) -> None:
        assert key
        self.kept.append(outcome)


@pytest.fixture
def make_work() -> Callable[..., Work]:
    def make(done: list[bool] | None = None, *, trials: int = 1, limit: int = 4) -> Work:
        return Work(Forgetful(), (done if done is not None else []).append, trials, limit)

    return make
