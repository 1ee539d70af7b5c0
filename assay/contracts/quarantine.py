"""Quarantine: bad rows of a dataset that were set aside, as a table."""

from __future__ import annotations

import polars as pl

from assay.contracts.tables import make_table

QUARANTINE = make_table(
    "quarantine",
    "source_file source_line",
    source_file=pl.String,
    source_line=pl.Int64,  # row where a file has no lines
    column_=pl.Int64,
    pointer_=pl.String,
    code=pl.String,
    message=pl.String,
    text=pl.String,  # the row as it was written; empty where it was not kept
)
