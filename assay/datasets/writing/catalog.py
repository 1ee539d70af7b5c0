"""The forms that datasets can be written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.datasets.writing import csv_files, foundry, m365, parquet, uipath
from assay.errors import ConfigError, list_names

if TYPE_CHECKING:
    from pathlib import Path

    from assay.datasets.writing.contract import Writer

WRITERS: tuple[Writer, ...] = (
    m365.WRITER,
    foundry.WRITER,
    uipath.WRITER,
    csv_files.WRITER,
    parquet.WRITER,
)


def find_writer(name: str) -> Writer:
    """Return the writer of this name.

    Raises:
        ConfigError: There is none; the message names the nearest.
    """
    found = {writer.name: writer for writer in WRITERS}
    if name not in found:
        raise ConfigError.unknown("form", name, found)
    return found[name]


def choose_writer(out: Path) -> Writer:
    """Return the writer that the suffix of a path asks for; a path without one is a folder.

    Raises:
        ConfigError: No writer has the suffix.
    """
    suffix = out.suffix.lower()
    for writer in WRITERS:
        if suffix in writer.suffixes or (writer.is_folder and not suffix):
            return writer
    named = list_names(f"{suffix} ({writer.name})" for writer in WRITERS for suffix in writer.suffixes)
    raise ConfigError(
        f"{out}: no form has the suffix {suffix}; name one with --to, or use {named} or none (uipath)"
    )
