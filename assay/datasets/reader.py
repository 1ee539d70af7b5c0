"""Datasets by path: files, folders of files, and UiPath projects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.contracts.json_text import UnstorableError
from assay.datasets import uipath
from assay.datasets.dialects import DIALECTS
from assay.datasets.files import read_head, read_source
from assay.datasets.uipath import find_eval_sets
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.documents import Document
    from assay.datasets.contract import Dialect

ACCEPTED = "; ".join(dialect.accepts for dialect in DIALECTS) + "; each also as .gz or .zst"


def read_documents(paths: Sequence[str]) -> list[Document]:
    """Read datasets.

    A folder is a UiPath project when it holds eval sets in its layout: one document per set.
    Otherwise the files directly in it that a dialect claims are read, sorted by name.

    Args:
        paths: Files or folders, as the user named them.

    Returns:
        One document per file, in order.

    Raises:
        InputError: A path is missing, no dialect reads it, it breaks its form, or it holds no rows.
    """
    return [document for path in paths for document in _read_path(path)]


def _read_path(shown: str) -> list[Document]:
    path = Path(shown)
    if not path.is_dir():
        dialect = _find_dialect(path, shown)
        if dialect is None:
            raise InputError(f"no dialect reads this file; accepted: {ACCEPTED}", path=shown)
        return [_read_file(path, shown, dialect)]
    eval_sets = find_eval_sets(path)
    if eval_sets:
        return [_read_file(file, str(file), uipath.DIALECT) for file in eval_sets]
    files = sorted(entry for entry in path.iterdir() if _is_candidate(entry))
    claimed = [(file, dialect) for file in files if (dialect := _find_dialect(file, str(file)))]
    if not claimed:
        raise InputError(f"no dataset in this folder; accepted: {ACCEPTED}", path=shown)
    return [_read_file(file, str(file), dialect) for file, dialect in claimed]


def _is_candidate(entry: Path) -> bool:
    return entry.is_file() and not entry.name.startswith(".")


def _find_dialect(path: Path, shown: str) -> Dialect | None:
    head = read_head(path, shown=shown)
    return next((dialect for dialect in DIALECTS if dialect.claims(path, head)), None)


def _read_file(path: Path, shown: str, dialect: Dialect) -> Document:
    source = read_source(path, shown=shown)
    if not source.text.strip():
        raise source.no_rows
    try:
        document = dialect.read(source)
    except (RecursionError, UnstorableError) as error:
        raise source.error("a value is nested too deeply") from error
    if document.rows.is_empty():
        raise source.no_rows
    return document
