"""What a dialect is: a name, a test whether a file is its own, and a reader that hands out blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from assay.contracts.json_text import UnstorableError
from assay.datasets.faults import Faults
from assay.datasets.files import Input, read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl

    from assay.contracts.documents import Document, EvaluatorUse
    from assay.datasets.files import Source


@dataclass(slots=True)
class Dataset:
    """One dataset, opened: its rows come in blocks, each item's turns together in one.

    Attributes:
        file: The file.
        dialect: Which reader understood it.
        blocks: Frames of table ROWS, to be taken once; `item_index` counts over all of them.
        faults: Bad rows and notices, complete once the blocks are taken.
        digest: Returns the hash of what was read so far, after decompression.
        defaults: Evaluators the file applies to every item; None when it names none.
        schema_version: The version the file states, for dialects that have one.
    """

    file: Input
    dialect: str
    blocks: Iterator[pl.DataFrame]
    faults: Faults
    digest: Callable[[], str]
    defaults: tuple[EvaluatorUse, ...] | None = None
    schema_version: str | None = None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One form of dataset.

    Attributes:
        name: Stored with every run (`foundry`).
        accepts: The form in a few words, for messages.
        claims: From a path and the beginning of its text to whether this dialect reads it. At most
            one dialect claims a file.
        open: From a file to its dataset. A file that breaks its form as a whole is an InputError here;
            bad rows are noted in `faults` and left out of the blocks.
    """

    name: str
    accepts: str
    claims: Callable[[Path, str], bool]
    open: Callable[[Input], Dataset]


class ReadsDocument(Protocol):
    """The reader of a file that is one JSON document."""

    def __call__(self, source: Source, faults: Faults) -> Document:
        """Return the document; faults of its items are noted and the items left out."""
        ...


def open_document(dialect: str, read: ReadsDocument) -> Callable[[Input], Dataset]:
    """Make the `open` of a dialect whose files are read whole."""

    def open_file(file: Input) -> Dataset:
        source = read_source(file)
        faults = Faults(file.shown, "item")
        if not source.text.strip():
            return Dataset(file, dialect, iter(()), faults, lambda: source.sha256)
        try:
            document = read(source, faults)
        except (RecursionError, UnstorableError) as error:
            raise source.error("a value is nested too deeply") from error
        faults.notices.extend(document.notices)
        return Dataset(
            file,
            dialect,
            iter((document.rows,)),
            faults,
            lambda: document.sha256,
            document.defaults,
            document.schema_version,
        )

    return open_file
