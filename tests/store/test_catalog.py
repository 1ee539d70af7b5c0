"""Lists of runs and references to them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from assay.contracts.tables import RUNS
from assay.errors import ConfigError, StoreError
from assay.store.catalog import find_run, list_problems, list_runs, read_run, read_summary

if TYPE_CHECKING:
    from assay.store.layout import Store

OLD, MID, NEW = "20261128-020000-aaaaaa", "20261129-020000-bbbbbb", "20261130-020000-cccccc"


def _write_three(writer: Any) -> Store:
    writer.commit(MID, name="nightly", labels=["branch=main", "model=x"])
    writer.commit(OLD, name="nightly", labels=["branch=main"])
    writer.commit(NEW, name="pull 7", labels=["branch=fix"])
    writer.write_parts("20261201-020000-dddddd", [True])  # never committed
    (writer.store.runs / "notes").mkdir()
    return writer.store


@pytest.fixture(scope="module")
def three(shared_writer: Any) -> Store:
    return _write_three(shared_writer)


@pytest.fixture
def spoilt(writer: Any) -> Store:
    """Return the same store for one test that spoils its files."""
    return _write_three(writer)


def test_runs_are_listed_newest_first(three: Store) -> None:
    runs = list_runs(three)
    assert runs.schema == pl.Schema(RUNS.columns)
    assert runs["run_id"].to_list() == [NEW, MID, OLD]
    assert list_problems(three) == []


def test_an_empty_store_lists_nothing(store: Store) -> None:
    assert_frame_equal(list_runs(store), RUNS.empty())
    assert list_problems(store) == []


@pytest.mark.parametrize("torn", [b"", b"PAR1", b"PAR1 and more that is no footer"])
def test_a_torn_commit_is_left_out_and_named(spoilt: Store, torn: bytes) -> None:
    (spoilt.runs / f"run_id={MID}" / "run.parquet").write_bytes(torn)
    assert list_runs(spoilt)["run_id"].to_list() == [NEW, OLD]
    (problem,) = list_problems(spoilt)
    assert f"run_id={MID}/run.parquet: not a readable runs file" in problem
    with pytest.raises(ConfigError, match="no such run"):
        find_run(spoilt, MID)


def test_a_copied_run_folder_does_not_double_its_run(spoilt: Store) -> None:
    shutil.copytree(spoilt.runs / f"run_id={NEW}", spoilt.runs / "run_id=copy")
    assert list_runs(spoilt)["run_id"].to_list() == [NEW, MID, OLD]
    assert "run_id=copy" in list_problems(spoilt)[0]


def test_a_commit_of_an_older_schema_is_listed_with_nulls(spoilt: Store) -> None:
    path = spoilt.runs / f"run_id={OLD}" / "run.parquet"
    old = pl.read_parquet(path, hive_partitioning=False).drop("judge_health", "flow_run_id")
    old.with_columns(pl.col("status").cast(pl.String).cast(pl.Enum(["complete"]))).write_parquet(path)
    assert list_runs(spoilt)["judge_health"].to_list() == [None, None, None]
    assert list_problems(spoilt) == []


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (MID, MID),
        ("latest", NEW),
        ("latest~0", NEW),
        ("latest~2", OLD),
        ("20261129", MID),
        ("nightly", MID),
        ("pull 7", NEW),
        ("label:branch=main", MID),
        ("label:branch=fix", NEW),
    ],
)
def test_a_reference_finds_its_run(three: Store, reference: str, found: str) -> None:
    assert find_run(three, reference) == found


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("2026", f"ambiguous, begins {NEW}, {MID}, {OLD}"),
        ("nightli", "no such run; did you mean nightly"),
        ("zzz", f"no such run; newest: {NEW}"),
        ("latest~3", "there are 3 runs; oldest: latest~2"),
        ("latest~", "accepted: .*latest~N"),
        ("label:branch=mian", "unknown label .*did you mean branch=main"),
        ("label:branch", "known: branch=fix, branch=main, model=x"),
        ("20261201-020000-dddddd", "no such run"),
        ("", "no such run"),
    ],
)
def test_a_reference_that_fits_nothing_is_explained(three: Store, reference: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        find_run(three, reference)


def test_a_name_wins_over_the_beginning_of_an_id(writer: Any) -> None:
    writer.commit(OLD, name="20261130")
    writer.commit(NEW)
    assert find_run(writer.store, "20261130") == OLD


def test_without_runs_the_message_says_how_to_make_one(store: Store) -> None:
    with pytest.raises(ConfigError, match="`assay run` makes one"):
        find_run(store, "latest")


def test_a_run_is_read_by_column(three: Store) -> None:
    run = read_run(three, MID)
    assert list(run) == list(RUNS.columns)
    assert (run["name"], run["labels"]) == ("nightly", ["branch=main", "model=x"])
    assert read_summary(three, MID)["passed"].to_list() == [7]


def test_a_run_without_commit_cannot_be_read(three: Store) -> None:
    for read in (read_run, read_summary):
        with pytest.raises(StoreError, match="dddddd: no finished run"):
            read(three, "20261201-020000-dddddd")


def test_a_torn_summary_is_named(spoilt: Store) -> None:
    path = spoilt.runs / f"run_id={MID}" / "summary.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match=r"summary\.parquet: not a readable summary file"):
        read_summary(spoilt, MID)
