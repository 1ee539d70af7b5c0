"""Random and mutated files given to every reader, for as long as asked.

Run by `make fuzz`: python tests/fuzz/readers.py SECONDS [SEED]. A reader may refuse a file with an error of
assay's own. It may not raise anything else, hang, lose a row silently (rows read and rows refused are the
lines of the file), read other rows when the blocks are small, or keep an `item_json` that is not JSON.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import zstandard
from polars.testing import assert_frame_equal

from assay.config import Reading
from assay.datasets import files, json_lines
from assay.datasets.reader import find_datasets
from assay.errors import AssayError, ConfigError
from transforms.items import build_items

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).parents[2]
LIMIT_S = 30
SUFFIXES = (".jsonl", ".json", ".csv", ".tsv", ".ndjson", ".parquet", ".arrow")
SCRAPS = (
    *(
        text.encode()
        for text in ('"', "\\", "{", "}", "[", "]", ",", ":", "\n", "\r\n", "\r", "\0", ";", "\t", "'", "//")
    ),
    *(
        text.encode()
        for text in ("NaN", "null", "-0", "1e999", '"id":', "\\u0022", "\\ud83d", "\u2028", "9" * 40)
    ),
    *(
        text.encode()
        for text in ('"turns":[', '"evaluators":{}', "[" * 300, '{"messages":[{"role":"user"}]}')
    ),
    *(b"\xff", b"\xc3", b"\xef\xbb\xbf", b"\xff\xfe"),
)
KEYS = (
    *("id", "query", "response", "ground_truth", "context", "messages", "tags", "tool_calls"),
    *("tool_definitions", "test_case_description", "simulation_configuration", "a.b", "", "ü", "item"),
)


@dataclass(frozen=True)
class Case:
    """One file and how it is read."""

    name: str
    data: bytes
    reading: Reading


def collect_corpus() -> list[tuple[str, bytes]]:
    """Return suffix and content of the sample files and of those that broke other tools."""
    folders = (ROOT / "data", ROOT / "tests" / "golden" / "field")
    paths = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    tables = [(path.suffix, path.read_bytes()[:20_000]) for path in paths if path.suffix in SUFFIXES]
    frame = pl.DataFrame({"id": ["a", "b"], "query": ["q", None], "n": [1.5, None], "tags": [["x"], []]})
    for suffix, write in ((".parquet", frame.write_parquet), (".arrow", frame.write_ipc)):
        buffer = io.BytesIO()
        write(buffer)
        tables += [(suffix, buffer.getvalue())] * 4
    return tables


def make_value(draw: random.Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kind = draw.randrange(9 if depth < 4 else 6)
    if kind == 0:
        return draw.choice((None, True, False))
    if kind in (1, 2):
        return draw.choice((0, -1, 1.5, 1e300, 10**25, draw.randrange(-(2**63), 2**63), draw.random()))
    if kind in (3, 4, 5):
        return "".join(draw.choices('ab "\\\n\t{}[],:;éß答😀\u2028\0', k=draw.randrange(12)))
    if kind == 6:
        return [make_value(draw, depth + 1) for _ in range(draw.randrange(4))]
    if kind == 7:
        return [
            {"role": draw.choice(("user", "assistant", "tool", 1)), "content": make_value(draw, depth + 2)}
        ]
    return {draw.choice(KEYS): make_value(draw, depth + 1) for _ in range(draw.randrange(4))}


def make_rows(draw: random.Random) -> bytes:
    """Return JSON lines, most of them good."""
    rows = [
        json.dumps(
            {draw.choice(KEYS): make_value(draw) for _ in range(draw.randrange(6))},
            ensure_ascii=draw.random() < 0.5,
        )
        for _ in range(draw.randrange(1, 60))
    ]
    return draw.choice(("\n", "\r\n", "\n\n")).join(rows).encode()


def mutate(draw: random.Random, data: bytes, corpus: list[tuple[str, bytes]]) -> bytes:
    """Damage some bytes at a few places."""
    changed = bytearray(data)
    for _ in range(draw.randrange(5)):
        at = draw.randrange(len(changed) + 1)
        end = min(len(changed), at + draw.choice((1, 1, 2, 8, 64, 512)))
        match draw.randrange(5):
            case 0:
                changed[at:at] = draw.choice(SCRAPS)
            case 1:
                del changed[at:end]
            case 2:
                changed[at:end] = draw.randbytes(end - at)
            case 3:
                changed[at:at] = changed[at:end]
            case _:
                _, other = draw.choice(corpus)
                start = draw.randrange(len(other) + 1)
                changed[at:at] = other[start : start + draw.randrange(200)]
    return bytes(changed)


def make_case(draw: random.Random, corpus: list[tuple[str, bytes]]) -> Case:
    """Return a case: generated or taken from the corpus, damaged, sometimes compressed or misnamed."""
    suffix, data = (".jsonl", make_rows(draw)) if draw.random() < 0.4 else draw.choice(corpus)
    suffix = draw.choice(SUFFIXES) if draw.random() < 0.2 else suffix
    data = mutate(draw, data, corpus)
    pack = draw.random()
    if pack < 0.05:
        data = mutate(draw, gzip.compress(data), corpus) if draw.random() < 0.5 else gzip.compress(data)
    elif pack < 0.1:
        data = zstandard.compress(data)
    reading = Reading(
        lenient=draw.random() < 0.2,
        strict=draw.random() < 0.1,
        allow_empty=True,
        prefer=draw.choice((None, None, "messages", "query")),
        json_columns=draw.choice(((), (), (), ("query",), ("context", "messages"))),
        encoding=draw.choice((None, None, None, None, "cp1252", "utf-16", "latin-1")),
        on_bad_row=draw.choice(("fail", "quarantine", "quarantine")),
    )
    return Case(f"case{suffix}", data, reading)


@contextmanager
def small_blocks(size: int) -> Generator[None]:
    """Read in blocks of so many bytes."""
    before = files.CHUNK_BYTES, json_lines.PIECE_BYTES, json_lines.BLOCK_BYTES
    files.CHUNK_BYTES = json_lines.PIECE_BYTES = json_lines.BLOCK_BYTES = size
    try:
        yield
    finally:
        files.CHUNK_BYTES, json_lines.PIECE_BYTES, json_lines.BLOCK_BYTES = before


def read(path: Path, reading: Reading) -> tuple[pl.DataFrame | None, int]:
    """Return the rows of a file and how many were refused; None for a file that is refused whole."""
    try:
        (found,) = find_datasets([str(path)], reading)
        dataset = found.open()
        frames = list(dataset.blocks)
    except AssayError as error:
        if not str(error).strip():
            raise AssertionError("an error without a message") from error
        return None, 0
    rows = pl.concat(frames) if frames else pl.DataFrame()
    return rows, len(dataset.faults)


def check(case: Case, folder: Path) -> bool:
    """Read one case and judge what came of it; return whether rows came of it."""
    path = folder / case.name
    path.write_bytes(case.data)
    rows, refused = read(path, case.reading)
    with small_blocks(37):
        again, refused_again = read(path, case.reading)
    if (rows is None) != (again is None) or refused != refused_again:
        raise AssertionError("small blocks judge the file otherwise")
    if rows is None or again is None or rows.is_empty():
        return False
    assert_frame_equal(rows, again)
    for text in rows["item_json"]:
        json.loads(text)
    _count_lines(case, rows, refused)
    try:
        build_items([rows], {})
    except ConfigError as error:
        if "id" not in str(error):
            raise AssertionError(str(error)) from error
    return True


def _count_lines(case: Case, rows: pl.DataFrame, refused: int) -> None:
    """Compare what was read and refused with the lines of a plain file of JSON lines."""
    plain = case.name.endswith((".jsonl", ".ndjson")) and case.reading.encoding is None
    if not plain or case.data[:2] in (b"\x1f\x8b", b"\x28\xb5", b"\xff\xfe", b"\xfe\xff"):
        return
    lines = case.data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    there = sum(1 for line in lines if line.strip(b" \t\r\n"))
    if rows.height + refused != there:
        raise AssertionError(f"{there} lines, but {rows.height} rows and {refused} refused")


def _stop(*_: object) -> None:
    raise TimeoutError(f"no end after {LIMIT_S} s")


def fuzz(seconds: float, seed: int) -> tuple[int, int]:
    """Check random cases for so long and return how many, and how many of them gave rows.

    Raises:
        AssertionError: A case broke a promise; its file is kept, and named in a note.
    """
    corpus = collect_corpus()
    began, cases, good = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() - began < seconds:
            case = make_case(random.Random(f"{seed} {cases}"), corpus)  # noqa: S311 - repeatable, not secret
            signal.alarm(LIMIT_S)
            try:
                good += check(case, Path(folder))
            except Exception as error:
                kept = Path(tempfile.mkdtemp(prefix="assay-fuzz-")) / case.name
                kept.write_bytes(case.data)
                error.add_note(f"seed {seed}, case {cases}: {kept} with {case.reading!r}")
                raise
            finally:
                signal.alarm(0)
            cases += 1
    return cases, good


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _stop)
    start = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    done, useful = fuzz(float(sys.argv[1]), start)
    sys.stdout.write(f"{done} files, {useful} of them gave rows; no promise broken\n")
