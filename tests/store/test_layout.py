"""Folders of the store."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from assay.errors import ConfigError, StoreError
from assay.store.layout import RunFolder, Store, create_run, new_run_id, open_store

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 30, 15, 45, tzinfo=UTC)


@pytest.mark.parametrize("root", ["s3://bucket/x", "gs://bucket", "file:///tmp/x", ""])
def test_a_url_is_refused_and_the_message_says_what_is_accepted(root: str) -> None:
    with pytest.raises(ConfigError, match="local folder"):
        open_store(root, create=True)


def test_create_makes_the_folder_and_its_parents(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "a" / "b"), create=True)
    assert store.root.is_dir()
    assert open_store(str(store.root), create=False) == store


def test_a_missing_folder_is_not_made_for_a_reader(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        open_store(str(tmp_path / "typo"), create=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_names_path_and_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"file.store: cannot be made: Not a directory; .*--store"):
        open_store(str(tmp_path / "file" / "store"), create=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_names_path_and_remedy(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match=r"cannot be written; .*--store"):
        open_store(str(tmp_path), create=True)


def test_a_run_id_holds_utc_seconds_and_entropy() -> None:
    local = NOW.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert new_run_id(local, "3f9a2c") == "20261130-154500-3f9a2c"


def test_run_ids_sort_by_time() -> None:
    assert new_run_id(NOW, "ffffff") < new_run_id(NOW + timedelta(seconds=1), "000000")


def test_a_taken_run_id_is_drawn_again(store: Store) -> None:
    drawn = iter(["aaaaaa", "aaaaaa", "bbbbbb"])
    ids = [create_run(store, NOW, draw=lambda _: next(drawn)).run_id for _ in range(2)]
    assert ids == ["20261130-154500-aaaaaa", "20261130-154500-bbbbbb"]


def test_drawing_ends_when_no_id_is_free(store: Store) -> None:
    create_run(store, NOW, draw=lambda _: "aaaaaa")
    with pytest.raises(StoreError, match="no free run id"):
        create_run(store, NOW, draw=lambda _: "aaaaaa")


def test_runs_that_start_at_once_get_folders_of_their_own(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(create_run, [store] * 32, [NOW] * 32))
    assert len({folder.path for folder in folders}) == 32
    assert all(folder.path.is_dir() for folder in folders)


def test_a_run_cannot_start_where_no_folder_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(StoreError, match="runs"):
        create_run(Store(tmp_path), NOW)


def test_paths_of_a_run_are_as_documented(store: Store) -> None:
    folder = RunFolder(store, "20261130-154500-3f9a2c")
    base = store.root / "runs" / "run_id=20261130-154500-3f9a2c"
    assert folder.path == base
    assert folder.part("scores", 17) == base / "scores" / "part-00017.parquet"
    assert [folder.request, folder.summary, folder.commit] == [
        base / name for name in ("request.json", "summary.parquet", "run.parquet")
    ]
