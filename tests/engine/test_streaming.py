"""Input that is read in blocks: parts, ids over blocks, late faults, bad rows set aside."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import assay
from assay.config import RunConfig
from assay.contracts.quarantine import QUARANTINE
from assay.contracts.tables import ITEMS, PLAN
from assay.engine.prepare import Preparation, Prepared, begin
from assay.errors import ConfigError, InputError
from assay.store.layout import RunFolder, open_store
from assay.store.parts import list_parts, scan_parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run

THREADS = json.dumps(
    [{"turns": [{"prompt": f"{n}a"}, {"prompt": f"{n}b", "response": "x"}]} for n in range(9)]
)


def number_rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"i{n}", "query": f"q{n}", "response": "x", "ground_truth": "x", **more} for n in range(count)
    ]


def folder_of(run: Run) -> RunFolder:
    return RunFolder(open_store(run.store, create=False), run.run_id)


def files_in(store: Path) -> list[Path]:
    return sorted(path for path in store.rglob("*") if path.is_file()) if store.exists() else []


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_parts_of_any_size_hold_the_same_items(size: int, tmp_path: Path) -> None:
    data = tmp_path / "threads.json"
    data.write_text(THREADS, encoding="utf-8")
    run = assay.run(
        data, evaluators="Citations", batch_size=size, store=tmp_path / "store", max_errors="100%"
    )
    folder = folder_of(run)
    items = scan_parts(folder, ITEMS).collect()
    assert_frame_equal(items, pl.DataFrame(assay.load(data)))
    parts = [pl.read_parquet(path) for path in list_parts(folder, ITEMS)]
    assert all(part["item_id"].n_unique() * 2 == part.height for part in parts)  # conversations are whole
    assert len(parts) == {1: 9, 7: 3, 1000: 1}[size]


def test_a_long_input_without_calls_is_read_while_it_is_scored(
    write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    config = RunConfig(
        datasets=(str(write_rows(*number_rows(30))),),
        evaluators=("ExactMatch",),
        batch_size=10,
        store=str(tmp_path / "store"),
    )
    opened = begin(config)
    assert isinstance(opened, Preparation)
    assert opened.rows < 30
    opened.discard()
    assert isinstance(begin(config.model_copy(update={"batch_size": 30})), Prepared)


def test_a_plan_that_all_parts_share_is_stored_once(run_rows: Callable[..., Run]) -> None:
    run = run_rows(*number_rows(30), evaluators="ExactMatch", batch_size=7)
    plan = scan_parts(folder_of(run), PLAN).collect()
    assert plan.select("item_id", "turn", "evaluator").rows() == [("*", -1, "ExactMatch")]
    assert run.scores.height == 30


def test_parts_with_plans_of_their_own_name_their_items(tmp_path: Path) -> None:
    own: list[dict[str, Any]] = [
        {"prompt": str(n), "response": "1", "evaluators": {"Citations": {}}} for n in range(4)
    ]
    document: dict[str, Any] = {
        "schemaVersion": "1.2.0",
        "default_evaluators": {"ExactMatch": {}},
        "items": [*({"prompt": f"p{n}", "response": "1", "expected_response": "1"} for n in range(6)), *own],
    }
    data = tmp_path / "evals.json"
    data.write_text(json.dumps(document), encoding="utf-8")
    run = assay.run(data, batch_size=3, store=tmp_path / "store", max_errors="100%")
    plan = scan_parts(folder_of(run), PLAN).collect()
    assert plan["evaluator"].value_counts(sort=True).rows() == [("ExactMatch", 10), ("Citations", 4)]
    assert plan["item_id"].n_unique() == 10


@pytest.mark.parametrize("tracked", [3, 1000])
def test_a_repeated_id_is_named_the_same_however_far_apart(
    tracked: int, run_rows: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.ids.TRACKED_ITEMS", tracked)
    monkeypatch.setattr("assay.datasets.files.CHUNK_BYTES", 100)
    monkeypatch.setattr("assay.datasets.json_lines.PIECE_BYTES", 100)
    monkeypatch.setattr("assay.datasets.json_lines.BLOCK_BYTES", 100)
    rows = number_rows(20)
    again = [
        rows[1],
        {**rows[15], "response": "y"},
        rows[1],
        {"query": "q", "response": "x", "ground_truth": "x"},
    ]
    run = run_rows(*rows, *again, again[-1], evaluators="ExactMatch", batch_size=5)
    ids = scan_parts(folder_of(run), ITEMS).collect()["item_id"].to_list()
    assert ids[20:23] == ["i1-2", "i15-2", "i1-3"]
    assert ids[24] == f"{ids[23]}-2"
    assert len(set(run.scores["item_id"])) == 25


@pytest.mark.parametrize("tracked", [3, 1000])
def test_an_id_of_two_tasks_is_refused_however_far_apart(
    tracked: int, run_rows: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.ids.TRACKED_ITEMS", tracked)
    rows = [*number_rows(20), {"id": "i9", "query": "another", "response": "x", "ground_truth": "x"}]
    with pytest.raises(ConfigError, match=r"'i9' stands for two different items: .*:10 and .*:21"):
        run_rows(*rows, evaluators="ExactMatch", batch_size=4)
    assert files_in(tmp_path / "store") == []


def test_a_fault_at_the_end_leaves_no_run_folder(
    write_rows: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.datasets.files.CHUNK_BYTES", 100)
    monkeypatch.setattr("assay.datasets.json_lines.PIECE_BYTES", 100)
    monkeypatch.setattr("assay.datasets.json_lines.BLOCK_BYTES", 100)
    data = write_rows(*number_rows(50))
    with data.open("a", encoding="utf-8") as file:
        file.write('{"id": "torn", "query": \n')
    with pytest.raises(InputError, match=r"rows\.jsonl:51:\d+: not JSON"):
        assay.run(data, evaluators="ExactMatch", batch_size=5, store=tmp_path / "store")
    assert files_in(tmp_path / "store") == []
    assert list((tmp_path / "store" / "runs").iterdir()) == []


def test_a_mapped_field_that_only_late_rows_have_is_no_fault(run_rows: Callable[..., Run]) -> None:
    rows = [*number_rows(20), {**number_rows(1)[0], "id": "late", "gold": "x"}]
    run = run_rows(
        *rows, evaluators="ExactMatch", mapping={"expected_response": "gold"}, batch_size=5, max_errors="20"
    )
    assert run.scores.filter(pl.col("status") == "ok")["item_id"].to_list() == ["late"]
    assert run.scores["error_message"].drop_nulls().unique().to_list() == ["missing item.gold"]


def test_bad_rows_are_set_aside_counted_and_kept(write_rows: Callable[..., Path], tmp_path: Path) -> None:
    data = write_rows(*number_rows(9))
    text = data.read_text(encoding="utf-8").splitlines()
    data.write_text("\n".join([text[0], "{torn", *text[1:], "[1]"]), encoding="utf-8")
    with pytest.raises(InputError, match=r"2 bad lines:\n  line 2: not JSON.*\n  line 11: a list"):
        assay.run(data, evaluators="ExactMatch", store=tmp_path / "store")
    run = assay.run(
        data, evaluators="ExactMatch", on_bad_row="quarantine", batch_size=2, store=tmp_path / "store"
    )
    assert (run.info["items"], run.info["quarantined"], run.scores.height) == (9, 2, 9)
    kept = scan_parts(folder_of(run), QUARANTINE).collect()
    assert kept.select("source_line", "text").rows() == [(2, "{torn"), (11, "[1]")]


def test_a_row_of_two_forms_is_set_aside_with_its_text(
    write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    both = {"query": "q", "response": "r", "messages": [{"role": "user", "content": "q"}]}
    run = assay.run(
        write_rows(*number_rows(2), both),
        evaluators="ExactMatch",
        on_bad_row="quarantine",
        store=tmp_path / "store",
    )
    kept = scan_parts(folder_of(run), QUARANTINE).collect()
    assert [json.loads(text) for text in kept["text"]] == [both]


def test_an_empty_dataset_is_a_run_over_nothing_only_where_that_is_allowed(
    tmp_path: Path, write_rows: Callable[..., Path]
) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n \n", encoding="utf-8")
    with pytest.raises(InputError, match=r"no rows in empty\.jsonl"):
        assay.run(empty, evaluators="ExactMatch", store=tmp_path / "store")
    run = assay.run(empty, evaluators="ExactMatch", allow_empty=True, store=tmp_path / "store")
    assert (run.info["items"], run.info["evaluations"], run.info["status"], run.exit_code) == (
        0,
        0,
        "complete",
        0,
    )
    assert run.summary.height == 0
    both = assay.run(empty, write_rows(), evaluators="ExactMatch", allow_empty=True, store=tmp_path / "store")
    assert both.info["items"] == 3


def test_standard_input_is_read_like_a_file(tmp_path: Path) -> None:
    rows = "".join(json.dumps(row) + "\n" for row in number_rows(3))
    command = [sys.executable, "-m", "assay", "run", "-", "--evaluators", "ExactMatch", "--format", "json"]
    done = subprocess.run(
        [*command, "--store", str(tmp_path / "store")], input=rows, capture_output=True, text=True, check=True
    )
    run = json.loads(done.stdout)["run"]
    assert (run["items"], run["dialect"], run["dataset_name"]) == (3, "foundry", "standard input")


def test_the_file_that_others_look_for_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        InputError, match=r"none of these here: prompts\.json, evals\.json, tests\.json, evals/"
    ):
        assay.run(evaluators="Citations")
    document = '[{"prompt": "%s", "response": "[1]"}]'
    (tmp_path / "evals").mkdir()
    for name in ("evals/prompts.json", "tests.json"):
        (tmp_path / name).write_text(document % name, encoding="utf-8")
    assert assay.run(evaluators="Citations").info["dataset_name"] == "tests.json"


def test_a_stopped_reading_commits_what_is_finished(write_rows: Callable[..., Path], tmp_path: Path) -> None:
    data = write_rows(*number_rows(60_000))
    command = [
        sys.executable,
        "-m",
        "assay",
        "run",
        str(data),
        "--evaluators",
        "ExactMatch",
        "--batch-size",
        "50",
    ]
    store = tmp_path / "store"
    process = subprocess.Popen([*command, "--store", str(store)], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while len(list(store.glob("runs/*/scores/*.parquet"))) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    run = assay.get_run(store=store)
    assert run.info["status"] == "partial"
    assert 150 <= run.scores.height < 60_000
