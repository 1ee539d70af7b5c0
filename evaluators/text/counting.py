"""What two columns of tokens have in common, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evaluators.text import plain
from evaluators.text.compiling import SMALL, run_blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evaluators.text.tokens import Tokens


def count_shared(left: Tokens, right: Tokens, low: int = 1, high: int = 1) -> NDArray[np.int64]:
    """Count the n-grams that two rows share, each as often as both have it.

    Returns:
        Rows by low <= n <= high.
    """
    if len(left) < SMALL:
        return plain.share_rows(left, right, low, high)
    from evaluators.text.kernels import share_rows

    shared = np.zeros((len(left), high - low + 1), np.int64)

    def share_block(first: int, end: int) -> None:
        share_rows(_cut(left, first, end), _cut(right, first, end), low, shared[first:end])

    run_blocks(share_block, len(left))
    return shared


def count_common(left: Tokens, right: Tokens) -> NDArray[np.int64]:
    """Return the length of the longest common subsequence of tokens of each row."""
    if len(left) < SMALL:
        return plain.align_rows(left, right)
    from evaluators.text.kernels import align_rows

    common = np.zeros(len(left), np.int64)

    def align_block(first: int, end: int) -> None:
        align_rows(_cut(left, first, end), _cut(right, first, end), common[first:end])

    run_blocks(align_block, len(left))
    return common


def _cut(tokens: Tokens, first: int, end: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    return tokens.hashes, tokens.starts[first : end + 1]
