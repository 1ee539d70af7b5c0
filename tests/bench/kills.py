"""Kill a run again and again: is every row there once, and how much was paid for twice?

Usage: kills.py [ROWS [KILLS [SEED]]]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import assay

CONCURRENCY = 4
SERVER = Path(__file__).with_name("model_server.py")


def main(rows: int, kills: int, seed: int) -> None:
    """Kill `kills` times at random moments, finish, and print the account."""
    dice = random.Random(seed)  # noqa: S311 - moments to kill at, no secrets
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen([sys.executable, SERVER, "0.05"], stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        try:
            account(Path(folder), url, rows, [dice.uniform(1.4, 3.2) for _ in range(kills)])
        finally:
            server.kill()


def account(folder: Path, url: str, rows: int, moments: list[float]) -> None:
    """Run, kill, resume, and compare what was asked with what is there."""
    data = folder / "rows.jsonl"
    lines = (json.dumps({"id": f"r{n}", "query": f"question {n}", "ground_truth": "x"}) for n in range(rows))
    data.write_text("\n".join(lines), encoding="utf-8")
    how = ["--concurrency", str(CONCURRENCY), "--store", str(folder / "store"), "-q"]
    first = [str(data), "--model", "m", "--base-url", f"{url}/v1", "--evaluators", "Contains", *how]
    again = ["--resume", "latest", *how]
    tokens, killed = first, 0
    for moment in moments:
        process = subprocess.Popen([sys.executable, "-m", "assay", "run", *tokens], env=environment())
        time.sleep(moment)
        process.kill()
        killed += process.wait() < 0
        tokens = again if list(folder.glob("store/runs/*/request.json")) else first
    code = subprocess.run([sys.executable, "-m", "assay", "run", *tokens], env=environment(), check=False)
    print(f"exit {code.returncode}, killed {killed} times")
    report(folder, url, f"{rows} + {CONCURRENCY} x {len(moments)}")


def report(folder: Path, url: str, allowed: str) -> None:
    """Print what is in the store, and what the server was asked."""
    run = assay.get_run(store=folder / "store")
    with urllib.request.urlopen(f"{url}/count") as answer:  # noqa: S310 - our own server
        asked = json.load(answer)
    scored = run.summary.filter(run.summary["slice"] == "all")["scored"].to_list()
    print(f"rows {run.samples.height}, distinct {run.samples['item_id'].n_unique()}, scored {scored}")
    print(f"runs {len(list(folder.glob('store/runs/*')))}, status {run.info['status']}")
    print(f"requests {asked['requests']}, at most {allowed} allowed; server: {asked}")


def environment() -> dict[str, str]:
    """Return the variables of the runs."""
    return os.environ | {"OPENAI_API_KEY": "sk-bench"}


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*(given + [1000, 10, 1][len(given) :]))
