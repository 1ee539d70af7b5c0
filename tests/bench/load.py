"""Reading JSON lines: assay beside other readers, each in a process of its own, on one generated file.

Run by `make bench-load`: python tests/bench/load.py ROWS…
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = ("id", "query", "response", "ground_truth", "context")
WORDS = [f"word{n}" for n in range(2000)] + ["Größe", "Müller", "naïve", "straße", "refund", "policy", "答え"]


def write_rows(path: Path, rows: int) -> None:
    """Write rows of about 600 bytes: four texts and a nested object."""
    draw = random.Random(1)  # noqa: S311 - data for a benchmark
    with path.open("w", encoding="utf-8") as file:
        for n in range(rows):
            texts = {
                name: " ".join(draw.choices(WORDS, k=count))
                for name, count in zip(COLUMNS[1:], (8, 20, 19, 8), strict=True)
            }
            meta = {"topic": draw.choice(("billing", "sales")), "score": n / 7, "tags": ["a", "b"], "n": n}
            file.write(json.dumps({"id": f"r{n:07d}", **texts, "meta": meta}, ensure_ascii=False) + "\n")


def read_assay(path: str) -> int:
    """Read to ITEMS: strictly, losslessly, with ids and task hashes."""
    from assay.config import RunConfig
    from assay.engine.intake import Intake

    intake = Intake(RunConfig(datasets=(path,)))
    rows = sum(items.table.height for items in intake.read_blocks())
    if intake.find_repeats():
        raise AssertionError("ids repeat")
    return rows


def read_orjson(path: str) -> int:
    """Read five columns with a plain loop, ten thousand rows at a time; the last of repeated keys wins."""
    import orjson
    import polars as pl

    rows = 0
    cells: dict[str, list[object]] = {name: [] for name in COLUMNS}
    with Path(path).open("rb") as file:
        for line in file:
            row = orjson.loads(line)
            for name, column in cells.items():
                column.append(row.get(name))
            if len(cells["id"]) == 10_000:
                rows += pl.DataFrame(cells).height
                cells = {name: [] for name in COLUMNS}
    return rows + pl.DataFrame(cells).height


def read_duckdb(path: str) -> int:
    """Read five columns as JSON values, in record batches."""
    import duckdb

    columns = ", ".join(f"{name}: 'JSON'" for name in COLUMNS)
    with duckdb.connect() as connection:
        connection.execute("set threads = 2")
        found = connection.sql(
            f"select * from read_json('{path}', format='newline_delimited', columns={{{columns}}})"  # noqa: S608 - our own file
        )
        return sum(batch.num_rows for batch in found.to_arrow_reader(10_000))


def read_polars(path: str) -> int:
    """Read five columns with a schema, in batches."""
    import polars as pl

    frame = pl.scan_ndjson(path, schema=dict.fromkeys(COLUMNS, pl.String))
    return sum(batch.height for batch in frame.collect_batches(chunk_size=10_000))


READERS: dict[str, Callable[[str], int]] = {
    "orjson": read_orjson,
    "assay": read_assay,
    "duckdb": read_duckdb,
    "polars": read_polars,
}


def measure(name: str, path: str) -> None:
    """Run one reader and print rows, seconds and peak memory."""
    READERS[name](str(Path(path).with_name("warm.jsonl")))
    before, cpu = time.perf_counter(), time.process_time()
    rows = READERS[name](path)
    seconds, cpu = time.perf_counter() - before, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rows": rows, "seconds": seconds, "cpu": cpu, "peak": peak}))


def compare(rows: int) -> None:
    """Print one line per reader for a file of so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        write_rows(path, rows)
        write_rows(path.with_name("warm.jsonl"), 100)
        size = path.stat().st_size / rows
        print(f"\n{rows:,} rows of {size:.0f} bytes\nreader      rows/s  of orjson  CPU us/row  peak MB")
        base = 0.0
        for name in READERS:
            done = subprocess.run(
                [sys.executable, __file__, "--reader", name, str(path)], check=True, capture_output=True
            )
            found = json.loads(done.stdout.splitlines()[-1])
            rate = found["rows"] / found["seconds"]
            base = base or rate
            cpu = found["cpu"] / found["rows"] * 1e6
            print(
                f"{name:8} {rate:>9,.0f}  {rate / base:>9.2f}  {cpu:>10.2f}  {found['peak']:>7.0f}",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--reader"]:
        measure(*sys.argv[2:4])
    else:
        for count in sys.argv[1:]:
            compare(int(count))
