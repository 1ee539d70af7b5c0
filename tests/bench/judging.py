"""Judging: verdicts a second of the raw client and of assay end to end, against one server, in one run.

Usage: judging.py [ROWS [CONCURRENCY ...]]
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from calls import SERVER, environment, tell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from openai import AsyncOpenAI

VERDICT = '{"reason": "The answer deals with the question fully and to the point.", "score": 5}'
TEXT = "The manual says how to reset the device: hold both buttons for ten seconds, then let go of them. " * 4


def main(rows: int, limits: list[int]) -> None:
    """Print a line per client and limit."""
    command = [sys.executable, SERVER, "0.05", "0", VERDICT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        try:
            for limit in limits:
                raw, own = (measure(kind, url, rows, limit) for kind in ("raw", "assay"))
                print(f"{limit} in flight: assay makes {own / raw:.2f} of the calls/s of the raw client")
        finally:
            server.kill()


def measure(kind: str, url: str, rows: int, limit: int) -> float:
    """Run one client in a process of its own, print what it took and return its calls a second."""
    command = [sys.executable, __file__, kind, url, str(rows), str(limit)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment())
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    shown = f"CPU/call {told['cpu']:.2f} ms, event loop {told['loop']:.2f} ms, peak {told['rss']:.0f} MB"
    print(f"{kind:6} {limit:4} {told['calls']:7.0f} calls/s  {shown}", flush=True)
    return told["calls"]


def run_raw(url: str, rows: int, limit: int) -> None:
    """Put each row into a prompt, call the client with a fixed number of workers, and parse the verdict."""
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    limits = httpx2.Limits(max_connections=limit, max_keepalive_connections=limit)
    waiting = iter(range(rows))

    async def work_all() -> list[int]:
        http = DefaultAioHttpClient(limits=limits)
        async with AsyncOpenAI(base_url=f"{url}/v1", max_retries=0, http_client=http) as client:
            done = await asyncio.gather(*(judge_rows(client, waiting) for _ in range(limit)))
        return [score for scores in done for score in scores]

    began, cpu = time.perf_counter(), time.process_time()
    assert len(asyncio.run(work_all())) == rows
    tell(rows, time.perf_counter() - began, time.process_time() - cpu, time.thread_time())


async def judge_rows(client: AsyncOpenAI, rows: Iterator[int]) -> list[int]:
    """Judge rows one after the other, as the client's documentation shows, and return their scores."""
    from evaluators.prompt_files import read_prompt

    scores: list[int] = []
    system = str(read_prompt("relevance").rubric.system["content"])
    for row in rows:
        user = f"<query>\nHow is it reset? {row}\n</query>\n\n<response>\n{TEXT}\n</response>"
        answer = await client.chat.completions.create(
            model="m",
            messages=[{"role": "system", "content": system}, {"role": "user", "content": user}],
            temperature=0,
            max_tokens=800,
            response_format={"type": "json_object"},
        )
        scores.append(json.loads(answer.choices[0].message.content or "")["score"])
    return scores


def run_assay(url: str, rows: int, limit: int) -> None:
    """Judge stored answers: dataset, prompt, call, ledger, verdict, Parquet, commit."""
    import assay

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.jsonl"
        with data.open("w", encoding="utf-8") as file:
            for row in range(rows):
                item = {"id": f"r{row}", "query": f"How is it reset? {row}", "response": TEXT}
                file.write(json.dumps(item) + "\n")
        began, cpu, loop = time.perf_counter(), time.process_time(), time.thread_time()
        run = assay.run(
            data,
            judge="m",
            judge_base_url=f"{url}/v1",
            evaluators="Relevance",
            concurrency=limit,
            store=Path(folder) / "store",
            engine="local",
        )
        took = time.perf_counter() - began, time.process_time() - cpu, time.thread_time() - loop
        assert run.info["passed"] == rows
        tell(rows, *took)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in {"raw", "assay"}:
        {"raw": run_raw, "assay": run_assay}[sys.argv[1]](sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        given = [int(text) for text in sys.argv[1:]]
        main(given[0] if given else 12_000, given[1:] or [128])
