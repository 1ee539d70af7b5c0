"""Records as columns, kept on disk until the columns of all of them are known."""

from __future__ import annotations

import io
import tempfile
from typing import TYPE_CHECKING, Self, TypeAlias

import polars as pl

from assay.datasets.writing.cases import name_place, read_cases
from assay.datasets.writing.records import (
    STANDARD,
    Records,
    note_evaluators,
    note_own_evaluators,
    note_root,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType

    from assay.contracts.json_text import JsonValue
    from assay.datasets.contract import Dataset
    from assay.datasets.writing.contract import Losses

Columns: TypeAlias = "dict[str, list[JsonValue]]"
FEWEST = 2  # columns of a table: with one alone, a row of CSV may look like a blank line


def read_columns(
    dataset: Dataset, losses: Losses, *, open_texts: bool
) -> Iterator[tuple[list[str], Columns]]:
    """Yield the items of a dataset as columns, block by block.

    Yields:
        The place of every item for messages, and field to one value per item; a missing one is null.
    """
    records = Records(dataset, losses, open_texts=open_texts)
    note_evaluators(dataset, losses)
    note_root(dataset, losses)
    for cases in read_cases(dataset):
        places: list[str] = []
        made: list[dict[str, JsonValue]] = []
        for case in cases:
            note_own_evaluators(case, losses)
            record = records.make(case)
            if record is not None:
                places.append(name_place(case))
                made.append(record)
        names = dict.fromkeys(name for record in made for name in record) or {"id": None}
        yield places, {name: [record.get(name) for record in made] for name in names}


def order_columns(names: Iterable[str]) -> list[str]:
    """Put standard names first; further ones stay in order, and fewer than `FEWEST` are filled up."""
    known = dict.fromkeys(names)
    filling = [name for name in ("id", "query") if name not in known]
    known |= dict.fromkeys(filling[: max(0, FEWEST - len(known))])
    return [name for name in STANDARD if name in known] + [name for name in known if name not in STANDARD]


class Spool:
    """Frames in a temporary file, which goes with it."""

    def __init__(self) -> None:
        """Open the file."""
        self._file = tempfile.TemporaryFile(prefix="assay-columns-")  # noqa: SIM115 - closed by __exit__
        self._sizes: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, frame: pl.DataFrame) -> None:
        """Append a frame."""
        buffer = io.BytesIO()
        frame.write_ipc(buffer)
        self._sizes.append(self._file.write(buffer.getvalue()))

    def __iter__(self) -> Iterator[pl.DataFrame]:
        """Yield the frames in the order they were added."""
        self._file.seek(0)
        for size in self._sizes:
            yield pl.read_ipc(io.BytesIO(self._file.read(size)))


def fit_columns(
    columns: Mapping[str, pl.Series], types: Mapping[str, pl.DataType], height: int
) -> pl.DataFrame:
    """Return a frame of the columns that `types` names, in order; one that is absent is null.

    Expressions would take some names for patterns, so none are used.
    """
    return pl.DataFrame(
        {
            name: columns[name] if name in columns else pl.repeat(None, height, dtype=dtype, eager=True)
            for name, dtype in types.items()
        }
    )
