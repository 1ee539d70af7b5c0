"""The way from Polars frames to Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


def to_arrow(frame: pl.DataFrame) -> pa.Table:
    """Return the frame as an Arrow table (text as `large_string`, no copy where the layout allows)."""
    table: pa.Table = frame.to_arrow()
    return table
