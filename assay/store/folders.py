"""The folders of all runs, finished or not, and how a user refers to one that goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import ConfigError
from assay.store.catalog import find_run
from assay.store.layout import RunFolder, list_run_folders

if TYPE_CHECKING:
    from assay.store.layout import Store


def list_folders(store: Store) -> list[RunFolder]:
    """Return every run that was prepared to its end, newest first.

    Raises:
        StoreError: The store cannot be read.
    """
    return [folder for folder in list_run_folders(store) if folder.request.is_file()]


def list_unfinished(store: Store) -> list[RunFolder]:
    """Return the runs that were prepared and never committed, newest first."""
    return [folder for folder in list_folders(store) if not folder.commit.is_file()]


def find_folder(store: Store, reference: str) -> RunFolder:
    """Return the run that a user means, a run that was never committed among them.

    An id, the beginning of exactly one, and `latest` may mean any run; all else as in `find_run`.

    Raises:
        ConfigError: Nothing or more than one run fits.
    """
    folders = list_folders(store)
    if reference == "latest" and folders:
        return folders[0]
    exact = [folder for folder in folders if folder.run_id == reference]
    begun = [folder for folder in folders if reference and folder.run_id.startswith(reference)]
    if exact or len(begun) == 1:
        return (exact or begun)[0]
    if RunFolder(store, reference).path.is_dir():
        raise ConfigError(
            f"run {reference!r} ended before its input was read to the end, so nothing was asked in it; "
            "start a new one"
        )
    return RunFolder(store, find_run(store, reference))
