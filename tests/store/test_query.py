"""SQL over committed runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.contracts.tables import ITEMS, SCORES, Table
from assay.errors import QueryError, StoreError
from assay.store.parts import read_part
from assay.store.query import TABLES, query

if TYPE_CHECKING:
    from assay.store.layout import RunFolder, Store

ONE, TWO = "20261129-020000-aaaaaa", "20261130-020000-bbbbbb"


def _write_two(writer: Any) -> Store:
    writer.commit(ONE, [True, False, True, None])
    writer.commit(TWO, [True, True, False])
    writer.write_parts("20261201-020000-cccccc", [True])  # never committed
    return writer.store


@pytest.fixture(scope="module")
def two(shared_writer: Any) -> Store:
    return _write_two(shared_writer)


@pytest.fixture
def third(writer: Any) -> RunFolder:
    """Return a run beside two others, whose files a test may spoil."""
    _write_two(writer)
    return writer.commit("20261202-020000-dddddd")


def test_passes_are_counted_over_two_runs(two: Store) -> None:
    sql = "select evaluator, count(*) filter (where passed) as n from scores group by 1 order by 1"
    assert query(two, sql).rows() == [("E0", 3), ("E1", 1)]


@pytest.mark.parametrize("table", list(TABLES))
def test_an_uncommitted_run_is_in_no_table(two: Store, table: str) -> None:
    found = query(two, f"select distinct run_id from {table} order by 1")  # noqa: S608 - our own table names
    assert found["run_id"].to_list() == [ONE, TWO]


@pytest.mark.parametrize(("name", "table"), TABLES.items())
def test_an_empty_store_answers_with_the_columns_and_no_rows(store: Store, name: str, table: Table) -> None:
    answer = query(store, f"from {name}")
    assert (answer.columns, answer.height) == (list(table.columns), 0)


def test_enums_lists_and_times_come_out_plain(two: Store) -> None:
    answer = query(
        two,
        "select level, started_at, tags from scores join samples using (run_id, item_id)"
        " join items using (run_id, item_id) where scores.status = 'ok'",
    )
    assert answer.schema == {
        "level": pl.String,
        "started_at": pl.Datetime("us", "UTC"),
        "tags": pl.List(pl.String),
    }
    assert answer.height == 7


def test_parameters_are_bound(two: Store) -> None:
    sql = "select count(*) as n from scores where run_id in $runs and passed = $p"
    assert query(two, sql, parameters={"runs": [ONE], "p": True}).item() == 2


def test_a_parameter_without_value_is_named(two: Store) -> None:
    with pytest.raises(QueryError, match="parameters: a"):
        query(two, "select $a")


@pytest.mark.parametrize(
    ("sql", "dtype", "value"),
    [
        ("select sum(turn + 1) from scores", pl.Int64, 7),
        ("select sum(9223372036854775807) from scores", pl.Int128, 7 * 9223372036854775807),
        ("select 1.5", pl.Float64, 1.5),
        ("select list(n) from (select sum(turn + 1) as n from scores)", pl.List(pl.Int64), [7]),
        ("select {'n': sum(turn + 1)} from scores", pl.Struct({"n": pl.Int64}), {"n": 7}),
        ("select 'a'::enum('a', 'b')", pl.String, "a"),
        ("select strftime(timestamptz '2026-01-01 00:30:00+01', '%Y-%m-%d %H')", pl.String, "2025-12-31 23"),
    ],
)
def test_results_are_plain_numbers_and_text(two: Store, sql: str, dtype: Any, value: object) -> None:
    column = query(two, sql).to_series()
    assert column.dtype == dtype
    assert column.to_list() == [value]


@pytest.mark.parametrize(
    "sql",
    [
        "pivot scores on evaluator using count(*) group by turn",
        "-- by evaluator\nfrom (pivot scores on evaluator using count(*) group by turn)",
        "with s as (from scores) select turn, count(*), 3 from s group by 1 union all select 1, 2, 3 limit 1",
        "with recursive t(n) as (select 1 union all select n + 1 from t where n < 1) select n, 2, 3 from t",
        "select 'INSERT_QUERY_NODE', '\"type\":\"COPY_QUERY_NODE\"', 1;",
        "values (1, 2, 3)",
    ],
)
def test_reads_of_every_form_are_answered(two: Store, sql: str) -> None:
    assert query(two, sql).shape == (1, 3)


@pytest.mark.parametrize("sql", ["describe scores", "summarize select score from scores", "show tables"])
def test_the_tables_describe_themselves(two: Store, sql: str) -> None:
    assert query(two, sql).height in (len(SCORES.columns), 1, len(TABLES))


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("selec 1", r'^Parser Error: syntax error at or near "selec"$'),
        ("from score", "score does not exist!; known tables: runs, items, plan, samples, scores, summary"),
        ("select scor from scores", "known columns: score, "),
        ("select s.evaluatr from scores s", "known columns: evaluator, "),
        ("select 'a'::int", "^Conversion Error: Could not convert string 'a' to INT32$"),
        ("select interval 3 day", "epoch"),
        ("select 1 as a, 2 as a", 'no table: .*"a".* with AS'),
        ("select error('reading the stream registered as ''x'' failed: y')", "^Invalid Input Error"),
    ],
)
def test_a_failure_is_one_line_with_what_is_known(two: Store, sql: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        query(two, sql)
    assert "\n" not in str(caught.value)


def test_a_query_that_runs_too_long_names_its_limit(two: Store) -> None:
    with pytest.raises(QueryError, match=r"limit of 0\.1 s"):
        query(two, "select sum(a.range * b.range) from range(1000000) a, range(1000000) b", timeout_s=0.1)


def test_a_query_that_needs_too_much_memory_names_its_limit(two: Store) -> None:
    sql = "select md5(range::varchar) as m from range(2000000) order by m"
    with pytest.raises(QueryError, match="memory limit of 20MB"):
        query(two, sql, memory_limit="20MB")


def test_a_memory_limit_that_is_none_is_named(two: Store) -> None:
    with pytest.raises(QueryError, match="memory limit '2 quux'"):
        query(two, "select 1", memory_limit="2 quux")


def test_an_older_file_answers_null_for_what_it_lacks(third: RunFolder) -> None:
    path = third.part("scores", 0)
    old = read_part(path, SCORES).drop("latency_ms", "status").with_columns(gone=1, threshold=0.5)
    old.write_parquet(path)
    sql = "select threshold, latency_ms, status from scores where run_id like '20261202%' order by all"
    assert query(third.store, sql).rows() == [(0.5, None, None), (None, None, "ok")]


@pytest.mark.parametrize("torn", [b"", b"PAR1", b"PAR1 but no Parquet at all", b"cut"])
def test_a_torn_file_is_named_and_no_other(third: RunFolder, torn: bytes) -> None:
    path = third.part("scores", 1)
    path.write_bytes(path.read_bytes()[:-100] if torn == b"cut" else torn)
    with pytest.raises(StoreError) as caught:
        query(third.store, "select count(passed) from scores")
    assert str(caught.value).count(".parquet") == 1
    assert str(path) in str(caught.value)
    assert query(third.store, "select count(*) from items").item() == 9


def test_a_foreign_type_is_named(third: RunFolder) -> None:
    path = third.part("scores", 1)
    read_part(path, SCORES).with_columns(score=pl.lit("high")).write_parquet(path)
    with pytest.raises(StoreError, match=r"dddddd/scores/part-00001\.parquet"):
        query(third.store, "select sum(score) from scores")


def test_a_condition_on_the_run_opens_no_other_run(third: RunFolder) -> None:
    third.part("scores", 0).write_bytes(b"")
    for run in (f"= '{ONE}'", f"in ('{ONE}')"):
        assert query(third.store, f"select count(passed) from scores where run_id {run}").item() == 3  # noqa: S608 - ours


def test_items_carry_their_run_as_first_column(two: Store) -> None:
    answer = query(two, "select run_id, count(distinct item_id) from items group by 1 order by 1")
    assert answer.rows() == [(ONE, 4), (TWO, 3)]
    assert query(two, "from items").columns == ["run_id", *ITEMS.columns]


def test_queries_run_beside_each_other(two: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(query, [two] * 8, ["select count(*) from scores"] * 8))
    assert [answer.item() for answer in answers] == [7] * 8
