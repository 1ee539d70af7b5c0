"""The lock of a run: one process at a time works on it."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from assay.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from assay.store.layout import RunFolder

_held: set[Path] = set()
"""Folders of the runs that this process holds."""


@contextmanager
def lock_run(folder: RunFolder) -> Generator[None]:
    """Hold a run while the block lasts; the system lets go of it when the process ends, however it ends.

    Who holds it may ask for it again in the same process.

    Raises:
        StoreError: Another process works on the run, or its folder cannot be written.
    """
    if folder.path in _held:
        yield
        return
    try:
        handle = os.open(folder.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(f"{folder.path}: cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreError(
                f"run {folder.run_id} is being worked on by another process; wait for it, or end it"
            ) from error
        _held.add(folder.path)
        yield
    finally:
        _held.discard(folder.path)
        os.close(handle)
