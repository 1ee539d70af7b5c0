"""Matching: the answers of a file, brought to the items of each block by id and turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.tables import Table, conform
from assay.errors import MAX_NAMES, ConfigError, list_names

if TYPE_CHECKING:
    from collections.abc import Sequence

KEYS = ["item_id", "turn"]
ANSWERS_TABLE = Table(
    "answers",
    pl.Schema(
        {
            "item_id": pl.String,
            "turn": pl.Int32,
            "trial": pl.Int32,
            "response": pl.String,
            "output_items_json": pl.String,
        }
    ),
    frozenset({"response", "output_items_json"}),
    ("item_id", "turn", "trial"),
)


class Matcher:
    """The answers of one file.

    Attributes:
        sha256: Hash of the file, after decompression.
    """

    def __init__(self, path: str) -> None:
        """Read the file.

        Raises:
            InputError: It is no file of answers.
        """
        from assay.datasets.answers import read_answers  # only where answers lie in a file

        answers = read_answers(path)
        self.sha256 = answers.sha256
        table = answers.table.rename({"id": "item_id"})
        self._answers = table.with_columns(pl.col("turn", "trial").fill_null(0))
        self._path = path
        self._matched = pl.Series([False]).new_from_index(0, table.height)
        self._unanswered = 0
        self._first_unanswered: list[str] = []
        self._first_items: list[str] = []

    def match(self, items: pl.DataFrame) -> pl.DataFrame:
        """Return ANSWERS_TABLE for the items of a block."""
        rows = self._answers.with_row_index("row").join(items.select(KEYS), on=KEYS, how="semi")
        self._matched = self._matched.scatter(rows["row"], values=True)
        unanswered = items.join(rows, on=KEYS, how="anti")
        self._unanswered += unanswered.height
        _fill(self._first_unanswered, _name_turns(unanswered))
        _fill(self._first_items, items["item_id"].unique(maintain_order=True).head(MAX_NAMES).to_list())
        return conform(rows.select(*ANSWERS_TABLE.columns), ANSWERS_TABLE)

    def check(self) -> None:
        """Refuse a file none of whose answers belongs to an item, once all blocks were matched."""
        if not self._matched.any():
            known = list_names(self._first_items[:6])
            raise ConfigError(f"{self._path}: no answer has the id of an item; item ids are {known}")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Answers and turns that found no counterpart, counted and named."""
        lonely = self._answers.filter(~self._matched)
        found: list[str] = []
        if lonely.height:
            names = _list_some(_name_turns(lonely.head(MAX_NAMES)), lonely.height)
            found.append(f"{self._path}: {lonely.height} answers belong to no selected item: {names}")
        if self._unanswered:
            names = _list_some(self._first_unanswered, self._unanswered)
            found.append(f"{self._path}: {self._unanswered} turns have no answer: {names}")
        return tuple(found)


def _list_some(names: Sequence[str], count: int) -> str:
    more = f" and {count - len(names)} more" if count > len(names) else ""
    return list_names(names) + more


def _fill(names: list[str], more: Sequence[str]) -> None:
    names += more[: max(MAX_NAMES - len(names), 0)]


def _name_turns(rows: pl.DataFrame) -> list[str]:
    shown = rows.select(
        pl.when(pl.col("turn") > 0).then(pl.format("{} turn {}", "item_id", "turn")).otherwise("item_id")
    )
    return shown.to_series().to_list()
