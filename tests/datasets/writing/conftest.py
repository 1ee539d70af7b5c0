"""Datasets written in another form and read again."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.config import Reading
from assay.contracts.json_text import dump_json, parse_json
from assay.datasets.reader import find_datasets, read_documents
from assay.datasets.writing.catalog import find_writer
from assay.datasets.writing.conversion import convert_dataset

if TYPE_CHECKING:
    from collections.abc import Generator

    from assay.contracts.documents import Document
    from assay.datasets.writing.contract import Losses

PLACES = ("source_file", "source_line")
TOLERANT = Reading(allow_empty=True)


@dataclass
class Written:
    """A dataset and what was made of it.

    Attributes:
        before: The dataset as it was read.
        out: The file or folder that was written.
        losses: What was lost.
    """

    before: Document
    out: Path
    losses: Losses

    @property
    def text(self) -> str:
        """The written file."""
        return self.out.read_bytes().decode()

    @property
    def after(self) -> Document:
        """The written file as it is read again."""
        (document,) = read_documents([str(self.out)], TOLERANT)
        return document

    @property
    def account(self) -> dict[str, int]:
        """What was lost or, in brackets, is kept elsewhere; with counts."""
        return {f"({loss.field})" if loss.kept else loss.field: loss.count for loss in self.losses}


class Workshop:
    """A folder, and what is done to the files in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, name: str, content: Any) -> Path:
        """Write a file: bytes and text as they are, rows of JSON lines, else JSON."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".jsonl") and not isinstance(content, str | bytes):
            content = "".join(f"{dump_json(row)}\n" for row in content)
        data = content if isinstance(content, bytes | str) else dump_json(content)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def convert(self, path: Path, form: str, reading: Reading = TOLERANT, name: str = "out") -> Written:
        """Write a dataset in another form."""
        (before,) = read_documents([str(path)], reading)
        writer = find_writer(form)
        out = self.folder / f"{name}{''.join(writer.suffixes[:1])}"
        (found,) = find_datasets([str(path)], reading)
        conversion = convert_dataset(found.open(), writer, out)
        assert conversion.rows == before.rows.height
        assert list(self.folder.glob(".*")) == []
        return Written(before, out, conversion.losses)


@pytest.fixture(scope="session")
def workshop() -> Any:
    """A context of a folder that goes again."""

    @contextmanager
    def open_workshop() -> Generator[Workshop]:
        with tempfile.TemporaryDirectory(prefix="assay-test-") as folder:
            yield Workshop(Path(folder))

    return open_workshop


@pytest.fixture
def bench(tmp_path: Path) -> Workshop:
    """A workshop for one test."""
    return Workshop(tmp_path)


@pytest.fixture(scope="session")
def list_rows() -> Any:
    """Return the rows of a dataset as values, without the places they were found at."""

    def list_them(document: Document) -> list[dict[str, Any]]:
        rows = document.rows.drop(PLACES).rows(named=True)
        return [row | {"item_json": dump_json(parse_json(row["item_json"]))} for row in rows]

    return list_them
