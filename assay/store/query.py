"""SQL over all committed runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow.dataset as ds
from pyarrow.fs import LocalFileSystem

from assay.contracts.arrow import to_arrow
from assay.contracts.tables import ITEMS, PLAN, RUNS, SAMPLES, SCORES, SUMMARY
from assay.errors import QueryError, StoreError, list_names
from assay.store.catalog import list_runs
from assay.store.layout import RunFolder
from assay.store.parts import list_parts, read_part, stored
from assay.store.sandbox import Limits, explain_error, open_sandbox, read_sql

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from assay.contracts.tables import Table
    from assay.store.layout import Store

TABLES = {table.name: stored(table) for table in (RUNS, ITEMS, PLAN, SAMPLES, SCORES, SUMMARY)}
BROKEN_SCAN = re.compile(r"reading the stream registered as '(\w+)' failed: ([^\n]*)")


def query(
    store: Store,
    sql: str,
    *,
    parameters: Mapping[str, object] | None = None,
    memory_limit: str = "2GB",
    timeout_s: float = 60.0,
) -> pl.DataFrame:
    """Answer one reading statement over `runs`, `items`, `plan`, `samples`, `scores` and `summary`.

    Only committed runs are seen, and only their files are opened that a condition on `run_id` leaves.
    Columns that an older file lacks are null. A store without runs has the same tables without rows.

    Args:
        store: The store.
        sql: DuckDB SQL; `$name` stands for a parameter.
        parameters: Parameter name to value.
        memory_limit: Bound of DuckDB's memory.
        timeout_s: Bound of its time, in seconds.

    Returns:
        The rows; sums of integers as Int64, times in UTC.

    Raises:
        QueryError: The statement was refused, failed or ran too long.
        StoreError: A file of a committed run cannot be read; the message names it.
    """
    limits = Limits(memory_limit, timeout_s)
    runs = list_runs(store)
    folders = [RunFolder(store, run_id) for run_id in runs["run_id"]]
    files = {name: _list_files(folders, table) for name, table in TABLES.items() if table is not RUNS}
    sources = {name: _open_files(TABLES[name], found) for name, found in files.items()}
    try:
        with open_sandbox({"runs": to_arrow(_spell_enums(runs)), **sources}, limits) as connection:
            return read_sql(connection, sql, parameters)
    except duckdb.Error as error:
        match = BROKEN_SCAN.search(str(error))
        if match and match[1] in files:
            raise _name_broken(TABLES[match[1]], files[match[1]], match[2]) from error
        columns = {name: list(table.columns) for name, table in TABLES.items()}
        raise QueryError(explain_error(error, sql, columns, limits)) from error


def _list_files(folders: list[RunFolder], table: Table) -> dict[Path, str]:
    """Return the files of a table with the run of each."""
    if table is SUMMARY:
        return {folder.summary: folder.run_id for folder in folders}
    return {path: folder.run_id for folder in folders for path in list_parts(folder, table)}


def _open_files(table: Table, files: Mapping[Path, str]) -> pa.Table | ds.Dataset:
    empty = to_arrow(_spell_enums(table.empty()))
    if not files:
        return empty
    return ds.FileSystemDataset.from_paths(
        [str(path) for path in files],
        schema=empty.schema,
        format=ds.ParquetFileFormat(),
        filesystem=LocalFileSystem(),
        partitions=[ds.field("run_id") == run_id for run_id in files.values()],
    )


def _spell_enums(frame: pl.DataFrame) -> pl.DataFrame:
    """Turn enums into text, which files of every schema version can be read as."""
    enums = [name for name, dtype in frame.schema.items() if isinstance(dtype, pl.Enum)]
    return frame.with_columns(pl.col(enums).cast(pl.String))


def _name_broken(table: Table, files: Mapping[Path, str], cause: str) -> StoreError:
    broken: list[str] = []
    for path in files:
        try:
            read_part(path, table)
        except StoreError as error:
            broken.append(str(error))
    remedy = "restore the files or delete their run folders"
    return StoreError(f"{list_names(broken) or f'table {table.name}: {cause}'}; {remedy}")
