"""The call ledger at size: appending, indexing, opening, looking up, each in a process of its own.

Run by hand: python tests/bench/ledger.py ENTRIES [FOLDER]; a thousand segments, deleted afterwards.
"""

from __future__ import annotations

import hashlib
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from assay.store.layout import RunFolder, Store
from assay.store.ledger import open_segment
from assay.store.lines import write_line
from assay.store.past import open_past

if TYPE_CHECKING:
    from assay.store.lines import JsonObject
    from assay.store.past import PastCalls

SEGMENTS = 1000
APPENDS = 20_000  # through the ledger itself; the rest is written in bulk
LOOKUPS = 20_000
PAYLOAD: JsonObject = {
    "at": "2026-11-30T15:45:00.123+00:00",
    "reply": {
        "text": "The refund is paid within fourteen days. " * 8,
        "model": "gpt-5-mini-2026-08-07",
        "finish_reason": "stop",
        "usage": {"input_tokens": 412, "output_tokens": 96, "cost_usd": 0.000217},
        "attempts": 1,
        "latency_ms": 812.4,
    },
}


def name_key(number: int) -> str:
    """Return the key of an entry."""
    return hashlib.sha256(b"%d" % number).hexdigest()


def write_bulk(folder: RunFolder, entries: int) -> None:
    """Write the segments of a run without the ledger."""
    rest = write_line("0" * 64, PAYLOAD)[72:]
    folder.calls.mkdir(parents=True)
    for index in range(SEGMENTS):
        numbers = range(index * entries // SEGMENTS, (index + 1) * entries // SEGMENTS)
        data = b"".join(b'{"key":"' + name_key(n).encode() + rest for n in numbers)
        folder.segment(index).write_bytes(data)


def measure_append(root: Path) -> None:
    """Append to one segment and open it again."""
    folder = RunFolder(Store(root), "append")
    keys = [name_key(n) for n in range(APPENDS)]
    with open_segment(folder, 0) as segment:
        before = time.perf_counter()
        for key in keys:
            segment.append(key, PAYLOAD)
        seconds = time.perf_counter() - before
    print(f"append          {seconds / APPENDS * 1e6:8.1f} us/entry")
    before = time.perf_counter()
    open_segment(folder, 0).close()
    print(f"open segment    {time.perf_counter() - before:8.2f} s for {APPENDS:,} entries")


def measure_open(root: Path, label: str) -> None:
    """Open all calls of a run; the first time it makes the sidecar."""
    folder, memory = RunFolder(Store(root), "bulk"), read_peak()
    before = time.perf_counter()
    with open_past([folder]) as calls:
        seconds = time.perf_counter() - before
        print(f"{label:15} {seconds:8.2f} s, peak {read_peak():.0f} MB of which {memory:.0f} before")
        if label == "open":
            measure_lookups(folder, calls)


def measure_lookups(folder: RunFolder, calls: PastCalls) -> None:
    """Look keys up in random order: from the disk, from the page cache, and some that are not there."""
    count = len(calls)
    draw = random.Random(1)  # noqa: S311 - data for a benchmark
    present = [name_key(draw.randrange(count)) for _ in range(LOOKUPS)]
    for path in folder.calls.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    time_lookups("hit, from disk", calls, present[: LOOKUPS // 10])
    time_lookups("hit", calls, present[: LOOKUPS // 10])
    time_lookups("hit, elsewhere", calls, present)
    time_lookups("miss", calls, [name_key(-n) for n in range(1, LOOKUPS)])
    print(f"after lookups   {read_peak():8.0f} MB peak")


def time_lookups(label: str, calls: PastCalls, keys: list[str]) -> None:
    """Print mean, median and 99th percentile of single lookups, and the time of the processor."""
    times: list[float] = []
    found, cpu = 0, time.process_time()
    for key in keys:
        before = time.perf_counter()
        found += calls.find(key) is not None
        times.append((time.perf_counter() - before) * 1e6)
    cpu = (time.process_time() - cpu) / len(keys) * 1e6
    times.sort()
    if found != (0 if label == "miss" else len(keys)):
        raise AssertionError(f"{label}: {found} of {len(keys)} found")
    mean, middle, late = sum(times) / len(times), times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"{label:15} {mean:8.1f} us, p50 {middle:.1f}, p99 {late:.1f}, CPU {cpu:.1f}")


def read_peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_all(entries: int, parent: str | None) -> None:
    """Write the entries and measure every step in a new process."""
    with tempfile.TemporaryDirectory(dir=parent) as root:
        before = time.perf_counter()
        write_bulk(RunFolder(Store(Path(root)), "bulk"), entries)
        size = len(write_line(name_key(0), PAYLOAD))
        print(
            f"{entries:,} entries of {size} bytes, written in {time.perf_counter() - before:.0f} s",
            flush=True,
        )
        for step in ("append", "index and open", "open"):
            subprocess.run([sys.executable, __file__, "--step", step, root], check=True)


if __name__ == "__main__":
    if sys.argv[1] != "--step":
        run_all(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
    elif sys.argv[2] == "append":
        measure_append(Path(sys.argv[3]))
    else:
        measure_open(Path(sys.argv[3]), sys.argv[2])
