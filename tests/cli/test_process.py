from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from assay.api import get_run

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
def test_a_signal_commits_what_is_finished_as_partial(
    stoppable: StoppableRun, number: signal.Signals, code: int
) -> None:
    returned, err = stoppable.stop_by(number)
    assert returned == code, err
    assert "committed as partial" in err
    run = get_run(store=stoppable.store)
    assert (run.info["status"], run.scores["item_id"].to_list()) == ("partial", ["0", "1"])
