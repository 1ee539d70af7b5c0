"""The commit of a run, after which readers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.tables import RUNS, SUMMARY, conform
from assay.errors import ContractError
from assay.store.parts import write_part

if TYPE_CHECKING:
    import polars as pl

    from assay.store.layout import RunFolder


def commit_run(folder: RunFolder, run: pl.DataFrame, summary: pl.DataFrame) -> None:
    """Write the summary and then `run.parquet`; a crash in between leaves the run uncommitted.

    A second commit replaces the first, as when a partial run was resumed.

    Args:
        folder: The run.
        run: One row of RUNS.
        summary: Rows of SUMMARY.

    Raises:
        ContractError: A frame breaks its contract or names another run.
        StoreError: A file cannot be written.
    """
    row = conform(run, RUNS)
    named = [*row["run_id"], *summary["run_id"].unique()]
    if row.height != 1 or set(named) != {folder.run_id}:
        raise ContractError(f"commit of {folder.run_id}: {row.height} rows of runs {sorted(set(named))}")
    write_part(summary, folder.summary, SUMMARY)
    write_part(row, folder.commit, RUNS)
