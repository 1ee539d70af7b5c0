"""Samples in strata: which items are taken by hash, and how many of each stratum."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Pick(NamedTuple):
    """An item that may be taken; the smallest of a stratum are.

    Attributes:
        key: Hash of seed and identity: the id, or the text of an item without one.
        tie: Hash of the text, for items that share an id.
        file: Index of its file.
        item: Index of the item in its file.
        line: 1-based line, where files have lines.
        text: The item as JSON, where only that can be written.
    """

    key: str
    tie: str
    file: int
    item: int
    line: int | None
    text: str | None


class Stratum:
    """The items that share a value: their number, and the first of them by hash."""

    def __init__(self, most: int) -> None:
        """Start without items; `most` are ever asked for."""
        self.count, self._most, self._kept = 0, most, list[Pick]()

    def add(self, pick: Pick) -> None:
        """Count an item, and keep it for now."""
        self.count += 1
        self._kept.append(pick)
        if len(self._kept) > 2 * self._most:
            self._kept = heapq.nsmallest(self._most, self._kept)

    def take(self, number: int) -> list[Pick]:
        """Return the first items."""
        return heapq.nsmallest(number, self._kept)


def allocate(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Share n among strata in proportion to their sizes, by largest remainder.

    Every stratum gets one at least while n allows, else the largest do. Ties go to the larger stratum,
    then by name.

    Args:
        sizes: Stratum to number of items.
        n: How many to share; all items when there are no more.
    """
    total = sum(sizes.values())
    order = sorted(sizes, key=lambda name: (-sizes[name], name))
    if n >= total:
        return dict(sizes)
    if n <= len(order):
        return dict.fromkeys(order[:n], 1)
    shares = {name: max(1, n * sizes[name] // total) for name in order}

    def lack(name: str) -> int:
        return n * sizes[name] - shares[name] * total

    rank = {name: place for place, name in enumerate(order)}
    missing = n - sum(shares.values())
    for name in sorted(order, key=lambda name: (-lack(name), rank[name]))[: max(0, missing)]:
        shares[name] += 1
    heap = [(lack(name), -rank[name], name) for name in order if shares[name] > 1]
    heapq.heapify(heap)
    for _ in range(-missing):
        _, place, name = heapq.heappop(heap)
        shares[name] -= 1
        if shares[name] > 1:
            heapq.heappush(heap, (lack(name), place, name))
    return shares
