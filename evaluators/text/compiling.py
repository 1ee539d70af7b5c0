"""The door to numba: loops compiled on first use, cached beside the code, and run on all cores.

Threads run the compiled loops over ranges of rows. The loops let go of the interpreter lock, and unlike
numba's own parallel loops they may be started from several threads of a program at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, TypeVar, cast

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F")
R = TypeVar("R")

SMALL = 2_000
"""Fewer rows than this are counted in Python: quicker than loading the compiled loops."""

_BLOCKS = 4  # per thread, so that none waits long for the last
_LEAST = 1_000  # rows of a block


def _load() -> Callable[..., Callable[[F], F]]:
    import numba

    return cast("Callable[..., Callable[[F], F]]", numba.njit)


def compiled(function: F) -> F:
    """Compile a function of numbers and arrays when it is first called.

    The machine code is kept in the folder of the module, else in the user's cache folder, or wherever
    NUMBA_CACHE_DIR says. Where none can be written to it lasts as long as the process.
    """
    njit = _load()
    try:
        return njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


def inner(function: F) -> F:
    """Compile a function that only compiled functions call."""
    njit = _load()
    return njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def inlined(function: F) -> F:
    """Make a function part of every compiled function that calls it: counting references costs more."""
    njit = _load()
    return njit(inline="always")(function)


def cut_rows(height: int) -> list[tuple[int, int]]:
    """Cut rows into ranges, a few for each core."""
    size = max(-(-height // (pl.thread_pool_size() * _BLOCKS)), _LEAST)
    return [(start, min(start + size, height)) for start in range(0, height, size)]


def run_blocks(work: Callable[[int, int], R], height: int) -> list[R]:
    """Call `work(first, end)` for every range of rows on all cores; results are in order."""
    blocks = cut_rows(height)
    if len(blocks) <= 1:
        return [work(*block) for block in blocks]
    return list(_open_pool().map(work, *zip(*blocks, strict=True)))


@cache
def _open_pool() -> ThreadPoolExecutor:
    """Return the threads of the process; starting them anew for each column costs more."""
    return ThreadPoolExecutor(pl.thread_pool_size(), "assay-loops")
