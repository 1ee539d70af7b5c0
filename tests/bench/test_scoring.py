from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl
import pytest

import assay
from evaluators.catalog import resolve_evaluation
from evaluators.runner import run_evaluation

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bench

ROOT = Path(__file__).parents[2]
ROWS = 50_000
T = TypeVar("T")


def clock(work: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    result = work()
    return result, time.perf_counter() - began


def repeat_rows(count: int) -> pl.DataFrame:
    source = pl.read_ndjson(ROOT / "data/foundry/support.jsonl", infer_schema_length=None)
    rows = pl.concat([source] * (count // source.height + 1)).head(count)
    return rows.with_columns(id=pl.int_range(pl.len()).cast(pl.String))


def score_by_loop(answer: str, expected: str) -> float:
    """Token F1 as a plain loop would do it: lower case, white space."""
    found, wanted = Counter(answer.lower().split()), Counter(expected.lower().split())
    common = sum((found & wanted).values())
    return 2 * common / (found.total() + wanted.total()) if common else 0.0


@pytest.mark.parametrize("mode", ["unicode", "compat"])
def test_token_f1_beside_a_plain_loop(mode: str) -> None:
    rows = repeat_rows(ROWS).select("response", expected_response="ground_truth")
    fields = rows.with_columns(error_code=pl.lit(None, pl.String), error_message=pl.lit(None, pl.String))
    evaluation = resolve_evaluation("PartialMatch", {"mode": mode})
    result, columns = clock(lambda: asyncio.run(run_evaluation(evaluation, fields, None)))
    _, loop = clock(lambda: [score_by_loop(a, e) for a, e in rows.iter_rows()])
    assert result.height == ROWS
    print(f"\nPartialMatch {mode}: {ROWS / columns:,.0f} rows/s, {columns / loop:.2f} x a plain loop's time")


def test_a_whole_run_beside_reading_the_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    repeat_rows(ROWS).write_ndjson(path)
    _, reading = clock(lambda: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()])
    run, whole = clock(
        lambda: assay.run(path, evaluators="ExactMatch,PartialMatch", store=tmp_path / "store")
    )
    assert run.scores.height == 2 * ROWS
    print(f"\nwhole run: {ROWS / whole:,.0f} rows/s, {whole / reading:.1f} x the time of parsing its lines")
