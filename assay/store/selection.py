"""The choice of items by an SQL condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import polars as pl

from assay.contracts.arrow import to_arrow
from assay.errors import ConfigError
from assay.store.sandbox import Limits, explain_error, open_sandbox

if TYPE_CHECKING:
    import pyarrow as pa

POSITION = "__position"


def filter_items(items: pl.DataFrame, where: str) -> pl.DataFrame:
    """Return the items for which an SQL condition holds, in their order.

    Args:
        items: Rows of ITEMS.
        where: What could stand after WHERE; a row for which it is null is left out.

    Raises:
        ConfigError: The condition is not SQL, names an unknown column, reads a file or runs too long.
    """
    limits = Limits()
    table = to_arrow(items.with_row_index(POSITION))
    try:
        with open_sandbox({"items": table}, limits) as connection:
            hits: pa.Table = connection.table("items").filter(where).project(POSITION).to_arrow_table()
    except duckdb.Error as error:
        cause = explain_error(error, where, {"items": items.columns}, limits)
        raise ConfigError(f"--where: {cause}") from error
    return items[pl.DataFrame(hits)[POSITION].sort()]
