"""An event loop whose time jumps to the next timer, so that minutes of traffic take moments."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


class JumpingSelector(selectors.DefaultSelector):
    """Never sleeps: the time it was to wait has passed at once.

    Attributes:
        now: Seconds of the loop's clock.
    """

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("nothing is ready, no timer is set: somebody waits for ever")
        self.now += max(0.0, timeout)
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


@pytest.fixture(scope="session")
def run_virtually() -> Callable[[Coroutine[Any, Any, T]], T]:
    """Run a coroutine to its end in virtual time."""

    def run(main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(main)

    return run
