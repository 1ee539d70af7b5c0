"""SQL that tries to write, to read files or to change settings."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from assay.contracts.arrow import to_arrow
from assay.contracts.tables import SCORES
from assay.errors import ConfigError, QueryError
from assay.store.layout import open_store
from assay.store.query import query
from assay.store.sandbox import Limits, open_sandbox
from assay.store.selection import filter_items

if TYPE_CHECKING:
    from pathlib import Path

    from assay.store.layout import Store

RUN = "20261130-020000-aaaaaa"
PIVOT = "pivot scores on evaluator using count(*) group by turn"
STATEMENTS = [
    "copy scores to 'out.csv'",
    "copy (select 1) to '.tmp/out.csv'",
    "copy (select 1) to 'file.parquet' (format parquet, use_tmp_file false)",
    "copy scores to 'out' (format parquet, partition_by (turn))",
    f"copy ({PIVOT}) to 'out.csv'",
    "explain analyze copy scores to 'out.csv'",
    "prepare p as copy scores to 'out.csv'",
    "execute p",
    "attach 'out.db'",
    "attach ':memory:' as m",
    "export database 'out'",
    "import database 'out'",
    "create table t as select 1",
    f"create table t as {PIVOT}",
    "create or replace view scores as select 1",
    "create macro m() as table select 1",
    "create secret (type s3)",
    "insert into scores select * from scores",
    f"insert into scores {PIVOT}",
    "update scores set turn = 1",
    "delete from scores",
    "merge into scores using items on true when matched then delete",
    "drop view scores",
    "alter table scores rename to x",
    "comment on view scores is 'x'",
    "pragma database_list",
    "pragma enable_profiling",
    "call pragma_version()",
    "set enable_external_access = true",
    "set temp_directory = '.tmp'",
    "set variable x = 1",
    "reset threads",
    "use memory",
    "begin",
    "checkpoint",
    "vacuum",
    "install httpfs",
    "load parquet",
    "select 1; copy scores to 'out.csv'",
    "select 1; select 2",
    "with x as (insert into scores select 1 returning *) from x",
    "with x as (copy (select 1) to 'out.csv') select 1",
    "with x as (copy (select 1) to '.tmp/out.csv') select 1",
    "select (with x as (delete from scores returning *) from x)",
    "from enable_logging(storage = 'file', storage_path = 'out')",
]
FILES = [
    "from 'file.parquet'",
    "from 'file.csv'",
    "from read_parquet('file.parquet')",
    "from parquet_metadata('file.parquet')",
    "from read_csv('file.csv')",
    "from sniff_csv('file.csv')",
    "from read_json('file.csv')",
    "from read_text('file.csv')",
    "from read_blob('/etc/hostname')",
    "from glob('*')",
    "from 's3://bucket/x.parquet'",
    "from 'https://example.org/x.csv'",
    "from read_duckdb('out.db')",
    "select * from scores where turn = (select count(*) from read_csv('file.csv'))",
    "with x as (from read_csv('file.csv')) pivot x on a using count(*)",
    "from which_secret('s3://bucket/x', 's3')",
]
VARIABLES = ["from connection", "from parameters", "from sources", "from folders", "from LOCK"]


@pytest.fixture(scope="module")
def place(shared_writer: Any) -> Path:
    """Return the parent of a store, with files to read and the `.tmp` that DuckDB would spill into."""
    run = shared_writer.commit(RUN)
    path = shared_writer.store.root.parent
    (path / ".tmp").mkdir()
    (path / "file.csv").write_text("a\n1\n")
    (path / "file.parquet").write_bytes(run.part("scores", 0).read_bytes())
    return path


@pytest.fixture
def history(place: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return the store, with the working directory beside it."""
    monkeypatch.chdir(place)
    return open_store("store", create=False)


def _read_tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in root.rglob("*")
    }


@pytest.mark.parametrize("sql", [*STATEMENTS, *FILES, "", "-- nothing"])
def test_what_is_no_read_is_refused_and_changes_no_file(history: Store, place: Path, sql: str) -> None:
    before = _read_tree(place)
    with pytest.raises(QueryError, match=r"^refused: ") as caught:
        query(history, sql)
    assert "\n" not in str(caught.value)
    assert _read_tree(place) == before


@pytest.mark.parametrize("sql", STATEMENTS + FILES)
def test_the_connection_alone_writes_no_file(place: Path, monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    monkeypatch.chdir(place)
    before = _read_tree(place)
    with (
        open_sandbox({"scores": to_arrow(SCORES.empty())}, Limits()) as connection,
        contextlib.suppress(duckdb.Error),
    ):
        connection.execute(sql).fetchall()
    assert _read_tree(place) == before


@pytest.mark.parametrize("sql", VARIABLES)
def test_variables_of_ours_are_no_tables(history: Store, sql: str) -> None:
    with pytest.raises(QueryError, match="known tables: runs"):
        query(history, sql)


def test_a_query_beyond_its_memory_spills_into_no_file(history: Store, place: Path) -> None:
    before = _read_tree(place)
    sql = "select md5(range::varchar) as m from range(2000000) order by m"
    with pytest.raises(QueryError, match="memory limit"):
        query(history, sql, memory_limit="20MB")
    assert _read_tree(place) == before


@pytest.mark.parametrize(
    "where",
    [
        "item_id in (select a from read_csv('file.csv'))",
        "exists (from 'file.parquet')",
        "true; copy items to 'out.csv'",
        "true) union (select 1",
        "(with x as (copy (select 1) to '.tmp/out.csv') select true)",
    ],
)
def test_a_condition_reaches_no_file(history: Store, place: Path, where: str) -> None:
    items = query(history, "from items").drop("run_id")
    before = _read_tree(place)
    with pytest.raises(ConfigError, match=r"^--where: "):
        filter_items(items, where)
    assert _read_tree(place) == before
