"""Text files as they lie on disk: found, decompressed, hashed and decoded strictly."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import zstandard

from assay.errors import InputError, list_names, nearest_names

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
HEAD_BYTES = 65_536  # enough to see what kind of file it is


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was read.

    Attributes:
        path: Where it lies.
        shown: Its name in messages and tables, as the user wrote it.
        text: Its text without a byte order mark; line ends as they are.
        sha256: Hash of its bytes after decompression.
    """

    path: Path
    shown: str
    text: str
    sha256: str

    def error(
        self, message: str, *, line: int | None = None, offset: int | None = None, pointer: str = ""
    ) -> InputError:
        """Build an error about this file; `offset` counts characters and becomes line and column."""
        column = None
        if offset is not None:
            line, column = find_place(self.text, offset)
        return InputError(message, path=self.shown, line=line, column=column, pointer=pointer)

    @property
    def no_rows(self) -> InputError:
        """The error about a file that holds nothing to score."""
        return InputError(f"no rows in {self.path.name}", path=self.shown)


def find_place(text: str, offset: int) -> tuple[int, int]:
    """Return the 1-based line and column of a character offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def find_lines(text: str, offsets: Iterable[int]) -> list[int]:
    """Return the 1-based line of each of some ascending character offsets."""
    line, passed = 1, 0
    lines: list[int] = []
    for offset in offsets:
        line += text.count("\n", passed, offset)
        lines.append(line)
        passed = offset
    return lines


def plain_suffix(path: Path) -> str:
    """Return the lower-case suffix of a file, `.gz` and `.zst` not counted."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def check_exists(path: Path, *, shown: str) -> None:
    """Raise an InputError that names the files nearest to a missing one."""
    if path.exists():
        return
    if not path.parent.is_dir():
        raise InputError(f"no such file; the folder {path.parent} does not exist", path=shown)
    close = nearest_names(path.name, [entry.name for entry in path.parent.iterdir()])
    hint = f"; did you mean {list_names(str(path.parent / name) for name in close)}?" if close else ""
    raise InputError(f"no such file{hint}", path=shown)


def read_source(path: Path, *, shown: str) -> Source:
    """Read a text file, gzip and zstd by their first bytes.

    Args:
        path: Where it lies.
        shown: Its name in messages and tables.

    Raises:
        InputError: The file is missing or unreadable, its compression is cut or broken, or a byte
            is not UTF-8 (with the line and the byte).
    """
    data = _decompress(read_bytes(path, shown=shown), shown)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02X} is not UTF-8; save the file as UTF-8"
        raise InputError(message, path=shown, line=line) from error
    return Source(path, shown, text.removeprefix("\ufeff"), hashlib.sha256(data).hexdigest())


def read_bytes(path: Path, *, shown: str) -> bytes:
    """Read a file as it is.

    Raises:
        InputError: The file is missing or unreadable.
    """
    check_exists(path, shown=shown)
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=shown) from error


def read_head(path: Path, *, shown: str) -> str:
    """Read the beginning of a file to see what it is; broken compression gives an empty text.

    Raises:
        InputError: The file is missing or unreadable.
    """
    check_exists(path, shown=shown)
    try:
        with path.open("rb") as file:
            magic = file.read(len(ZSTD_MAGIC))
            file.seek(0)
            data = _read_start(file, magic)
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError):
        return ""
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=shown) from error
    return data.decode("utf-8", "replace").removeprefix("\ufeff")


def _read_start(file: BinaryIO, magic: bytes) -> bytes:
    if magic.startswith(GZIP_MAGIC):
        with gzip.open(file) as stream:
            return stream.read(HEAD_BYTES)
    if magic == ZSTD_MAGIC:
        stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True, closefd=False)
        return stream.read(HEAD_BYTES)
    return file.read(HEAD_BYTES)


def _decompress(data: bytes, shown: str) -> bytes:
    try:
        if data.startswith(GZIP_MAGIC):
            return gzip.decompress(data)
        return _decompress_zstd(data) if data.startswith(ZSTD_MAGIC) else data
    except EOFError as error:
        kind = "gzip" if data.startswith(GZIP_MAGIC) else "zstd"
        raise InputError(f"unexpected end of {kind} stream", path=shown) from error
    except (OSError, zlib.error, zstandard.ZstdError) as error:
        raise InputError(f"broken compression: {error}", path=shown) from error


def _decompress_zstd(data: bytes) -> bytes:
    parts: list[bytes] = []
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        parts.append(frame.decompress(data))
        if not frame.eof:
            raise EOFError
        data = frame.unused_data
    return b"".join(parts)
