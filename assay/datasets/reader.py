"""Datasets by path: files, globs, folders, UiPath projects and standard input, opened one by one."""

from __future__ import annotations

import glob
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import polars as pl

from assay.config import Reading
from assay.contracts.documents import Document, Notice
from assay.contracts.tables import ROWS
from assay.datasets import uipath
from assay.datasets.dialects import DIALECTS, sniff
from assay.datasets.files import Input, read_head
from assay.datasets.uipath import find_eval_sets
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.datasets.contract import Dataset, Dialect

STDIN = ("-", "/dev/stdin")
DISCOVERED = tuple(
    f"{folder}{name}" for folder in ("", "evals/") for name in ("prompts.json", "evals.json", "tests.json")
)
ACCEPTED = "; ".join(dialect.accepts for dialect in DIALECTS) + "; each also as .gz or .zst"


@dataclass(frozen=True, slots=True)
class Found:
    """A dataset file and the dialect that reads it; nothing is read yet."""

    file: Input
    dialect: Dialect

    def open(self) -> Dataset:
        """Open the dataset: its blocks raise what `checked` says.

        Raises:
            InputError: The file breaks its form as a whole.
        """
        dataset = self.dialect.open(self.file)
        dataset.blocks = checked(dataset, dataset.blocks)
        return dataset


def find_datasets(paths: Sequence[str], reading: Reading) -> list[Found]:
    """Find the files that paths mean, each with its dialect.

    A path may be a file, a glob, a folder or `-`, which is standard input. A folder is a UiPath project
    when it holds eval sets in its layout: one dataset per set. Otherwise the files directly in it that
    a dialect claims are taken, sorted by name.

    Args:
        paths: As the user named them.
        reading: How the files are to be read.

    Raises:
        InputError: A path is missing, or no dialect reads it.
    """
    return [found for path in paths for found in _find_path(path, reading)]


def discover() -> str | None:
    """Return the first file there is of those that are looked for when none is named."""
    return next((name for name in DISCOVERED if Path(name).is_file()), None)


def read_documents(paths: Sequence[str], reading: Reading | None = None) -> list[Document]:
    """Read datasets whole.

    Args:
        paths: As the user named them; see `find_datasets`.
        reading: How the files are to be read.

    Returns:
        One document per file, in order.

    Raises:
        InputError: A path is missing, no dialect reads it, it breaks its form, or it holds no rows.
    """
    return [read_document(found) for found in find_datasets(paths, reading or Reading())]


def read_document(found: Found) -> Document:
    """Read one dataset whole.

    Raises:
        InputError: It breaks its form, or holds no rows.
    """
    dataset = found.open()
    frames = list(dataset.blocks)
    return Document(
        path=found.file.shown,
        dialect=dataset.dialect,
        rows=pl.concat(frames) if frames else ROWS.empty(),
        defaults=dataset.defaults,
        sha256=dataset.digest(),
        notices=tuple(dataset.faults.notices),
        schema_version=dataset.schema_version,
    )


def checked(dataset: Dataset, blocks: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Hand on the blocks of a dataset, empty once a row is bad that may not be, and judge it at its end.

    Raises:
        InputError: Bad rows that are not to be set aside, no rows at all, or with a strict reading
            something the published format forbids.
    """
    reading, faults = dataset.file.reading, dataset.faults
    rows = 0
    for block in blocks:
        rows += block.height
        refused = len(faults) > 0 and reading.on_bad_row == "fail"
        if refused:
            faults.take()  # the first of them are told at the end; none is kept
        yield block.clear() if refused else block  # empty ones too, so that whoever reads can stop
    if reading.on_bad_row == "fail":
        faults.raise_any()
    if reading.strict:
        _refuse_notices([notice for notice in faults.notices if notice.strict])
    if not rows and not len(faults) and not reading.allow_empty:
        raise dataset.file.no_rows


def _refuse_notices(notices: list[Notice]) -> None:
    if not notices:
        return
    first, *others = notices
    more = "".join(f"\n  {notice}" for notice in others[:19])
    message = first.message + (f"; with {len(others)} more under --strict:{more}" if others else "")
    raise InputError(message, path=first.path, line=first.line, column=first.column, pointer=first.pointer)


def _find_path(shown: str, reading: Reading) -> list[Found]:
    if shown in STDIN:
        return [_spool(sys.stdin.buffer, "standard input", reading)]
    path = Path(shown)
    if path.is_dir():
        return _find_in_folder(path, shown, reading)
    if path.exists() and not path.is_file():
        return [_spool(path.open("rb"), shown, reading)]
    if not path.exists() and glob.has_magic(shown):
        return _find_by_pattern(shown, reading)
    file = Input(path, shown, reading)
    dialect = _find_dialect(file)
    if dialect is None:
        raise InputError(f"no dialect reads this file; accepted: {ACCEPTED}", path=shown)
    return [Found(file, dialect)]


def _find_in_folder(path: Path, shown: str, reading: Reading) -> list[Found]:
    eval_sets = find_eval_sets(path)
    if eval_sets:
        return [Found(Input(file, str(file), reading), uipath.DIALECT) for file in eval_sets]
    files = [Input(entry, str(entry), reading) for entry in sorted(path.iterdir()) if _is_candidate(entry)]
    claimed = [Found(file, dialect) for file in files if (dialect := _find_dialect(file))]
    if not claimed:
        raise InputError(f"no dataset in this folder; accepted: {ACCEPTED}", path=shown)
    return claimed


def _find_by_pattern(pattern: str, reading: Reading) -> list[Found]:
    names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob takes no absolute patterns
    if not names:
        raise InputError("no file matches this pattern", path=pattern)
    return [found for name in names for found in _find_path(name, reading)]


def _is_candidate(entry: Path) -> bool:
    return entry.is_file() and not entry.name.startswith(".")


def _find_dialect(file: Input) -> Dialect | None:
    head = read_head(file).decode("utf-8", "replace")
    return next((dialect for dialect in DIALECTS if dialect.claims(file.path, head)), None)


def _spool(stream: BinaryIO, shown: str, reading: Reading) -> Found:
    """Copy what can be read only once to a file, which goes when it is no longer needed; see what it is."""
    spool = tempfile.NamedTemporaryFile(prefix="assay-stdin-")  # noqa: SIM115 - it lives as long as its Input
    shutil.copyfileobj(stream, spool)
    spool.flush()
    file = Input(Path(spool.name), shown, reading, keep=spool)
    dialect = sniff(read_head(file).decode("utf-8", "replace"))
    return Found(file, dialect)
