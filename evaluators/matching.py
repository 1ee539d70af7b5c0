"""Matchings: the most pairs that can be made between two sides, each member used once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def match_most(choices: Sequence[Sequence[int]]) -> dict[int, int]:
    """Pair as many members of the left side as possible, by augmenting paths (Kuhn's algorithm).

    Args:
        choices: For each member of the left side, the members of the right side it may be paired with.

    Returns:
        Left to right member. No other choice pairs more; the time is at most members times choices.
    """
    taken: dict[int, int] = {}  # right to left
    for start in range(len(choices)):
        _augment(start, choices, taken)
    return {left: right for right, left in sorted(taken.items(), key=lambda pair: pair[1])}


def match_greedy(choices: Sequence[Sequence[int]]) -> dict[int, int]:
    """Give each member of the left side in turn the first of its choices that is still free."""
    taken: dict[int, int] = {}
    for left, options in enumerate(choices):
        free = next((right for right in options if right not in taken), None)
        if free is not None:
            taken[free] = left
    return {left: right for right, left in taken.items()}


def _augment(start: int, choices: Sequence[Sequence[int]], taken: dict[int, int]) -> None:
    """Look for a way to pair `start`, others moving to another of their choices, and go it."""
    came_from: dict[int, int] = {}  # right member to the left one that reached it
    pending = [start]
    while pending:
        left = pending.pop(0)
        for right in choices[left]:
            if right in came_from:
                continue
            came_from[right] = left
            if right not in taken:
                _flip(right, start, came_from, taken)
                return
            pending.append(taken[right])


def _flip(end: int, start: int, came_from: dict[int, int], taken: dict[int, int]) -> None:
    """Pair along the way that leads from `start` to `end`."""
    held = {left: right for right, left in taken.items()}
    right: int | None = end
    while right is not None:
        left = came_from[right]
        taken[right] = left
        right = None if left == start else held[left]
