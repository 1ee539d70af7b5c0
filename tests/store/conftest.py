"""Committed runs on real files, for all tests of the store."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.contracts.tables import ITEMS, PLAN, RUNS, SAMPLES, SCORES, SUMMARY, Table, conform
from assay.store.commit import commit_run
from assay.store.layout import RunFolder, Store, open_store
from assay.store.parts import write_part

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2026, 11, 30, 15, 45, tzinfo=UTC)


def _fill(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Give every required column that a row leaves out a value of its type."""
    samples: dict[Any, Any] = {pl.String: "x", pl.Boolean: False, pl.Datetime: START, pl.List: []}
    first = {n: t.categories[0] for n, t in table.columns.items() if isinstance(t, pl.Enum)}
    blank = {
        name: None if name in table.nullable else first.get(name, samples.get(dtype.base_type(), 1))
        for name, dtype in table.columns.items()
    }
    return conform(pl.DataFrame([blank | row for row in rows], schema=pl.Schema(table.columns)), table)


class Writer:
    """Makes frames and runs whose untold columns hold something lawful."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def frame(self, table: Table, *rows: dict[str, Any]) -> pl.DataFrame:
        """Return rows of a table, filled up."""
        return _fill(table, list(rows))

    def write_parts(self, run_id: str, passed: list[bool | None]) -> RunFolder:
        """Write the parts of a run: one item and one score per verdict, split over two evaluators."""
        folder = RunFolder(self.store, run_id)
        folder.path.mkdir(parents=True)
        names = [{"item_id": f"i{k}", "turn": 0} for k in range(len(passed))]
        scores = [
            name | {"run_id": run_id, "evaluator": f"E{k % 2}", "passed": value}
            for k, (name, value) in enumerate(zip(names, passed, strict=True))
        ]
        samples = [name | {"run_id": run_id, "started_at": START} for name in names]
        write_part(_fill(ITEMS, names), folder.part("items", 0), ITEMS)
        write_part(_fill(PLAN, names), folder.part("plan", 0), PLAN)
        write_part(_fill(SAMPLES, samples), folder.part("samples", 0), SAMPLES)
        write_part(_fill(SCORES, scores[:1]), folder.part("scores", 0), SCORES)
        write_part(_fill(SCORES, scores[1:]), folder.part("scores", 1), SCORES)
        return folder

    def commit(self, run_id: str, passed: list[bool | None] | None = None, **columns: Any) -> RunFolder:
        """Write and commit a run; `columns` go into its row of RUNS."""
        folder = self.write_parts(run_id, passed or [True, False])
        run = _fill(RUNS, [{"run_id": run_id, **columns}])
        commit_run(folder, run, _fill(SUMMARY, [{"run_id": run_id, "evaluator": "E0", "passed": 7}]))
        return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path / "store"), create=True)


@pytest.fixture
def writer(store: Store) -> Writer:
    return Writer(store)


@pytest.fixture(scope="module")
def shared_writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """Return the writer of a store that the tests of one file only read."""
    return Writer(open_store(str(tmp_path_factory.mktemp("shared") / "store"), create=True))
