"""Reuse: which earlier runs a run may take identical answers from."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from assay.errors import ConfigError
from assay.store.folders import find_folder, list_folders
from assay.store.layout import open_store
from assay.store.past import open_past

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.store.layout import RunFolder, Store
    from assay.store.past import PastCalls

_AGE = re.compile(r"(\d{1,6})([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


def open_reused(config: RunConfig, run_id: str) -> PastCalls | None:
    """Open the answers of the runs that `--reuse` names; None when it names none.

    Args:
        config: What was asked for.
        run_id: The run itself, which is no earlier one.

    Raises:
        ConfigError: There is no such run.
    """
    if config.reuse is None:
        return None
    folders = choose_runs(open_store(config.store, create=False), config.reuse, datetime.now(UTC))
    return open_past([folder for folder in folders if folder.run_id != run_id])


def pin_reuse(reuse: str, root: str) -> str:
    """Return `--reuse` with the run that it means by its id; `all` and ages stay as they are.

    Raises:
        ConfigError: There is no such run.
    """
    if reuse == "all" or _AGE.fullmatch(reuse):
        return reuse
    return choose_runs(open_store(root, create=False), reuse, datetime.now(UTC))[0].run_id


def choose_runs(store: Store, reuse: str, now: datetime) -> list[RunFolder]:
    """Return the runs that are meant, newest first, finished or not.

    Args:
        store: The store.
        reuse: `all`, an age such as `36h`, `90d` or `4w`, or a run as in any other place.
        now: Aware time that ages are counted from.

    Raises:
        ConfigError: It is none of these, or there is no such run.
    """
    if reuse == "all":
        return list_folders(store)
    if match := _AGE.fullmatch(reuse):
        oldest = now - timedelta(hours=int(match[1]) * _HOURS[match[2]])
        first = f"{oldest.astimezone(UTC):%Y%m%d-%H%M%S}"  # run ids begin with their time
        return [folder for folder in list_folders(store) if folder.run_id >= first]
    try:
        return [find_folder(store, reuse)]
    except ConfigError as error:
        raise ConfigError(f"--reuse: {error}; or all, or an age such as 90d") from error
