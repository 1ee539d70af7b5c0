from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

import orjson
import polars as pl
import pytest

from transforms.mapping import map_fields
from transforms.templates import parse_template

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bench

ROWS = 200_000
BLOCK = 10_000
WORDS = ["the", "system", "returns", "policy", "invoice", "order", "customer", "refund", "in", "Zürich"]
T = TypeVar("T")


def clock(work: Callable[[], T]) -> tuple[T, float]:
    """Return the result and the least seconds of three attempts."""
    seconds: list[float] = []
    results: list[T] = []
    for _ in range(3):
        began = time.perf_counter()
        results = [work()]
        seconds.append(time.perf_counter() - began)
    return results[0], min(seconds)


def write_rows(count: int, *, nested_first: bool) -> list[bytes]:
    """Return JSON rows of about 600 bytes; responses hold escaped line breaks."""
    chance = random.Random(1)  # noqa: S311 - the same rows in every run

    def text(size: int) -> str:
        return " ".join(chance.choices(WORDS, k=size // 6))

    rows: list[bytes] = []
    for n in range(count):
        texts = {"id": f"r{n}", "query": text(70), "response": f"{text(120)}.\n{text(60)}"}
        texts |= {"ground_truth": text(90), "context": text(100)}
        meta = {"meta": {"topic": chance.choice(WORDS), "level": n % 5, "score": n / 7}}
        rows.append(orjson.dumps(meta | texts if nested_first else texts | meta))
    return rows


def read_by_loop(rows: list[bytes]) -> pl.DataFrame:
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    for row in rows:
        value = orjson.loads(row)
        for column, found in zip(
            columns, (value["query"], value["ground_truth"], value["meta"]["topic"]), strict=True
        ):
            column.append(found)
    return pl.DataFrame(dict(zip(("query", "expected_response", "context"), columns, strict=True)))


SOLE = {
    "query": "{{item.query}}",
    "expected_response": "{{item.ground_truth}}",
    "context": "{{item.meta.topic}}",
}
MIXED = {"query": "Topic {{item.meta.topic}}: {{item.query}}\nGold: {{item.ground_truth}}"}


@pytest.mark.parametrize("nested_first", [False, True])
@pytest.mark.parametrize("texts", [SOLE, MIXED])
def test_three_placeholders_beside_a_loop(texts: dict[str, str], nested_first: bool) -> None:
    rows = write_rows(ROWS, nested_first=nested_first)
    frame = pl.Series("item_json", rows, dtype=pl.Binary).cast(pl.String).to_frame()
    mapping = {field: parse_template(text, where=field) for field, text in texts.items()}
    blocks = [frame.slice(start, BLOCK) for start in range(0, ROWS, BLOCK)]
    mapped, columns = clock(lambda: pl.concat([map_fields(block, mapping, mapping) for block in blocks]))
    looped, loop = clock(lambda: read_by_loop(rows))
    assert mapped["error_code"].null_count() == ROWS
    if texts is SOLE:
        assert mapped.select(*SOLE).equals(looped)
    size = sum(map(len, rows)) // ROWS
    what = f"{'mixed text' if texts is MIXED else 'sole'}, nested {'first' if nested_first else 'last'}"
    print(f"\n{what}: {ROWS / columns:,.0f} rows/s of {size} bytes, {loop / columns:.2f} x an orjson loop")
