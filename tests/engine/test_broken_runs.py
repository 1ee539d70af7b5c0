"""Runs that are killed or cannot write: the history stays readable, and the rest alone is paid for."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest

import assay

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")

SMALL_FILES = 64 << 10  # bytes that a file may have


class Rows:
    """A run over many questions that a process of its own works on."""

    def __init__(self, folder: Path, loopback: Loopback, count: int) -> None:
        self.store, self.loopback = folder / "store", loopback
        self.data = folder / "rows.jsonl"
        rows = (
            json.dumps({"id": f"r{n}", "query": f"question {n} .", "ground_truth": "ok"})
            for n in range(count)
        )
        self.data.write_text("\n".join(rows), encoding="utf-8")

    def start(self, *tokens: str, limit: int = resource.RLIM_INFINITY) -> subprocess.Popen[str]:
        """Start `assay run` with a limit on the size of files."""
        target = ["--model", "m", "--base-url", self.loopback.base_url, "--evaluators", "ExactMatch"]
        asked = tokens or (str(self.data), *target, "--concurrency", "8", "--batch-size", "50")
        return subprocess.Popen(
            [sys.executable, "-m", "assay", "run", *asked, "--store", str(self.store)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),  # noqa: PLW1509 - no other way
        )

    def kill_after(self, requests: int, *tokens: str) -> None:
        """Start a run and kill it when the server was asked so often."""
        process = self.start(*tokens)
        while len(self.loopback.requests) < requests and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def finish(self) -> assay.Run:
        """Go on with the newest run to its end."""
        return assay.run(resume="latest", store=self.store)


def test_a_killed_run_goes_on_and_every_row_is_there_once(loopback: Loopback, tmp_path: Path) -> None:
    loopback.script([], after={"reply": "ok", "delay": 0.005})
    rows = Rows(tmp_path, loopback, 150)
    rows.kill_after(60)
    rows.kill_after(90, "--resume", "latest")
    run = rows.finish()
    assert (run.info["status"], run.exit_code) == ("complete", 0)
    assert run.samples["item_id"].n_unique() == run.samples.height == run.scores.height == 150
    assert run.summary.filter(pl.col("slice") == "all")["passed"].to_list() == [150]
    assert 150 <= len(loopback.requests) <= 150 + 2 * 8
    assert len(list((rows.store / "runs").iterdir())) == 1


def test_a_full_disk_ends_the_run_with_a_remedy_and_loses_nothing(loopback: Loopback, tmp_path: Path) -> None:
    earlier = assay.run(
        _write_answer(tmp_path / "stored.jsonl"), evaluators="ExactMatch", store=tmp_path / "store"
    )
    loopback.script([], after={"reply": "ok" + " and so on" * 200})
    rows = Rows(tmp_path, loopback, 100)
    _, err = (process := rows.start(limit=SMALL_FILES)).communicate(timeout=60)
    assert process.returncode == 3, err
    assert "File too large" in err
    assert "--resume" in err
    assert str(rows.store) in err
    names = [path.name for path in rows.store.rglob("*") if path.is_file()]
    assert not [name for name in names if name.endswith(".tmp")]
    assert assay.query("select count(*) as n from scores", store=rows.store)["n"].to_list() == [1]
    asked = len(loopback.requests)
    assert 0 < asked < 100
    run = rows.finish()
    assert (run.info["status"], run.samples.height) == ("complete", 100)
    assert len(loopback.requests) <= 100 + 2 * 8
    assert assay.get_run(earlier.run_id, store=rows.store).scores.height == 1


def _write_answer(path: Path) -> Path:
    path.write_text('{"id":"a","query":"q","response":"x","ground_truth":"x"}\n', encoding="utf-8")
    return path
