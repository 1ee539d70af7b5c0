"""Reading ahead: the next piece of an iterator is made in a thread while the last one is worked on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


def read_ahead(pieces: Iterator[T]) -> Iterator[T]:
    """Hand on the pieces of an iterator, of which one more is always under way.

    What the iterator raises is raised here, at its place in the order.
    """
    end = object()
    with ThreadPoolExecutor(1, thread_name_prefix="assay-read") as pool:
        coming = pool.submit(next, pieces, end)
        while (piece := coming.result()) is not end:
            coming = pool.submit(next, pieces, end)
            yield piece  # pyright: ignore[reportReturnType] - the end mark is handled
