"""A DuckDB connection that reads the tables it is given and reaches nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import duckdb
import polars as pl

from assay.errors import QueryError, list_names, nearest_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    import pyarrow.dataset as ds
    from polars.datatypes import DataTypeClass

LOCK = ("SET TimeZone='UTC'", "SET enable_external_access=false", "SET lock_configuration=true")
READ_NODES = r"(?:SELECT|SET_OPERATION|RECURSIVE_CTE|CTE)_NODE"
WRITE_NODE = re.compile(rf'"type":"(?!{READ_NODES})(\w+?)(?:_QUERY)?_NODE"')  # quotes inside text are escaped
PIVOT_START = re.compile(
    r"(?:\s|\(|--[^\n]*\n|/\*.*?\*/)*(?:pivot|select|from|with)\b", re.IGNORECASE | re.DOTALL
)
UNKNOWN_TABLE = re.compile(r"Table with name .* does not exist")
UNKNOWN_COLUMN = re.compile(r'(?:Referenced column|a column named) "([^"]*)"')
DataType: TypeAlias = "pl.DataType | DataTypeClass"
ONE_READ = "one statement that reads (SELECT, FROM, WITH, PIVOT, DESCRIBE, SUMMARIZE) is accepted"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one statement may use.

    Attributes:
        memory: Bound of DuckDB's memory, such as `2GB`; nothing is spilled to disk.
        seconds: Bound of its time.
    """

    memory: str = "2GB"
    seconds: float = 60.0


def open_sandbox(tables: Mapping[str, pa.Table | ds.Dataset], limits: Limits) -> duckdb.DuckDBPyConnection:
    """Open an in-memory connection on named tables, without files, network, Python variables or settings.

    An empty `temp_directory` matters twice: DuckDB would spill to `.tmp` in the working directory,
    and it allows SQL to write to that folder even when external access is off.

    Raises:
        QueryError: The memory limit is not one.
    """
    config: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": limits.memory,
        "max_execution_time": max(1, round(limits.seconds * 1000)),
        "temp_directory": "",
        "python_enable_replacements": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        connection = duckdb.connect(config=config)
    except duckdb.Error as error:
        raise QueryError(f"memory limit {limits.memory!r}: {_first_line(error)}") from error
    for name, table in tables.items():
        connection.register(name, table)
    for statement in LOCK:
        connection.execute(statement)
    return connection


def read_sql(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object] | None
) -> pl.DataFrame:
    """Run one reading statement and return its rows in plain types.

    Whole decimals, which sums of integers are, become Int64 (Int128 beyond its range), other
    decimals Float64, enums text. Times with a zone are UTC.

    Raises:
        QueryError: The statement is no read, or its result has no form in a table.
        duckdb.Error: Whatever else DuckDB has against it.
    """
    _check_read(connection, sql)
    table: pa.Table = connection.sql(sql, params=dict(parameters) if parameters else None).to_arrow_table()
    try:
        frame = pl.DataFrame(table)
    except pl.exceptions.PolarsError as error:
        advice = "give columns different names with AS, turn intervals into seconds with epoch(…)"
        raise QueryError(f"the result is no table: {_first_line(error)}; {advice}") from error
    try:
        return frame.cast({name: _plain(dtype, pl.Int64()) for name, dtype in frame.schema.items()})
    except pl.exceptions.InvalidOperationError:
        return frame.cast({name: _plain(dtype, pl.Int128()) for name, dtype in frame.schema.items()})


def _plain(dtype: DataType, integer: DataType) -> DataType:
    match dtype:
        case pl.Decimal():
            return pl.Float64() if dtype.scale else integer
        case pl.Categorical():
            return pl.String()
        case pl.List():
            return pl.List(_plain(dtype.inner, integer))
        case pl.Struct():
            return pl.Struct({field.name: _plain(field.dtype, integer) for field in dtype.fields})
        case _:
            return dtype


def _check_read(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse what is no read in words of our own; that nothing can be written is the connection's doing."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise QueryError(f"refused: {len(statements)} statements; {ONE_READ}")
    try:
        kind = statements[0].type
    except ValueError as error:  # a kind that the Python module has no name for
        raise QueryError(f"refused: the statement is not a read; {ONE_READ}") from error
    if kind == duckdb.StatementType.MULTI and PIVOT_START.match(sql):
        return
    if kind != duckdb.StatementType.SELECT:
        raise QueryError(f"refused: {kind.name} is not a read; {ONE_READ}")
    tree = connection.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchall()[0][0]
    if match := WRITE_NODE.search(tree):
        raise QueryError(f"refused: {match[1]} inside a query is not a read; {ONE_READ}")


def explain_error(error: duckdb.Error, sql: str, tables: Mapping[str, Sequence[str]], limits: Limits) -> str:
    """Say in one sentence why DuckDB failed.

    Args:
        error: What it raised.
        sql: The statement.
        tables: Table name to its columns.
        limits: The limits it ran under.
    """
    cause = _first_line(error)
    match error:
        case duckdb.InterruptException():
            return f"stopped after the limit of {limits.seconds:g} s"
        case duckdb.OutOfMemoryException():
            return f"needs more than the memory limit of {limits.memory}"
        case duckdb.PermissionException():
            return f"refused: only the tables {list_names(tables)} can be read, no files: {cause}"
        case duckdb.InvalidInputException() if "configuration has been locked" in cause:
            return f"refused: settings are locked: {cause}"
        case _:
            return cause + _list_known(cause, sql, tables)


def _list_known(cause: str, sql: str, tables: Mapping[str, Sequence[str]]) -> str:
    if UNKNOWN_TABLE.search(cause):
        return f"; known tables: {list_names(tables)}"
    if match := UNKNOWN_COLUMN.search(cause):
        named = [name for name in tables if re.search(rf"\b{name}\b", sql, re.IGNORECASE)] or list(tables)
        columns = dict.fromkeys(column for name in named for column in tables[name])
        close = nearest_names(match[1], columns)
        return f"; known columns: {list_names(dict.fromkeys([*close, *columns]))}"
    return ""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
