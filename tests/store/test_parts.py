"""Parquet parts, requests and discarded runs."""

from __future__ import annotations

import io
import os
import resource
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyarrow.parquet import ParquetFile

from assay.contracts.tables import ITEMS, PLAN, RUNS, SAMPLES, SCORES, Table
from assay.errors import ContractError, StoreError
from assay.store.layout import RunFolder, Store
from assay.store.parts import (
    discard_run,
    has_part,
    list_parts,
    read_part,
    read_request,
    scan_parts,
    write_part,
    write_request,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START = datetime(2026, 11, 30, 15, 45, 0, 123456, tzinfo=UTC)


@pytest.fixture
def folder(store: Store) -> RunFolder:
    return RunFolder(store, "20261130-154500-3f9a2c")


@pytest.fixture
def small_files() -> Iterator[None]:
    """Let no file of this process grow beyond 4 KiB, as a full disk or a quota would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _scores(height: int) -> pl.DataFrame:
    k = pl.int_range(height, eager=True)
    texts = [name for name, dtype in SCORES.columns.items() if dtype == pl.String]
    numbers = [name for name, dtype in SCORES.columns.items() if dtype.is_numeric()]
    return pl.DataFrame(
        {name: "ü" + k.cast(pl.String) for name in texts}
        | {name: k.cast(SCORES.columns[name]) for name in numbers}
        | {
            "level": (k % 2).replace_strict({0: "turn", 1: "conversation"}, return_dtype=pl.String),
            "status": (k % 3).replace_strict({0: "ok", 1: "error", 2: "skipped"}, return_dtype=pl.String),
            "passed": pl.select(pl.when(k % 3 == 0).then(k % 2 == 0)).to_series(),
        }
    )


def _write_foreign(path: Path, **columns: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame(columns).write_parquet(path)


def test_ten_thousand_scores_come_back_with_every_column_and_type(folder: RunFolder) -> None:
    frame, path = _scores(10_000), folder.part("scores", 0)
    write_part(frame, path, SCORES)
    back = read_part(path, SCORES)
    assert back.schema == pl.Schema(SCORES.columns)
    assert_frame_equal(back, frame, check_dtypes=False, check_column_order=False, categorical_as_str=True)
    assert pl.read_parquet_metadata(path)["ARROW:schema"]


def test_a_part_is_one_zstd_row_group(folder: RunFolder) -> None:
    path = folder.part("scores", 0)
    write_part(_scores(10_000), path, SCORES)
    metadata = ParquetFile(path).metadata
    assert metadata.num_row_groups == 1
    assert metadata.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize(
    ("table", "row"),
    [
        (ITEMS, {"tags": ["a", "ü"], "source_line": 3}),
        (ITEMS, {"tags": []}),
        (PLAN, {"level": "conversation", "threshold": 0.5}),
        (SAMPLES, {"started_at": START, "from_ledger": True, "status": "skipped"}),
        (RUNS, {"labels": ["a=b"], "started_at": START, "status": "partial"}),
    ],
)
def test_every_table_comes_back_as_it_was(folder: RunFolder, writer: Any, table: Table, row: Any) -> None:
    frame = writer.frame(table, row)
    write_part(frame, folder.part(table.name, 0), table)
    assert_frame_equal(read_part(folder.part(table.name, 0), table), frame)


@pytest.mark.parametrize("table", [ITEMS, PLAN, SAMPLES, SCORES])
def test_a_part_without_rows_comes_back(folder: RunFolder, table: Table) -> None:
    write_part(table.empty(), folder.part(table.name, 0), table)
    assert_frame_equal(read_part(folder.part(table.name, 0), table), table.empty())


@pytest.mark.parametrize("table", [ITEMS, PLAN])
def test_files_of_items_and_plan_begin_with_the_run_id(folder: RunFolder, writer: Any, table: Table) -> None:
    write_part(writer.frame(table, {}), folder.part(table.name, 0), table)
    raw = pl.read_parquet(folder.part(table.name, 0), hive_partitioning=False)
    assert raw.columns == ["run_id", *table.columns]
    assert raw["run_id"].to_list() == [folder.run_id]


def test_items_outside_a_run_folder_are_a_bug(tmp_path: Path, writer: Any) -> None:
    with pytest.raises(ContractError, match="run_id="):
        write_part(writer.frame(ITEMS, {}), tmp_path / "part-00000.parquet", ITEMS)


def test_a_frame_that_breaks_its_contract_leaves_the_old_file(folder: RunFolder) -> None:
    path = folder.part("scores", 0)
    write_part(_scores(3), path, SCORES)
    before = path.read_bytes()
    with pytest.raises(ContractError, match="metric"):
        write_part(_scores(3).drop("metric"), path, SCORES)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_reader_in_the_middle_of_a_file_keeps_the_old_one(folder: RunFolder) -> None:
    path = folder.part("scores", 0)
    write_part(SCORES.empty(), path, SCORES)
    old = path.read_bytes()
    with path.open("rb") as open_before:
        write_part(SCORES.empty(), path, SCORES)
        assert open_before.read() == old
        assert path.stat().st_ino != os.fstat(open_before.fileno()).st_ino


def test_a_write_without_space_leaves_the_old_file_and_no_draft(folder: RunFolder, small_files: None) -> None:
    del small_files
    path = folder.part("scores", 0)
    write_part(SCORES.empty(), path, SCORES)
    with pytest.raises(StoreError, match=r"scores.part-00000.parquet: cannot be written: File too large"):
        write_part(_scores(10_000), path, SCORES)
    assert read_part(path, SCORES).is_empty()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_draft_left_by_a_kill_disturbs_nobody(folder: RunFolder) -> None:
    path = folder.part("scores", 0)
    write_part(_scores(3), path, SCORES)
    draft = path.with_name(f"{path.name}.00c0ffee.tmp")
    draft.write_bytes(path.read_bytes()[:99])
    assert scan_parts(folder, SCORES).collect().height == 3
    write_part(_scores(4), path, SCORES)
    assert scan_parts(folder, SCORES).collect().height == 4
    assert list_parts(folder, SCORES) == [path]


def test_an_older_file_reads_with_nulls_and_a_wider_enum(folder: RunFolder) -> None:
    path = folder.part("scores", 0)
    frame = _scores(3).filter(pl.col("status") == "ok")
    old = frame.drop("latency_ms").with_columns(pl.col("status").cast(pl.Enum(["ok"])), gone=1)
    _write_foreign(path, **old.to_dict())
    for back in (read_part(path, SCORES), scan_parts(folder, SCORES).collect()):
        assert back.schema == pl.Schema(SCORES.columns)
        assert (back["latency_ms"].null_count(), back["status"].to_list()) == (1, ["ok"])


def _tear(path: Path, kind: str) -> None:
    buffer = io.BytesIO()
    _scores(50).write_parquet(buffer)
    data = buffer.getvalue()
    torn = {"empty": b"", "head": b"PAR1", "cut": data[:-100], "text": b"item_id,score\n"}
    path.write_bytes(torn[kind])


@pytest.mark.parametrize("kind", ["empty", "head", "cut", "text"])
def test_a_torn_file_is_named_and_no_other(folder: RunFolder, kind: str) -> None:
    for index in range(3):
        write_part(_scores(3), folder.part("scores", index), SCORES)
    _tear(folder.part("scores", 1), kind)
    with pytest.raises(StoreError, match=r"part-00001\.parquet: not a readable scores file"):
        read_part(folder.part("scores", 1), SCORES)
    with pytest.raises(StoreError, match=r"part-00001\.parquet: not a readable scores file"):
        scan_parts(folder, SCORES)


def test_a_foreign_file_is_named_with_what_it_lacks(folder: RunFolder) -> None:
    _write_foreign(folder.part("scores", 0), item_id=["a"], score=[1.0])
    with pytest.raises(StoreError, match=r"part-00000\.parquet: .*missing \[run_id, turn"):
        read_part(folder.part("scores", 0), SCORES)
    with pytest.raises(StoreError, match=r"part-00000\.parquet: .*missing \[run_id, turn"):
        scan_parts(folder, SCORES)


def test_an_absent_part_is_named(folder: RunFolder) -> None:
    with pytest.raises(StoreError, match=r"part-00000\.parquet: no such file"):
        read_part(folder.part("scores", 0), SCORES)


def test_no_parts_scan_as_the_empty_table(folder: RunFolder) -> None:
    assert_frame_equal(scan_parts(folder, SCORES).collect(), SCORES.empty())


def test_parts_are_scanned_by_index_and_strangers_ignored(folder: RunFolder) -> None:
    for index in (100_000, 2, 10):
        write_part(_scores(1).with_columns(turn=index), folder.part("scores", index), SCORES)
    (folder.path / "scores" / "part-x.parquet").touch()
    (folder.path / "scores" / ".part-00001.parquet").touch()
    assert scan_parts(folder, SCORES).collect()["turn"].to_list() == [2, 10, 100_000]


def test_a_written_part_is_known(folder: RunFolder) -> None:
    path = folder.part("scores", 0)
    assert not has_part(path)
    write_part(_scores(1), path, SCORES)
    assert has_part(path)


def test_a_request_comes_back(folder: RunFolder) -> None:
    payload = {"datasets": ["ä.json"], "limit": None, "options": {"E": {"threshold": 0.5}}}
    write_request(folder, payload)
    assert read_request(folder) == payload
    assert [p.name for p in folder.path.iterdir()] == ["request.json"]


@pytest.mark.parametrize(("text", "cause"), [("{", "not a readable"), ("[]", "not a JSON object")])
def test_a_torn_request_is_named(folder: RunFolder, text: str, cause: str) -> None:
    folder.path.mkdir(parents=True)
    folder.request.write_text(text)
    with pytest.raises(StoreError, match=rf"request\.json: {cause}"):
        read_request(folder)


def test_an_absent_request_is_named(folder: RunFolder) -> None:
    with pytest.raises(StoreError, match=r"request\.json: no such file"):
        read_request(folder)


def test_a_discarded_run_leaves_nothing(folder: RunFolder) -> None:
    write_part(_scores(1), folder.part("scores", 0), SCORES)
    discard_run(folder)
    discard_run(folder)
    assert not folder.path.exists()


def test_a_committed_run_is_never_discarded(writer: Any) -> None:
    folder = writer.commit("20261130-154500-aaaaaa")
    with pytest.raises(StoreError, match="is committed"):
        discard_run(folder)
    assert folder.commit.exists()
