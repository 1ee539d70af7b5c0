"""The files of a run: Parquet parts and the request, each replaced whole or not at all."""

from __future__ import annotations

import io
import json
import os
import re
import secrets
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import DuplicateKeyError, JsonValue, NonFiniteError, dump_json, parse_json
from assay.contracts.tables import Table, conform
from assay.errors import ContractError, StoreError, list_names
from assay.store.layout import RUN_PREFIX

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from assay.store.layout import RunFolder

LEVEL = 1  # of zstd: files grow by a tenth beside the default, and writing takes half the time
PART_NAME = re.compile(r"part-(\d{5,})\.parquet")


def stored(table: Table) -> Table:
    """Return the form a table has in its files: with `run_id` as first column if it has none."""
    if "run_id" in table.columns:
        return table
    columns = pl.Schema({"run_id": pl.String(), **table.columns})
    return Table(table.name, columns, table.nullable, ("run_id", *table.key))


def write_part(frame: pl.DataFrame, path: Path, table: Table) -> None:
    """Write a frame as one Parquet file; a reader sees the old file or the new one, never a torn one.

    Args:
        frame: Rows of `table`; a `run_id` that the table lacks is taken from the run folder.
        path: A path that `RunFolder` gave.
        table: The contract, checked before anything is written.

    Raises:
        ContractError: The frame is not such a table, or the path lies in no run folder.
        StoreError: The file cannot be written, for example for lack of space.
    """
    form = stored(table)
    rows = conform(frame, table)
    if form is not table:
        rows = conform(rows.with_columns(run_id=pl.lit(_run_id_of(path))), form)
    buffer = io.BytesIO()
    rows.write_parquet(
        buffer, compression="zstd", compression_level=LEVEL, row_group_size=max(rows.height, 1)
    )
    _replace_file(path, buffer.getvalue())


def _run_id_of(path: Path) -> str:
    for name in reversed(path.parts):
        if name.startswith(RUN_PREFIX):
            return name.removeprefix(RUN_PREFIX)
    raise ContractError(f"{path}: lies in no folder {RUN_PREFIX}…")


def _replace_file(path: Path, data: bytes) -> None:
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with draft.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        remedy = "free some space or make the folder writable"
        raise StoreError(f"{path}: cannot be written: {error.strerror}; {remedy}") from error


def read_part(path: Path, table: Table) -> pl.DataFrame:
    """Read one Parquet file as `table`.

    Columns that an older file lacks are null, and columns the table does not know are dropped,
    `run_id` of items and plan among them.

    Raises:
        StoreError: The file is absent, torn or no such table; the message names it.
    """
    with _naming(path, table):
        frame = pl.read_parquet(path, glob=False, hive_partitioning=False)
        return conform(frame.select(name for name in frame.columns if name in table.columns), table)


def scan_parts(folder: RunFolder, table: Table) -> pl.LazyFrame:
    """Return all parts of a table in order, unread but for their footers; none give the empty table.

    Raises:
        StoreError: A file is torn or no such table; the message names it.
    """
    paths = list_parts(folder, table)
    return pl.concat([_scan_part(path, table) for path in paths]) if paths else table.empty().lazy()


def _scan_part(path: Path, table: Table) -> pl.LazyFrame:
    with _naming(path, table):
        found = pl.read_parquet_schema(path)
        missing = [name for name in table.columns if name not in found and name not in table.nullable]
        if missing:
            raise ContractError(f"table {table.name}: missing [{list_names(missing)}]")
    return pl.scan_parquet(path, glob=False, hive_partitioning=False).select(
        pl.col(name).cast(dtype) if name in found else pl.lit(None, dtype).alias(name)
        for name, dtype in table.columns.items()
    )


@contextmanager
def _naming(path: Path, table: Table) -> Generator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise StoreError(f"{path}: no such file") from error
    except (OSError, ContractError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        cause = str(error).partition("\n")[0]
        raise StoreError(f"{path}: not a readable {table.name} file: {cause}") from error


def list_parts(folder: RunFolder, table: Table) -> list[Path]:
    """Return the parts of a table that exist, by index; files of any other name are ignored."""
    try:
        found = [(PART_NAME.fullmatch(path.name), path) for path in (folder.path / table.name).iterdir()]
    except FileNotFoundError:
        return []
    return [path for _, path in sorted((int(match[1]), path) for match, path in found if match)]


def has_part(path: Path) -> bool:
    """Whether a part was written; what exists is whole, as `write_part` leaves no halves."""
    return path.is_file()


def write_request(folder: RunFolder, payload: Mapping[str, object]) -> None:
    """Write what the run was asked to do as JSON, whole or not at all.

    Raises:
        StoreError: The file cannot be written.
    """
    _replace_file(folder.request, dump_json(dict(payload)).encode())


def read_request(folder: RunFolder) -> dict[str, JsonValue]:
    """Read what `write_request` wrote.

    Raises:
        StoreError: The file is absent or not a JSON object; the message names it.
    """
    try:
        value = parse_json(folder.request.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StoreError(f"{folder.request}: no such file") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, DuplicateKeyError, NonFiniteError) as error:
        raise StoreError(f"{folder.request}: not a readable request: {error}") from error
    if not isinstance(value, dict):
        raise StoreError(f"{folder.request}: not a JSON object")
    return value


def clear_run(folder: RunFolder) -> None:
    """Empty the folder of a run that was never committed; its name stays taken.

    Raises:
        StoreError: The run is committed, or the folder cannot be emptied.
    """
    discard_run(folder)
    try:
        folder.path.mkdir(parents=True)
    except OSError as error:
        raise StoreError(f"{folder.path}: cannot be made: {error.strerror}") from error


def discard_run(folder: RunFolder) -> None:
    """Delete the folder of a run that was never committed; an absent folder is fine.

    Raises:
        StoreError: The run is committed, or the folder cannot be deleted.
    """
    if folder.commit.exists():
        raise StoreError(f"{folder.path}: is committed and stays")
    try:
        shutil.rmtree(folder.path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{folder.path}: cannot be deleted: {error.strerror}") from error
