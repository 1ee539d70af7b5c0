from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.api import get_run

if TYPE_CHECKING:
    from tests.conftest import Loopback

ROOT = Path(__file__).parents[2]
HEAVY = ("polars", "pyarrow", "duckdb", "openai", "prefect", "pydantic", "cyclopts", "rich")


def start(*tokens: object, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "assay", *map(str, tokens)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    )


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


class Hold:
    """A step that answers at once, but lets the third question wait until it is released."""

    def __init__(self) -> None:
        self.waiting, self.released = threading.Event(), threading.Event()

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        if "q2" in json.dumps(body):
            self.waiting.set()
            self.released.wait(30)
        return {"reply": "x"}


@pytest.mark.usefixtures("api_key")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_commits_what_is_finished_as_partial(
    tmp_path: Path, loopback: Loopback, number: signal.Signals, code: int
) -> None:
    hold = Hold()
    loopback.script([], after=hold)
    data = tmp_path / "d.jsonl"
    data.write_text("".join(f'{{"id":"{n}","query":"q{n}","ground_truth":"x"}}\n' for n in range(4)))
    tokens = [
        "--model",
        "m",
        "--base-url",
        loopback.base_url,
        "--evaluators",
        "ExactMatch",
        "--batch-size",
        2,
    ]
    process = start("run", data, *tokens, "--store", tmp_path / "s")
    assert hold.waiting.wait(30)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    hold.released.set()
    assert process.returncode == code, err
    assert "committed as partial" in err
    run = get_run(store=tmp_path / "s")
    assert (run.info["status"], run.scores["item_id"].to_list()) == ("partial", ["0", "1"])
