"""The call ledger of a run: every answer is appended as it arrives, one segment per batch."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from assay.errors import ContractError, StoreError
from assay.store.lines import JsonObject, list_segments, parse_line, write_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.store.layout import RunFolder

_REMEDIES = {
    errno.ENOSPC: "free some space",
    errno.EDQUOT: "free some space",
    errno.EFBIG: "lift the limit on file sizes",
}
_HELD = "run {} is being worked on by another process; wait for it, or end it"


class Segment:
    """The calls of one batch; the only writer of its file, and used by one thread at a time.

    Payloads stay in the file; memory holds a place for each key.
    """

    def __init__(self, folder: RunFolder, index: int) -> None:
        self._path, self._run_id = folder.segment(index), folder.run_id
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0
        self._failure: StoreError | None = None
        self._closed = False
        self._file: int | None = None
        try:
            self._file = self._attach(0)
        except FileNotFoundError:
            return  # the first append makes it
        except OSError as error:
            raise self._explain(error) from error

    def find(self, key: str) -> JsonObject | None:
        """Return the last payload of a key in this segment.

        Raises:
            StoreError: The file cannot be read.
        """
        place = self._places.get(key)
        if place is None or self._file is None:
            return None
        try:
            entry = parse_line(os.pread(self._file, place[1], place[0]))
        except OSError as error:
            raise StoreError(f"{self._path}: cannot be read: {error.strerror}") from error
        return None if entry is None else entry[1]

    def append(self, key: str, payload: JsonObject) -> None:
        """Append an entry; when this returns, the death of the process cannot lose it.

        Args:
            key: 64 lower-case hex digits.
            payload: What was answered; it has no member `key`.

        Raises:
            StoreError: The file cannot be made or written, or another process writes it. It then holds
                whole lines only, and every later append fails alike.
            ContractError: Key or payload cannot be written, or the segment is closed.
            NonFiniteError: The payload holds NaN or an infinity.
        """
        if self._closed:
            raise ContractError(f"{self._path}: append after close")
        if self._failure is not None:
            raise StoreError(str(self._failure)) from self._failure
        line = write_line(key, payload)
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._attach(os.O_CREAT)
            self._write(self._file, line)
        except OSError as error:
            self._failure = self._explain(error)
            raise self._failure from error
        self._places[key] = (self._end, len(line))
        self._end += len(line)

    def close(self) -> None:
        """Bring the file to the disk and let go of it; a second call does nothing.

        Raises:
            StoreError: The disk did not take what was written.
        """
        file, self._file, self._closed = self._file, None, True
        if file is None:
            return
        try:
            os.fsync(file)
        except OSError as error:
            if self._failure is None:  # otherwise it was told already
                raise self._explain(error) from error
        finally:
            os.close(file)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _attach(self, making: int) -> int:
        """Open, lock and read the file; `making` is O_CREAT or 0."""
        file = os.open(self._path, os.O_RDWR | os.O_APPEND | making, 0o666)
        try:
            self._take(file)
        except OSError:
            os.close(file)
            raise
        return file

    def _take(self, file: int) -> None:
        """Lock the file, remember where its entries are, and cut a torn line off."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.fdopen(file, "rb", closefd=False) as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    os.ftruncate(file, self._end)
                    return
                entry = parse_line(line)
                if entry is not None:
                    self._places[entry[0]] = (self._end, len(line))
                self._end += len(line)

    def _write(self, file: int, line: bytes) -> None:
        """Write a line whole or not at all."""
        rest = memoryview(line)
        try:
            while rest:  # one round, but for a disk that fills up: the next one says why
                rest = rest[os.write(file, rest) :]
        except OSError:
            with suppress(OSError):  # if this fails too, whoever opens the file next cuts the line off
                os.ftruncate(file, self._end)
            raise

    def _explain(self, error: OSError) -> StoreError:
        if isinstance(error, BlockingIOError):
            return StoreError(_HELD.format(self._run_id))
        remedy = _REMEDIES.get(error.errno or 0, "make the file writable")
        return StoreError(
            f"{self._path}: cannot be written: {error.strerror}; {remedy}, then `assay run --resume "
            f"{self._run_id}` goes on without asking again what was answered"
        )


def open_segment(folder: RunFolder, index: int) -> Segment:
    """Open the calls of one batch for reading and appending; a torn last line is cut off.

    A file that exists is locked from now on. An absent one is made by the first append, so that a batch
    without calls leaves none.

    Raises:
        StoreError: Another process holds the file, or it cannot be opened.
    """
    return Segment(folder, index)


def has_calls(folder: RunFolder) -> bool:
    """Whether any call of a run was kept.

    Raises:
        StoreError: The ledger cannot be read.
    """
    try:
        return any(folder.segment(index).stat().st_size for index in list_segments(folder))
    except OSError as error:
        raise StoreError(f"{folder.calls}: cannot be read: {error.strerror}") from error


def read_calls(folder: RunFolder) -> Iterator[tuple[str, JsonObject]]:
    """Yield key and payload of every call that a run kept, by segment; damaged lines are left out.

    Raises:
        StoreError: The ledger cannot be read.
    """
    try:
        for index in list_segments(folder):
            yield from _read_lines(folder.segment(index))
    except OSError as error:
        raise StoreError(f"{folder.calls}: cannot be read: {error.strerror}") from error


def _read_lines(path: Path) -> Iterator[tuple[str, JsonObject]]:
    with path.open("rb") as lines:
        for line in lines:
            entry = parse_line(line)
            if entry is not None:
                yield entry
