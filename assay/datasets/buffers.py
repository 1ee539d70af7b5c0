"""Bytes of a stream, gathered until whole records can be cut off them, with the place where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BLOCK_BYTES = 2 << 20
LONGEST_RECORD = 256 << 20  # bytes; what is longer is a record that was never closed


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive bytes of a file.

    Attributes:
        data: UTF-8 text.
        line: 1-based line of the first byte.
        column: 1-based column of it, in characters.
    """

    data: bytes = b""
    line: int = 1
    column: int = 1

    def find_place(self, offset: int) -> tuple[int, int]:
        """Return the 1-based line and column, in characters, of a byte."""
        passed = self.data.count(b"\n", 0, offset)
        if not passed:
            return self.line, self.column + _count_characters(self.data[:offset])
        begin = self.data.rfind(b"\n", 0, offset) + 1
        return self.line + passed, 1 + _count_characters(self.data[begin:offset])

    def cut(self, offset: int) -> Piece:
        """Return what begins at a byte."""
        return Piece(self.data[offset:], *self.find_place(offset))


class Buffer:
    """A stream of which whole records are taken off the front.

    Attributes:
        piece: The bytes at hand.
        ended: Whether nothing follows them.
    """

    def __init__(self, chunks: Iterable[bytes], size: int, longest: int) -> None:
        """Read nothing yet.

        Args:
            chunks: The bytes.
            size: How many are gathered before records are looked for.
            longest: How many a record may have.
        """
        self.piece = Piece()
        self.ended = False
        self._chunks = iter(chunks)
        self._size, self._longest = size, longest

    @property
    def is_overfull(self) -> bool:
        """Whether a record began that is longer than it may be."""
        return len(self.piece.data) > self._longest

    def fill(self) -> None:
        """Gather more: a block at least, and as much again as was left over.

        So the bytes of a record that is longer than a block are looked at a few times, not once per chunk.
        """
        parts = [self.piece.data]
        held = len(parts[0])
        wanted = max(self._size, min(2 * held, self._longest + self._size))
        while held < wanted:
            chunk = next(self._chunks, None)
            if chunk is None:
                self.ended = True
                break
            parts.append(chunk)
            held += len(chunk)
        self.piece = Piece(b"".join(parts), self.piece.line, self.piece.column)

    def drop(self, count: int) -> None:
        """Take bytes off the front."""
        self.piece = self.piece.cut(count)


def _count_characters(data: bytes) -> int:
    return len(data.decode("utf-8", "replace"))
