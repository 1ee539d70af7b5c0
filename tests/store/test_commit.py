"""Commits."""

from __future__ import annotations

from typing import Any

import pytest

from assay.contracts.tables import RUNS, SUMMARY
from assay.errors import ContractError, StoreError
from assay.store.catalog import list_runs, read_run, read_summary
from assay.store.commit import commit_run

RUN = "20261130-154500-aaaaaa"


def test_a_commit_makes_the_run_visible(writer: Any) -> None:
    folder = writer.write_parts(RUN, [True])
    assert list_runs(writer.store).is_empty()
    commit_run(folder, writer.frame(RUNS, {"run_id": RUN, "name": "nightly"}), SUMMARY.empty())
    assert list_runs(writer.store)["run_id"].to_list() == [RUN]
    assert read_run(writer.store, RUN)["name"] == "nightly"
    assert read_summary(writer.store, RUN).is_empty()


def test_a_resumed_run_replaces_its_commit(writer: Any) -> None:
    folder = writer.commit(RUN, status="partial")
    commit_run(folder, writer.frame(RUNS, {"run_id": RUN, "status": "complete"}), SUMMARY.empty())
    assert list_runs(writer.store)["status"].to_list() == ["complete"]


def test_a_summary_that_cannot_be_written_leaves_the_run_uncommitted(writer: Any) -> None:
    folder = writer.write_parts(RUN, [True])
    folder.summary.mkdir()
    with pytest.raises(StoreError, match=r"summary\.parquet"):
        commit_run(folder, writer.frame(RUNS, {"run_id": RUN}), SUMMARY.empty())
    assert not folder.commit.exists()


@pytest.mark.parametrize("ids", [[], [RUN, RUN], ["other"]])
def test_a_commit_is_one_row_of_its_own_run(writer: Any, ids: list[str]) -> None:
    folder = writer.write_parts(RUN, [True])
    run = writer.frame(RUNS, *({"run_id": run_id} for run_id in ids)) if ids else RUNS.empty()
    with pytest.raises(ContractError, match=RUN):
        commit_run(folder, run, SUMMARY.empty())
    assert not folder.summary.exists()


def test_a_summary_of_another_run_is_refused(writer: Any) -> None:
    folder = writer.write_parts(RUN, [True])
    with pytest.raises(ContractError, match="other"):
        commit_run(folder, writer.frame(RUNS, {"run_id": RUN}), writer.frame(SUMMARY, {"run_id": "other"}))
