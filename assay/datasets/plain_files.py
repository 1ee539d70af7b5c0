"""Files that are read at any place and not from end to end: plain on disk, whatever they are packed in."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.datasets.compression import DAMAGE, GZIP_MAGIC, ZSTD_MAGIC, decompress, describe_damage
from assay.datasets.files import CHUNK_BYTES, check_exists
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.datasets.files import Input


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A file that lies on disk without compression.

    Attributes:
        path: Where it lies.
        digest: Returns the SHA-256 of its bytes.
        keep: A temporary file that goes when nobody holds it.
    """

    path: Path
    digest: Callable[[], str]
    keep: object = None

    @property
    def is_empty(self) -> bool:
        """Whether it has no bytes."""
        return self.path.stat().st_size == 0


def open_plain(file: Input) -> PlainFile:
    """Find a file, or unpack it from gzip or zstd to a temporary file.

    Raises:
        InputError: The file is missing or unreadable, or its compression is cut or broken.
    """
    check_exists(file.path, shown=file.shown)
    try:
        with file.path.open("rb") as raw:
            magic = raw.read(len(ZSTD_MAGIC))
        if magic.startswith(GZIP_MAGIC) or magic == ZSTD_MAGIC:
            return _unpack(file)
    except DAMAGE as error:
        raise InputError(describe_damage(error), path=file.shown) from error
    return PlainFile(file.path, lambda: _hash(file.path), file.keep)


def _unpack(file: Input) -> PlainFile:
    spool = tempfile.NamedTemporaryFile(prefix="assay-plain-")  # noqa: SIM115 - it lives as long as its PlainFile
    digest = hashlib.sha256()
    with file.path.open("rb") as raw:
        for chunk in decompress(raw, CHUNK_BYTES):
            digest.update(chunk)
            spool.write(chunk)
    spool.flush()
    return PlainFile(Path(spool.name), digest.hexdigest, spool)


def _hash(path: Path) -> str:
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()
