"""Calls a second: the raw client and assay end to end, against one server, in one run.

Usage: calls.py [ROWS [CONCURRENCY ...]]
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

SERVER = Path(__file__).with_name("model_server.py")
PROMPT = "Answer the question of a customer who has read the manual. " * 6


def main(rows: int, limits: list[int]) -> None:
    """Print a line per client and limit."""
    with subprocess.Popen([sys.executable, SERVER, "0.05"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        try:
            for limit in limits:
                compare(url, rows, limit)
        finally:
            server.kill()


def compare(url: str, rows: int, limit: int) -> None:
    """Measure both with the same rows, each in a process of its own."""
    raw = measure("raw", url, rows, limit)
    own = measure("assay", url, rows, limit)
    share = own["calls"] / raw["calls"]
    print(f"{limit} in flight: assay makes {share:.2f} of the calls/s of the raw client", flush=True)


def measure(kind: str, url: str, rows: int, limit: int) -> dict[str, float]:
    """Run one client in a process of its own, and print what it took."""
    command = [sys.executable, __file__, kind, url, str(rows), str(limit)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment())
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    with urllib.request.urlopen(f"{url}/count") as answer:  # noqa: S310 - our own server
        most = json.load(answer)["most"]
    print(
        f"{kind:6} {limit:4} {told['calls']:7.0f} calls/s  CPU/call {told['cpu']:.2f} ms, "
        f"event loop {told['loop']:.2f} ms  peak {told['rss']:.0f} MB  (most in flight {most})",
        flush=True,
    )
    return told


def environment() -> dict[str, str]:
    """Return the variables of both clients."""
    return os.environ | {"OPENAI_API_KEY": "sk-bench-0123456789"}


def build_query(row: int) -> str:
    """Return the question of a row."""
    return f"{PROMPT}\n{row}"


def run_raw(url: str, rows: int, limit: int) -> None:
    """Call the client as its documentation shows, with a fixed number of workers."""
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    limits = httpx2.Limits(max_connections=limit, max_keepalive_connections=limit)
    waiting = iter(range(rows))

    async def work(client: AsyncOpenAI) -> None:
        for row in waiting:
            message = {"role": "user", "content": build_query(row)}
            answer = await client.chat.completions.create(model="m", messages=[message])  # pyright: ignore[reportArgumentType] - the type of a plain message
            assert answer.choices[0].message.content

    async def work_all() -> None:
        http = DefaultAioHttpClient(limits=limits)
        async with AsyncOpenAI(base_url=f"{url}/v1", max_retries=0, http_client=http) as client:
            await asyncio.gather(*(work(client) for _ in range(limit)))

    began, cpu = time.perf_counter(), time.process_time()
    asyncio.run(work_all())
    tell(rows, time.perf_counter() - began, time.process_time() - cpu, time.thread_time())


def run_assay(url: str, rows: int, limit: int) -> None:
    """Answer the rows of a dataset: request, call, ledger, Parquet, one evaluator, commit."""
    import assay

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.jsonl"
        with data.open("w", encoding="utf-8") as file:
            for row in range(rows):
                file.write(
                    json.dumps({"id": f"r{row}", "query": build_query(row), "ground_truth": "x"}) + "\n"
                )
        store = Path(folder) / "store"
        began, cpu, loop = time.perf_counter(), time.process_time(), time.thread_time()
        run = assay.run(
            data,
            model="m",
            base_url=f"{url}/v1",
            evaluators="Contains",
            concurrency=limit,
            store=store,
            engine="local",
        )
        took = time.perf_counter() - began, time.process_time() - cpu, time.thread_time() - loop
        assert run.info["samples"] == rows
        assert run.info["samples_error"] == 0
        tell(rows, *took)


def tell(rows: int, seconds: float, cpu: float, loop: float) -> None:
    """Print one line of JSON."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = {"calls": rows / seconds, "cpu": cpu / rows * 1e3, "loop": loop / rows * 1e3, "rss": peak}
    print(json.dumps(told))


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in {"raw", "assay"}:
        {"raw": run_raw, "assay": run_assay}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        given = [int(text) for text in sys.argv[1:]]
        main(given[0] if given else 12_000, given[1:] or [32, 128, 512])
