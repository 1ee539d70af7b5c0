"""Where everything of a store lies."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import ConfigError, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

RUN_PREFIX = "run_id="  # hive form, so that other tools can prune by folder
MAX_ATTEMPTS = 100  # two runs of one second collide once in 16 million


@dataclass(frozen=True, slots=True)
class Store:
    """A history of runs in one folder.

    Attributes:
        root: Absolute path of the folder.
    """

    root: Path

    @property
    def runs(self) -> Path:
        """The folder that holds one folder per run."""
        return self.root / "runs"


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The files of one run; the paths need not exist."""

    store: Store
    run_id: str

    @property
    def path(self) -> Path:
        """The folder that this run alone writes to."""
        return self.store.runs / f"{RUN_PREFIX}{self.run_id}"

    def part(self, table: str, index: int) -> Path:
        """Return the path of one part of a table; `index` counts from 0."""
        return self.path / table / f"part-{index:05d}.parquet"

    @property
    def calls(self) -> Path:
        """The folder of the call ledger."""
        return self.path / "calls"

    def segment(self, index: int) -> Path:
        """Return the path of the calls of one batch; `index` counts from 0."""
        return self.calls / f"part-{index:05d}.jsonl"

    @property
    def request(self) -> Path:
        """What the run was asked to do, written before its first call."""
        return self.path / "request.json"

    @property
    def summary(self) -> Path:
        """One row per evaluator and slice."""
        return self.path / "summary.parquet"

    @property
    def commit(self) -> Path:
        """The file whose presence makes the run visible to readers."""
        return self.path / "run.parquet"


def list_run_folders(store: Store) -> list[RunFolder]:
    """Return the folders of all runs, newest first, whatever they hold.

    Raises:
        StoreError: The store cannot be read.
    """
    try:
        names = [path.name for path in store.runs.iterdir()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{store.runs}: cannot be read: {error.strerror}") from error
    ids = (name.removeprefix(RUN_PREFIX) for name in names if name.startswith(RUN_PREFIX))
    return [RunFolder(store, run_id) for run_id in sorted(ids, reverse=True)]


def open_store(root: str, *, create: bool) -> Store:
    """Check a store's folder and return the store.

    Args:
        root: Local path, `~` allowed.
        create: Make the folder when it is absent and require that it can be written.

    Raises:
        ConfigError: `root` is a URL or empty, or with `create=False` no such folder.
        StoreError: With `create=True` the folder cannot be made or written.
    """
    if not root or "://" in root:
        raise ConfigError(f"store {root!r}: a path of a local folder is accepted, such as .assay")
    path = Path(root).expanduser().absolute()
    if create:
        _make_writable(path)
    elif not path.is_dir():
        raise ConfigError(f"store {path}: no such folder; `assay run --store {root}` makes it")
    return Store(path)


def _make_writable(path: Path) -> None:
    remedy = "make the folder writable or name another with --store"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"store {path}: cannot be made: {error.strerror}; {remedy}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise StoreError(f"store {path}: cannot be written; {remedy}")


def new_run_id(now: datetime, entropy: str) -> str:
    """Compose a run id that sorts by time, such as `20261130-154500-3f9a2c`.

    Args:
        now: Aware time; the id holds its UTC seconds.
        entropy: Hex digits that tell runs of one second apart.
    """
    return f"{now.astimezone(UTC):%Y%m%d-%H%M%S}-{entropy}"


def create_run(store: Store, now: datetime, *, draw: Callable[[int], str] = secrets.token_hex) -> RunFolder:
    """Make the folder of a new run, which no other process can get as well.

    Args:
        store: The store.
        now: Aware time of the start.
        draw: Returns that many random bytes as hex digits.

    Raises:
        StoreError: The folder cannot be made.
    """
    for _ in range(MAX_ATTEMPTS):
        folder = RunFolder(store, new_run_id(now, draw(3)))
        try:
            store.runs.mkdir(parents=True, exist_ok=True)
            folder.path.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise StoreError(f"{folder.path}: cannot be made: {error.strerror}") from error
        return folder
    raise StoreError(f"{store.runs}: no free run id after {MAX_ATTEMPTS} attempts")
