"""Marks of files: by their hashes a run tells whether what it was made of has changed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from assay.engine.request import FileMark
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def mark_files(paths: Iterable[Path]) -> tuple[FileMark, ...]:
    """Return the marks of files."""
    return tuple(FileMark(path=str(path.absolute()), sha256=hash_file(path)) for path in paths)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of the bytes of a file.

    Raises:
        InputError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=str(path)) from error
