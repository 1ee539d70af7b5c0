"""Compressed files read as a stream of plain bytes; gzip and zstd are known by their first bytes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, BinaryIO, Protocol

import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PACKED_BYTES = 65_536  # read at once of a compressed file, as it grows
DAMAGE = (OSError, EOFError, zlib.error, zstandard.ZstdError)  # what reading may raise


class _Frame(Protocol):
    """One member or frame being unpacked."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def decompress(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield the plain bytes of a file in chunks, all members or frames of it.

    Args:
        file: At its beginning; it must be seekable.
        size: Bytes of a chunk of a plain file; chunks of a compressed one are as long as they become.

    Raises:
        OSError: The file cannot be read.
        EOFError: The compression ends too soon; its text names the kind.
        zlib.error or zstandard.ZstdError: It is broken.
    """
    magic = file.read(len(ZSTD_MAGIC))
    file.seek(0)
    if magic.startswith(GZIP_MAGIC):
        yield from _unpack(file, "gzip", lambda: zlib.decompressobj(wbits=31))
    elif magic == ZSTD_MAGIC:
        yield from _unpack(file, "zstd", lambda: zstandard.ZstdDecompressor().decompressobj())
    else:
        while chunk := file.read(size):
            yield chunk


def describe_damage(error: BaseException) -> str:
    """Say what is wrong with a file that could not be read."""
    match error:
        case EOFError():
            return str(error)
        case OSError():
            return f"cannot be read: {error.strerror}"
        case _:
            return f"broken compression: {error}"


def _unpack(file: BinaryIO, kind: str, start: Callable[[], _Frame]) -> Iterator[bytes]:
    """Yield the plain bytes of one member or frame after the other, each begun with `start`."""
    data = file.read(PACKED_BYTES)
    while data:
        frame = start()
        while not frame.eof:
            if not data:
                raise EOFError(f"unexpected end of {kind} stream")
            plain = frame.decompress(data)
            if plain:
                yield plain
            data = frame.unused_data if frame.eof else file.read(PACKED_BYTES)
        data = data or file.read(PACKED_BYTES)
        if kind == "gzip":
            data = data.lstrip(b"\0")  # padding after the last member is allowed
