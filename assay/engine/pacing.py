"""Pacing: how many batches are worked on at once, so that no endpoint waits while a batch is written."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from assay.chat.halt import SETUP
from assay.engine.batch import Batch, run_batch
from assay.engine.parting import makes_calls
from assay.engine.tools import GRACE_S
from assay.errors import SetupError

if TYPE_CHECKING:
    from assay.engine.prepare import Prepared
    from assay.engine.tools import Monitor, Tools

MOST_BATCHES = 8  # at once; memory grows with them
LOOK_EVERY_S = 0.02


async def run_batches(prepared: Prepared, tools: Tools, monitor: Monitor) -> None:
    """Work on the batches in order; another begins when an endpoint could take more calls.

    Once the word to stop has come, no further batch begins.

    Raises:
        EndpointError: The first calls proved a key, model or URL wrong.
        StoreError: A part cannot be read or written, or an answer cannot be kept.
    """
    config, halt = prepared.request.config, tools.traffic.halt
    most = MOST_BATCHES if makes_calls(config) else 1
    active: set[asyncio.Task[int]] = set()
    try:
        for index in range(prepared.request.batches):
            if halt.reason is not None:
                break
            work = run_batch(Batch(prepared.folder, index, config, tools, monitor))
            active.add(asyncio.ensure_future(work))
            active = await _wait_for_room(active, tools, most)
        await asyncio.gather(*active)
    except SetupError as error:
        halt.stop(SETUP, str(error))
        await _keep_answers(active, tools)
        raise
    finally:
        for task in active:
            task.cancel()
        await asyncio.gather(*active, return_exceptions=True)


async def _keep_answers(active: set[asyncio.Task[int]], tools: Tools) -> None:
    """Let calls under way end, and be kept, that an endpoint with another fault than theirs was asked for."""
    if not active:
        return
    _, late = await asyncio.wait(active, timeout=GRACE_S)
    if late:
        tools.traffic.halt.abort()
        await asyncio.wait(late, timeout=LOOK_EVERY_S)


async def _wait_for_room(active: set[asyncio.Task[int]], tools: Tools, most: int) -> set[asyncio.Task[int]]:
    """Wait until another batch is of use, and return those still under way."""
    while active:
        done, active = await asyncio.wait(active, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        idle = bool(tools.traffic.gates) and all(not gate.waiting for gate in tools.traffic.gates)
        if tools.traffic.halt.reason is None and len(active) < most and idle:
            return active
    return active
