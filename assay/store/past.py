"""Answers of other runs, found by key: a sorted index in memory, payloads in their files."""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Self

import numpy as np

from assay.store.call_index import DIGITS, WORD, read_index
from assay.store.lines import check_key, parse_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.store.call_index import Words
    from assay.store.layout import RunFolder
    from assay.store.lines import JsonObject

OFFSET_BITS = 40  # of a place: where in its segment; the bits above say in which
MAX_OPEN = 64  # descriptors kept at once
PIECE = 4096  # bytes read first; most lines are shorter


class PastCalls:
    """The calls of several runs; any thread may ask.

    Memory holds 16 bytes per call and 16 per segment. Lines are read when they are asked for, and a line is
    believed only if it has the whole key.
    """

    def __init__(self, folders: list[RunFolder], segments: Words, keys: Words, places: Words) -> None:
        """Take a sorted index.

        Args:
            folders: The runs, oldest first.
            segments: A row per segment of all runs: number of its folder, index in it.
            keys: First 64 bits of every key, ascending.
            places: Number of segment and offset of each, so that a greater place is a newer answer.
        """
        self._folders, self._segments, self._keys, self._places = folders, segments, keys, places
        self._files: OrderedDict[int, int] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        """Return how many calls can be found, those that share a key included."""
        return self._keys.size

    def find(self, key: str) -> JsonObject | None:
        """Return the payload of a key from the newest run that has it; of several in one run the last.

        Files that are gone meanwhile and damaged lines count as not found.

        Raises:
            ContractError: The key is not 64 lower-case hex digits.
        """
        check_key(key)
        wanted = np.uint64(int(key[:DIGITS], 16))
        with self._lock:
            first = self._keys.searchsorted(wanted)
            last = self._keys.searchsorted(wanted, side="right")
            for place in sorted(self._places[first:last].tolist(), reverse=True):
                entry = parse_line(self._read_line(place))
                if entry is not None and entry[0] == key:
                    return entry[1]
        return None

    def close(self) -> None:
        """Close all files and forget the index; nothing is found any more."""
        with self._lock:
            self._keys, self._places = self._keys[:0].copy(), self._places[:0].copy()
            while self._files:
                os.close(self._files.popitem()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _read_line(self, place: int) -> bytes:
        segment, offset = place >> OFFSET_BITS, place & ((1 << OFFSET_BITS) - 1)
        line, length = b"", PIECE
        with suppress(OSError):
            file = self._open(segment)
            while piece := os.pread(file, length, offset + len(line)):
                line += piece
                end = line.find(b"\n", len(line) - len(piece))
                if end >= 0:
                    return line[: end + 1]
                length = len(line)
        return b""

    def _open(self, segment: int) -> int:
        file = self._files.get(segment)
        if file is not None:
            self._files.move_to_end(segment)
            return file
        run, index = int(self._segments[segment, 0]), int(self._segments[segment, 1])
        file = os.open(self._folders[run].segment(index), os.O_RDONLY)
        self._files[segment] = file
        if len(self._files) > MAX_OPEN:
            os.close(self._files.popitem(last=False)[1])
        return file


def open_past(folders: Sequence[RunFolder]) -> PastCalls:
    """Open the calls of runs, committed or not.

    Each run's index is read from its sidecar, which is made or renewed here where the folder can be written.

    Args:
        folders: The runs, newest first; one without calls, or deleted, has none.

    Raises:
        StoreError: The calls of a run cannot be read.
    """
    oldest_first = list(reversed(folders))
    segments, keys, places = _gather(oldest_first)
    return PastCalls(oldest_first, np.concatenate(segments), *_sort(keys, places))


def _gather(folders: list[RunFolder]) -> tuple[list[Words], list[Words], list[Words]]:
    """Return, run by run, what `PastCalls` takes, unsorted."""
    nothing = np.empty(0, WORD)
    segments, keys, places, count = [nothing.reshape(-1, 2)], [nothing], [nothing], 0
    for run, folder in enumerate(folders):
        index = read_index(folder)
        numbers = np.arange(count, count + len(index.segments), dtype=WORD) << np.uint64(OFFSET_BITS)
        count += len(index.segments)
        segments.append(np.column_stack((np.full(len(numbers), run, WORD), index.segments[:, 0])))
        keys.append(index.keys)
        places.append(np.repeat(numbers, index.segments[:, 2].astype(np.int64)) | index.offsets)
    return segments, keys, places


def _sort(keys: list[Words], places: list[Words]) -> tuple[Words, Words]:
    """Join and sort by key; what is used up is let go of at once, as each array has 8 bytes per call."""
    every = np.concatenate(keys)
    keys.clear()
    where = np.concatenate(places)
    places.clear()
    order = np.argsort(every)
    every = every[order]
    return every, where[order]
