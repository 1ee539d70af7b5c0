"""Tokens of many texts, as hashes side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Tokens:
    """The tokens of a column of texts.

    Attributes:
        hashes: One number per token, uint64, all texts one after the other; equal tokens have equal numbers.
        starts: Where each text begins in `hashes`, and where the last one ends; int64, one more than texts.
    """

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        """Count the texts."""
        return len(self.starts) - 1

    @property
    def counts(self) -> NDArray[np.int64]:
        """Tokens of each text."""
        return self.starts[1:] - self.starts[:-1]


def hash_tokens(rows: Iterable[Iterable[str]]) -> Tokens:
    """Number tokens that some other tokeniser found, by Python's hash: alike in one process only.

    Texts of unlike width with the same bytes in memory have the same hash, hence the length.
    """
    import numpy as np

    hashes: list[int] = []
    starts = [0]
    for row in rows:
        hashes.extend(hash(token) ^ len(token) for token in row)
        starts.append(len(hashes))
    return Tokens(np.array(hashes, np.int64).view(np.uint64), np.array(starts, np.int64))
