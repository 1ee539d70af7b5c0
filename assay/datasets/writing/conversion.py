"""A dataset written in another form: whole or not at all, and never over a file that is there."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.datasets.uipath import EVALUATORS, SETS
from assay.datasets.writing.contract import Losses
from assay.datasets.writing.uipath import FOLDER
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

    from assay.datasets.contract import Dataset
    from assay.datasets.writing.contract import Writer


@dataclass(slots=True)
class Conversion:
    """What became of a dataset.

    Attributes:
        out: The file or folder.
        losses: What the form has no place for.
        items: Items that were read.
        rows: Turns that were read.
        is_written: Whether the file is there: not after a loss that was not to be.
    """

    out: Path
    losses: Losses
    items: int = 0
    rows: int = 0
    is_written: bool = False


def check_place(out: Path, writer: Writer, *, force: bool) -> None:
    """Refuse to write where something is already, unless that is asked for.

    A folder may be there, as long as it holds no datasets.

    Raises:
        ConfigError: Something is there; the message names it.
    """
    taken = out / FOLDER if writer.is_folder and out.is_dir() else out
    if taken.is_dir() and not writer.is_folder:
        raise ConfigError(f"{out} is a folder; name a file")
    if taken.exists() and writer.is_folder and not taken.is_dir():
        raise ConfigError(f"{out} is a file; name a folder")
    if os.path.lexists(taken) and not force:
        raise ConfigError(f"{taken} is there already; --force replaces it")


def convert_dataset(
    dataset: Dataset, writer: Writer, out: Path, *, force: bool = False, keep_all: bool = False
) -> Conversion:
    """Write a dataset in another form.

    Args:
        dataset: The dataset, opened; its blocks are taken.
        writer: The form.
        out: The file, or the folder that takes a project.
        force: Whether a file that is there is replaced. In a folder only files of the same names are.
        keep_all: Write nothing when something would be lost.

    Returns:
        What became of it. Rows set aside as bad count as a loss.

    Raises:
        InputError: The dataset cannot be read, or a value cannot be written in this form.
        ConfigError: Something is there already, or the place cannot be written to.
    """
    check_place(out, writer, force=force)
    conversion = Conversion(out, Losses())
    dataset.blocks = _count(dataset.blocks, conversion)
    base = next(folder for folder in out.absolute().parents if folder.is_dir())
    staged = base / f".{out.name}.{secrets.token_hex(4)}"
    try:
        writer.write(dataset, staged, conversion.losses)
        if len(dataset.faults):
            conversion.losses.add("bad rows", "set aside", count=len(dataset.faults))
        if not (keep_all and conversion.losses.gone):
            _publish(staged, out)
            conversion.is_written = True
    except OSError as error:
        raise ConfigError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        _remove(staged)
    return conversion


def _count(blocks: Iterator[pl.DataFrame], conversion: Conversion) -> Iterator[pl.DataFrame]:
    for block in blocks:
        conversion.items += block["item_index"].n_unique()
        conversion.rows += block.height
        yield block


def _publish(staged: Path, out: Path) -> None:
    """Move what was written to its place; into a folder that is there, file by file."""
    if not out.is_dir():
        out.parent.mkdir(parents=True, exist_ok=True)
        staged.replace(out)
        return
    for folder in (EVALUATORS, SETS):  # the set last: it refers to the others
        for file in sorted((staged / FOLDER / folder).glob("*.json")):
            place = out / FOLDER / folder / file.name
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)


def _remove(staged: Path) -> None:
    if staged.is_dir():
        shutil.rmtree(staged)
    elif staged.exists():
        staged.unlink()
