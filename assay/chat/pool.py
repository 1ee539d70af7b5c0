"""A fixed pool of workers over a list of jobs; never a task per row."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

J = TypeVar("J")
R = TypeVar("R")


async def run_jobs(jobs: Sequence[J], work: Callable[[J], Awaitable[R]], limit: int) -> list[R]:
    """Do every job with at most `limit` under way and return the results in the order of the jobs.

    The first exception cancels the other workers and is raised as it is; a failure that should be a
    row must be turned into a result by `work`.
    """
    results: dict[int, R] = {}
    waiting = iter(enumerate(jobs))

    async def pull() -> None:
        for index, job in waiting:
            results[index] = await work(job)

    workers = [asyncio.ensure_future(pull()) for _ in range(min(limit, len(jobs)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [results[index] for index in range(len(jobs))]
