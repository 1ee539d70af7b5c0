"""What a writer is, and the account it gives of whatever its form has no place for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from assay.datasets.contract import Dataset


@dataclass(slots=True)
class Loss:
    """One kind of thing that a form has no place for.

    Attributes:
        field: What it is, such as a field of a row.
        outcome: What became of it.
        kept: Whether it still stands in the file, in another form or place.
        first: Id or place of the first item it was met in; empty for the file itself.
        count: How often it was met.
    """

    field: str
    outcome: str
    kept: bool
    first: str
    count: int


class Losses:
    """Whatever a form has no place for, each kind once with its first place and a count."""

    def __init__(self) -> None:
        """Start without any."""
        self._found: dict[tuple[str, str], Loss] = {}

    def __iter__(self) -> Iterator[Loss]:
        """Yield what is gone, then what is kept elsewhere, each in the order it was met."""
        yield from sorted(self._found.values(), key=lambda loss: loss.kept)

    @property
    def gone(self) -> list[Loss]:
        """Only what the written file does not hold, or holds without effect."""
        return [loss for loss in self if not loss.kept]

    def add(self, field: str, outcome: str, first: str = "", *, kept: bool = False, count: int = 1) -> None:
        """Note something; the same field with the same outcome is counted.

        Args:
            field: What it is.
            outcome: What becomes of it.
            first: Id or place of the item; only that of the first is kept.
            kept: Whether it still stands in the file, in another form or place.
            count: How often it was met.
        """
        loss = self._found.setdefault((field, outcome), Loss(field, outcome, kept, first, 0))
        loss.count += count


@dataclass(frozen=True, slots=True)
class Writer:
    """One form that datasets are written in.

    Attributes:
        name: What `--to` calls it.
        suffixes: Suffixes of files that it is chosen for; a form that is a folder has none.
        write: Reads the blocks of a dataset and writes them under a path that nothing stands at yet. A
            value that the form cannot hold at all is an InputError; what has no place in it is noted.
        is_folder: Whether it makes a folder.
    """

    name: str
    suffixes: tuple[str, ...]
    write: Callable[[Dataset, Path, Losses], None]
    is_folder: bool = False
