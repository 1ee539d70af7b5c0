from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import assay
from assay.api import get_run
from assay.cli.app import run_app

if TYPE_CHECKING:
    from tests.conftest import StoppableRun

ROOT = Path(__file__).parents[2]
HEAVY = ("polars", "pyarrow", "duckdb", "openai", "prefect", "pydantic", "cyclopts", "rich")


def test_help_and_import_load_nothing_heavy() -> None:
    code = (
        "import sys, assay; from assay.cli.app import run_app; run_app(['--help'])\n"
        f"sys.exit(','.join(m for m in {HEAVY!r} if m in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stored_run_loads_no_client_no_server_and_no_sql() -> None:
    data = ROOT / "data/foundry/support.jsonl"
    code = (
        "import sys, tempfile; from assay.cli.app import run_app\n"
        "tokens = ['--evaluators', 'ExactMatch', '--store', tempfile.mkdtemp(), '-q']\n"
        f"run_app(['run', {str(data)!r}, *tokens])\n"
        "sys.exit(','.join(m for m in ('openai', 'prefect', 'duckdb', 'pyarrow') if m in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_lets_calls_end_and_commits_what_is_there_as_partial(
    stoppable: StoppableRun, number: signal.Signals, code: int
) -> None:
    returned, err = stoppable.stop_by(number)
    assert returned == code, err
    run = get_run(store=stoppable.store)
    assert f"committed as partial; go on with: assay run --resume {run.run_id} --store" in err
    assert run.info["status"] == "partial"
    states = run.samples.sort("item_id").select("item_id", "status", "error_code").rows()
    assert states == [*((n, "ok", None) for n in "012"), ("3", "skipped", "stopped")]
    assert run.scores.sort("item_id")["passed"].to_list() == [True] * 3 + [None]
    whole = assay.run(resume=run.run_id, store=stoppable.store)
    assert (whole.info["status"], whole.info["passed"]) == ("complete", 4)


def test_a_second_signal_ends_at_once_and_says_how_to_go_on(stoppable: StoppableRun) -> None:
    returned, err = stoppable.stop_by(signal.SIGINT, twice=True)
    assert returned == 130, err
    assert "ended at once; go on with: assay run --resume" in err
    tokens = ["run", "--resume", "latest", "--concurrency", "2", "--store", str(stoppable.store), "-q"]
    assert run_app(tokens) == 0
    whole = get_run(store=stoppable.store)
    assert (whole.info["status"], whole.info["passed"]) == ("complete", 4)
