"""Where the calls of a run lie: a key and an offset per line, found without parsing and kept in a sidecar."""

from __future__ import annotations

import os
import secrets
import zlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from assay.errors import StoreError
from assay.store.lines import PREFIX, list_segments

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from assay.store.layout import RunFolder

    Words: TypeAlias = NDArray[np.uint64]
    Bytes: TypeAlias = NDArray[np.uint8]
    Places: TypeAlias = NDArray[np.int64]

WORD = np.dtype("<u8")
MAGIC = int.from_bytes(b"assayix1", "little")  # the last character is the version
HEADER = 4  # words: magic, checksum of the rest, segments, entries
COLUMNS = 3  # words per segment: index, size, entries
DIGITS = 16  # of a key stand in the index; the line itself has them all
HEAD = len(PREFIX) + DIGITS
NO_DIGIT = 255
CHUNK = 1 << 20

_PREFIX = np.frombuffer(PREFIX, np.uint8)
_NIBBLES = np.full(256, NO_DIGIT, np.uint8)
_NIBBLES[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)


@dataclass(frozen=True, slots=True)
class CallIndex:
    """The lines of a run's segments.

    Attributes:
        segments: A row per segment, by index: index, bytes up to the end of the last whole line, entries.
        keys: First 64 bits of the keys, segment by segment in the order of lines.
        offsets: Where each line begins in its segment.
    """

    segments: Words
    keys: Words
    offsets: Words


def read_index(folder: RunFolder) -> CallIndex:
    """Return the index of a run's calls as they are now.

    Segments that are as large as the sidecar says are taken from it, others are read. The sidecar is then
    replaced if that is possible. A segment whose last line is torn is always read.

    Raises:
        StoreError: A segment cannot be read.
    """
    sidecar = folder.calls / "index.bin"
    known = read_sidecar(sidecar)
    try:
        sizes = _measure(folder)
        index = known if _sizes_of(known) == sizes else _renew(folder, known, sizes)
    except FileNotFoundError:  # the run is being deleted
        return CallIndex(known.segments[:0], known.keys[:0], known.offsets[:0])
    except OSError as error:
        raise StoreError(f"{folder.calls}: cannot be read: {error.strerror}") from error
    if not np.array_equal(index.segments, known.segments):
        with suppress(OSError):
            write_sidecar(sidecar, index)
    return index


def _measure(folder: RunFolder) -> dict[int, int]:
    return {index: folder.segment(index).stat().st_size for index in list_segments(folder)}


def _sizes_of(index: CallIndex) -> dict[int, int]:
    return dict(index.segments[:, :2].tolist())


def _renew(folder: RunFolder, known: CallIndex, sizes: dict[int, int]) -> CallIndex:
    """Read the segments that changed; take the others as they were."""
    ends = np.cumsum(known.segments[:, 2]).tolist()
    slices = {
        (index, size): slice(end - count, end)
        for (index, size, count), end in zip(known.segments.tolist(), ends, strict=True)
    }
    rows, buffer = list[tuple[int, int, int]](), make_buffer()
    keys, offsets = [known.keys[:0]], [known.offsets[:0]]
    for index, size in sizes.items():
        kept = slices.get((index, size))
        if kept is None:
            whole, some_keys, some_offsets = scan_segment(folder.segment(index), size, buffer)
        else:
            whole, some_keys, some_offsets = size, known.keys[kept], known.offsets[kept]
        rows.append((index, whole, some_keys.size))
        keys.append(some_keys)
        offsets.append(some_offsets)
    segments = np.array(rows, WORD).reshape(-1, COLUMNS)
    return CallIndex(segments, np.concatenate(keys), np.concatenate(offsets))


def make_buffer(chunk: int = CHUNK) -> Bytes:
    """Return the memory that segments are read into, `chunk` bytes at a time."""
    return np.empty(chunk + HEAD, np.uint8)


def scan_segment(path: Path, size: int, buffer: Bytes) -> tuple[int, Words, Words]:
    """Find the lines of a segment; lines that do not begin like an entry are left out.

    Args:
        path: The segment.
        size: How many bytes to look at; what is appended meanwhile stays out.
        buffer: What `make_buffer` made. One for all segments, because blocks of this size between the small
            arrays that stay would leave the memory full of holes.

    Returns:
        Bytes up to the end of the last whole line, keys and offsets.

    Raises:
        OSError: The file cannot be read.
    """
    whole, chunk = 0, buffer.size - HEAD
    keys, offsets = [np.empty(0, WORD)], [np.empty(0, WORD)]
    with path.open("rb", buffering=0) as file:
        for start in range(0, size, chunk):
            # the head of a line that begins at the end of a chunk stands in the next one
            data = buffer[: os.preadv(file.fileno(), [buffer.data], start)]
            starts = np.flatnonzero(data[: min(chunk, size - start)] == ord("\n")) + 1
            if starts.size:
                whole = start + int(starts[-1])
            if start == 0:
                starts = np.append(0, starts)
            some_keys, entries = _read_keys(data, starts)
            keys.append(some_keys)
            offsets.append((entries + start).astype(WORD))
    every = np.concatenate(offsets)
    count = int(np.searchsorted(every, np.uint64(whole)))  # what begins at the end is torn
    return whole, np.concatenate(keys)[:count], every[:count]


def _read_keys(data: Bytes, starts: Places) -> tuple[Words, Places]:
    """Return the keys of the lines that begin like an entry, and where those begin."""
    starts = starts[np.diff(starts, append=data.size) >= HEAD]
    if not starts.size:
        return np.empty(0, WORD), starts
    heads = np.lib.stride_tricks.sliding_window_view(data, HEAD)[starts]
    digits = _NIBBLES[heads[:, len(PREFIX) :]]
    sound = (heads[:, : len(PREFIX)] == _PREFIX).all(axis=1) & (digits != NO_DIGIT).all(axis=1)
    digits = digits[sound]
    octets = np.ascontiguousarray(digits[:, ::2] << 4 | digits[:, 1::2])
    return octets.view(">u8").ravel().astype(WORD), starts[sound]


def read_sidecar(path: Path) -> CallIndex:
    """Read a sidecar; an absent or damaged one holds nothing."""
    nothing = np.empty(0, WORD)
    empty = CallIndex(nothing.reshape(-1, COLUMNS), nothing, nothing)
    try:
        words = np.fromfile(path, WORD)
    except OSError:
        return empty
    if words.size < HEADER or words[0] != MAGIC or words[1] != zlib.crc32(words[2:].data):
        return empty
    count, entries = int(words[2]), int(words[3])
    middle = HEADER + COLUMNS * count
    if words.size != middle + 2 * entries:
        return empty
    segments = words[HEADER:middle].reshape(-1, COLUMNS)
    return CallIndex(segments, words[middle : middle + entries], words[middle + entries :])


def write_sidecar(path: Path, index: CallIndex) -> None:
    """Write a sidecar, whole or not at all.

    Raises:
        OSError: The file cannot be written.
    """
    counts = np.array([len(index.segments), index.keys.size], WORD)
    blocks = (counts, np.ascontiguousarray(index.segments), index.keys, index.offsets)
    checksum = 0
    for block in blocks:
        checksum = zlib.crc32(block.data, checksum)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with draft.open("wb") as file:
            for block in (np.array([MAGIC, checksum], WORD), *blocks):
                file.write(block.data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
