"""Selecting: which items of the datasets take part, block by block."""

from __future__ import annotations

import fnmatch
import re
from typing import TYPE_CHECKING

import polars as pl

from assay.errors import ConfigError, list_names
from assay.store.layout import open_store

if TYPE_CHECKING:
    from assay.config import RunConfig
    from transforms.items import Items

SHOWN_IDS = 13
_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_SUBQUERY = re.compile(r"\bselect\b|\bover\s*\(", re.IGNORECASE)


class Selector:
    """Keeps the items a selection names, whole conversations in file order."""

    def __init__(self, config: RunConfig) -> None:
        """Read the failed items of another run, if the selection names one."""
        self._selection = config.selection
        where = config.selection.where
        if where is not None and _SUBQUERY.search(_QUOTED.sub("", where)):
            raise ConfigError(
                "--where is a condition on one row at a time; a select inside it is not accepted"
            )
        self._failed = None
        if config.selection.failed_of is not None:
            self._failed = _read_failed(config.store, config.selection.failed_of)
        self._seen, self._kept = 0, 0
        self._first_ids: list[str] = []

    def select(self, items: Items) -> Items:
        """Return the items of a block that take part.

        Raises:
            ConfigError: A condition cannot be evaluated.
        """
        if all(value is None for _, value in self._selection):
            count = int((items.table["turn"] == 0).sum())  # every item begins with its first turn
            self._seen, self._kept = self._seen + count, self._kept + count
            return items
        ids = items.table["item_id"].unique(maintain_order=True)
        self._seen += len(ids)
        if len(self._first_ids) < SHOWN_IDS:
            self._first_ids += ids.head(SHOWN_IDS - len(self._first_ids)).to_list()
        chosen = self._choose(items.table, ids)
        if chosen is None:
            self._kept += len(ids)
            return items
        self._kept += len(chosen)
        return items.filter(items.table["item_id"].is_in(chosen.implode()))

    def _choose(self, table: pl.DataFrame, ids: pl.Series) -> pl.Series | None:
        """Return the ids that are chosen; None stands for all."""
        asked, chosen = self._selection, ids
        if asked.id is not None:
            chosen = pl.Series(fnmatch.filter(chosen.to_list(), asked.id), dtype=pl.String)
        if asked.where is not None:
            from assay.store.selection import filter_items  # DuckDB and pyarrow only where SQL is asked

            rows = table.filter(pl.col("item_id").is_in(chosen.implode()))
            chosen = filter_items(rows, asked.where)["item_id"].unique(maintain_order=True)
        if self._failed is not None:
            chosen = chosen.filter(chosen.is_in(self._failed.implode()))
        if asked.limit is not None:
            chosen = chosen.head(max(asked.limit - self._kept, 0))
        return None if len(chosen) == len(ids) else chosen

    def check(self, *, refused: int) -> None:
        """Refuse a selection that left nothing, once all blocks were seen.

        Args:
            refused: Bad rows that were set aside.
        """
        if self._kept or (not self._seen and not refused):
            return
        if not self._seen:
            raise ConfigError(f"no row is left: all {refused} rows are bad and were set aside")
        given = ", ".join(f"{name}={value!r}" for name, value in self._selection if value is not None)
        # one name more than a message lists tells it that there are more
        raise ConfigError(
            f"selection {given} leaves none of {self._seen} items; ids are {list_names(self._first_ids)}"
        )


def _read_failed(root: str, run_id: str) -> pl.Series:
    from assay.store.query import query  # DuckDB and pyarrow only where SQL is asked

    sql = "select distinct item_id from scores where run_id = $run and (passed = false or status = 'error')"
    return query(open_store(root, create=False), sql, parameters={"run": run_id})["item_id"]
