"""A server that limits requests: how near does assay come, how much is refused, how soon does it follow?

Usage: limits.py [ROWS]; the limit is 50 requests a second, then 25, then 50 again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

SERVER = Path(__file__).with_name("model_server.py")
PHASES = ((0.0, 50), (25.0, 25), (50.0, 50))  # second, limit
EVERY_S = 5.0


def main(rows: int) -> None:
    """Print what was answered and refused, span by span."""
    with subprocess.Popen(
        [sys.executable, SERVER, "0.05", "50"], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        ended = threading.Event()
        watcher = threading.Thread(target=watch, args=(url, ended))
        try:
            run_rows(url, rows, watcher)
        finally:
            ended.set()
            watcher.join()
            server.kill()


def run_rows(url: str, rows: int, watcher: threading.Thread) -> None:
    """Answer all rows and print the account."""
    import assay

    os.environ["OPENAI_API_KEY"] = "sk-bench-0123456789"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.jsonl"
        lines = (
            json.dumps({"id": f"r{n}", "query": f"question {n}", "ground_truth": "x"}) for n in range(rows)
        )
        data.write_text("\n".join(lines), encoding="utf-8")
        watcher.start()
        began = time.monotonic()
        run = assay.run(
            data,
            model="m",
            base_url=f"{url}/v1",
            evaluators="Contains",
            store=Path(folder) / "s",
            engine="local",
        )
        took = time.monotonic() - began
        asked = fetch(url, "count")
        share = asked["refused"] / asked["requests"]
        print(f"{run.info['samples']} answers, {run.info['samples_error']} errors in {took:.1f} s")
        print(f"{asked['requests']} requests, {asked['refused']} refused ({share:.1%})")


def watch(url: str, ended: threading.Event) -> None:
    """Change the limit as `PHASES` say, and print the rate of every span."""
    began, before, phase = time.monotonic(), fetch(url, "count"), 0
    while not ended.wait(EVERY_S):
        now = time.monotonic() - began
        asked = fetch(url, "count")
        answered, refused = (asked.get(name, 0) - before.get(name, 0) for name in ("answered", "refused"))
        print(
            f"{now:5.0f} s  limit {PHASES[phase][1]}  {answered / EVERY_S:5.1f} answers/s  {refused} refused"
        )
        before = asked
        if phase + 1 < len(PHASES) and now >= PHASES[phase + 1][0]:
            phase += 1
            fetch(url, f"limit/{PHASES[phase][1]}")


def fetch(url: str, what: str) -> dict[str, Any]:
    """Ask the server for something."""
    with urllib.request.urlopen(f"{url}/{what}") as answer:  # noqa: S310 - our own server
        return json.load(answer)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 3_000)
