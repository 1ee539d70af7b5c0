"""Compressed files read as a stream of plain bytes; gzip and zstd are known by their first bytes."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, BinaryIO

import zstandard

if TYPE_CHECKING:
    from collections.abc import Iterator

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
PACKED_BYTES = 65_536  # read at once of a compressed file, as it grows
DAMAGE = (OSError, EOFError, zlib.error, zstandard.ZstdError)  # what reading may raise


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
        yield from _read_gzip(file, PACKED_BYTES)
    elif magic == ZSTD_MAGIC:
        yield from _read_zstd(file, PACKED_BYTES)
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


def _read_gzip(file: BinaryIO, size: int) -> Iterator[bytes]:
    data = file.read(size)
    while data:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            if not data:
                raise EOFError("unexpected end of gzip stream")
            plain = member.decompress(data)
            if plain:
                yield plain
            data = member.unused_data if member.eof else file.read(size)
        data = (data or file.read(size)).lstrip(b"\0")  # padding after the last member is allowed


def _read_zstd(file: BinaryIO, size: int) -> Iterator[bytes]:
    data = file.read(size)
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if not data:
                raise EOFError("unexpected end of zstd stream")
            plain = frame.decompress(data)
            if plain:
                yield plain
            data = frame.unused_data if frame.eof else file.read(size)
        data = data or file.read(size)
