"""Ordering: the parts of a prepared run cut anew, so that those finished under a budget are a fair sample."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.tables import ITEMS, PLAN, Table
from assay.engine.matching import ANSWERS_TABLE
from assay.engine.parting import is_shared
from assay.store.parts import list_parts, read_part, write_part

if TYPE_CHECKING:
    from assay.store.layout import RunFolder


def rewrite_parts(folder: RunFolder, *, seed: int, size: int) -> int:
    """Bring the items of a prepared run into a random order that the seed fixes, conversations whole.

    Items come in the order of sha256(seed, item_id) over all parts; their plan and answers go with them,
    and a plan that all share stays as it is. Where an item comes depends neither on its place in the
    dataset nor on what it says, so whatever part of the run is finished first is a fair sample.

    The parts must be complete, `settle_plan` included, and nothing may have been asked yet. ITEMS are held
    in memory as a whole, then the plan, then the answers.

    Args:
        folder: The run.
        seed: Another seed gives another order.
        size: A part ends before the first conversation that begins at or after so many rows.

    Returns:
        How many parts there are now, which may be another number than before.

    Raises:
        StoreError: A part cannot be read or written; the run is then of no use.
    """
    items = _read_all(folder, ITEMS)
    if not items.height:
        return len(list_parts(folder, ITEMS))
    places = _place_items(items, seed, size)
    _write_all(folder, ITEMS, items, places)
    del items
    for table in (PLAN, ANSWERS_TABLE):
        rows = _read_all(folder, table)
        if list_parts(folder, table) and not (table is PLAN and is_shared(rows)):
            _write_all(folder, table, rows, places)
    return len(list_parts(folder, ITEMS))


def _place_items(items: pl.DataFrame, seed: int, size: int) -> pl.DataFrame:
    """Return `item_id` and `part`, in the new order."""
    lengths = dict(items.group_by("item_id").len().iter_rows())
    ordered = sorted(lengths, key=lambda item_id: _hash(item_id, seed))
    parts: list[int] = []
    part, rows = 0, 0
    for item_id in ordered:
        if rows >= size:
            part, rows = part + 1, 0
        parts.append(part)
        rows += lengths[item_id]
    return pl.DataFrame({"item_id": ordered, "part": parts}, schema={"item_id": pl.String, "part": pl.Int64})


def _hash(item_id: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed} {item_id}".encode()).digest()


def _read_all(folder: RunFolder, table: Table) -> pl.DataFrame:
    return pl.concat([table.empty(), *(read_part(path, table) for path in list_parts(folder, table))])


def _write_all(folder: RunFolder, table: Table, rows: pl.DataFrame, places: pl.DataFrame) -> None:
    """Write every part of a table, also those that have no row of it, and delete what is left of the old."""
    ordered = places.join(rows, on="item_id", maintain_order="left_right")
    count = int(places["part"][-1]) + 1
    starts = ordered["part"].search_sorted(pl.Series(range(count + 1))).to_list()
    kept = ordered.select(*table.columns)
    for index, (start, end) in enumerate(pairwise(starts)):
        write_part(kept.slice(start, end - start), folder.part(table.name, index), table)
    for path in list_parts(folder, table)[count:]:
        path.unlink()
