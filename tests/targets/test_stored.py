"""Stored answers become samples without a call."""

from __future__ import annotations

from typing import Any

import polars as pl

from assay.contracts.json_text import dump_json
from assay.targets.contract import Work
from assay.targets.stored import StoredTarget

CALL: dict[str, Any] = {"type": "tool_call", "tool_call_id": "c1", "name": "find", "arguments": {}}


class NoRecorder:
    """Stored answers are looked up nowhere."""

    def find(self, kind: str, request: str) -> tuple[str, None]:
        raise AssertionError(kind + request)

    def keep(self, key: str, outcome: object) -> None:
        raise AssertionError(key, outcome)


async def fetch(items: pl.DataFrame) -> tuple[pl.DataFrame, list[bool]]:
    done: list[bool] = []
    samples = await StoredTarget().fetch_samples(items, Work(NoRecorder(), done.append))
    return samples, done


def build_items(**columns: list[str | None]) -> pl.DataFrame:
    height = len(columns["response"])
    types = dict.fromkeys(columns, pl.String)
    return pl.DataFrame(columns, schema_overrides=types).with_columns(
        item_id=pl.Series([f"i{place}" for place in range(height)], dtype=pl.String),
        turn=pl.lit(0, pl.Int32),
    )


async def test_answer_is_taken_and_a_missing_one_is_an_error() -> None:
    samples, done = await fetch(build_items(response=["yes", None, ""]))
    assert samples["output_text"].to_list() == ["yes", None, ""]
    assert samples["status"].to_list() == ["ok", "error", "ok"]
    assert samples["error_code"].to_list() == [None, "no_response", None]
    assert samples["error_message"].to_list() == [None, "no stored response", None]
    assert samples["attempts"].to_list() == [0, 0, 0]
    assert done == [True, False, True]


async def test_output_items_give_calls_and_the_text_where_no_response_stands() -> None:
    said = dump_json([{"role": "assistant", "content": [{"type": "text", "text": "from items"}, CALL]}])
    samples, _ = await fetch(build_items(response=["own", None, None], output_items_json=[said, said, None]))
    assert samples["output_text"].to_list() == ["own", "from items", None]
    assert samples["output_items_json"].to_list() == [said, said, None]
    assert samples["tool_calls_json"].to_list() == [dump_json([CALL])] * 2 + [None]
    assert samples["status"].to_list() == ["ok", "ok", "error"]


async def test_no_items_give_no_samples() -> None:
    samples, done = await fetch(build_items(response=[]))
    assert samples.height == 0
    assert done == []
