"""The order under a budget: random, fixed by a seed, and nothing lost by it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from assay.config import RunConfig
from assay.contracts.tables import ITEMS, PLAN, Table
from assay.engine.matching import ANSWERS_TABLE
from assay.engine.ordering import rewrite_parts
from assay.engine.prepare import prepare
from assay.store.parts import list_parts, read_part
from transforms.plan import expand_plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.store.layout import RunFolder

KEY = ["item_id", "turn"]


def write_threads(path: Path, *, own_plans: bool) -> None:
    """Write 40 conversations of one to three turns; every second one may have a plan of its own."""
    items: list[dict[str, Any]] = []
    for n in range(40):
        own = {"evaluators": {"Contains": {"threshold": n / 100}}} if own_plans and n % 2 else {}
        turn = {"response": "x", "expected_response": "x", **own}
        items.append({"testId": f"t{n}", "turns": [{"prompt": f"{n}{t}", **turn} for t in range(n % 3 + 1)]})
    document: dict[str, Any] = {
        "schemaVersion": "1.2.0",
        "items": items,
        "default_evaluators": {"Citations": {}},
    }
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture
def prepare_threads(tmp_path: Path) -> Callable[..., RunFolder]:
    """Prepare conversations in batches of 7 rows."""

    def make(*, own_plans: bool = False, answers: bool = False) -> RunFolder:
        write_threads(tmp_path / "threads.json", own_plans=own_plans)
        lines = [f"t{n},{t},an{n}{t}\n" for n in range(40) for t in range(n % 3 + 1)]
        (tmp_path / "answers.csv").write_text("id,turn,response\n" + "".join(lines), encoding="utf-8")
        config = RunConfig(
            datasets=(str(tmp_path / "threads.json"),),
            responses=str(tmp_path / "answers.csv") if answers else None,
            evaluators=() if own_plans else ("Citations",),
            batch_size=7,
            store=str(tmp_path / "store"),
        )
        return prepare(config).folder

    return make


def read_table(folder: RunFolder, table: Table) -> list[pl.DataFrame]:
    return [read_part(path, table) for path in list_parts(folder, table)]


def read_order(folder: RunFolder) -> list[str]:
    return pl.concat(read_table(folder, ITEMS))["item_id"].unique(maintain_order=True).to_list()


def expand(folder: RunFolder) -> pl.DataFrame:
    """Return what is evaluated, as batches read it: a part without a plan has that of the first."""
    plans = {path.name: read_part(path, PLAN) for path in list_parts(folder, PLAN)}
    parts = [(path.name, read_part(path, ITEMS)) for path in list_parts(folder, ITEMS)]
    due = [expand_plan(plans.get(name, plans["part-00000.parquet"]), items) for name, items in parts]
    return pl.concat(due).sort(*KEY, "evaluator", "options_sha")


@pytest.mark.parametrize("own_plans", [False, True])
@pytest.mark.parametrize("size", [5, 1000])
def test_every_row_stays_and_is_evaluated_as_before(
    prepare_threads: Callable[..., RunFolder], size: int, own_plans: bool
) -> None:
    folder = prepare_threads(own_plans=own_plans, answers=True)
    before = [pl.concat(read_table(folder, table)).sort(KEY) for table in (ITEMS, ANSWERS_TABLE)]
    due, order = expand(folder), read_order(folder)
    assert rewrite_parts(folder, seed=3, size=size) == len(list_parts(folder, ITEMS))
    after = [pl.concat(read_table(folder, table)).sort(KEY) for table in (ITEMS, ANSWERS_TABLE)]
    assert_frame_equal(before[0], after[0])
    assert_frame_equal(before[1], after[1])
    assert_frame_equal(due, expand(folder))
    assert read_order(folder) != order


@pytest.mark.parametrize("size", [1, 9])
def test_every_conversation_stays_whole_and_in_the_part_of_its_plan_and_answers(
    prepare_threads: Callable[..., RunFolder], size: int
) -> None:
    folder = prepare_threads(own_plans=True, answers=True)
    rewrite_parts(folder, seed=0, size=size)
    parts = read_table(folder, ITEMS)
    assert sum(part["item_id"].n_unique() for part in parts) == 40
    for items, plan, answers in zip(
        parts, read_table(folder, PLAN), read_table(folder, ANSWERS_TABLE), strict=True
    ):
        assert items.height <= size + 2
        assert_frame_equal(items.select(KEY), answers.select(KEY))
        assert_frame_equal(items.select(KEY), plan.select(KEY).unique(maintain_order=True))
        turns = items.group_by("item_id", maintain_order=True).agg("turn", pl.col("turn_count").first())
        assert all(row[1] == list(range(row[2])) for row in turns.iter_rows())


def test_a_shared_plan_stays_one_file(prepare_threads: Callable[..., RunFolder]) -> None:
    folder = prepare_threads()
    rewrite_parts(folder, seed=0, size=7)
    assert len(list_parts(folder, PLAN)) == 1
    assert len(list_parts(folder, ITEMS)) > 1


def test_a_seed_fixes_the_order_wherever_the_items_came_from(
    prepare_threads: Callable[..., RunFolder],
) -> None:
    folder = prepare_threads(own_plans=True)
    orders: dict[int, list[str]] = {}
    for seed in (0, 1, 2):
        rewrite_parts(folder, seed=seed, size=7)
        orders[seed] = read_order(folder)
    rewrite_parts(folder, seed=0, size=3)
    assert read_order(folder) == orders[0]
    assert len({tuple(order) for order in orders.values()}) == 3


def test_the_first_part_is_a_fair_sample(prepare_threads: Callable[..., RunFolder]) -> None:
    folder = prepare_threads()
    ranks: list[int] = []
    for seed in range(30):
        rewrite_parts(folder, seed=seed, size=1000)
        ranks += [int(item_id[1:]) for item_id in read_order(folder)[:5]]
    assert len(set(ranks)) > 30
    assert 15 < sum(ranks) / len(ranks) < 24


def test_a_run_without_items_stays_as_it_is(tmp_path: Path) -> None:
    data = tmp_path / "none.jsonl"
    data.write_text("", encoding="utf-8")
    config = RunConfig(
        datasets=(str(data),),
        evaluators=("ExactMatch",),
        reading=RunConfig.model_fields["reading"].default.model_copy(update={"allow_empty": True}),
        store=str(tmp_path / "store"),
    )
    assert rewrite_parts(prepare(config).folder, seed=0, size=7) == 0
