"""Items chosen by an SQL condition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polars.testing import assert_frame_equal

from assay.contracts.tables import ITEMS
from assay.errors import ConfigError
from assay.store.selection import filter_items

if TYPE_CHECKING:
    import polars as pl


@pytest.fixture
def items(writer: Any) -> pl.DataFrame:
    return writer.frame(
        ITEMS,
        {"item_id": "c", "turn": 0, "tags": ["hard", "new"], "category": "billing", "query": "Größe?"},
        {"item_id": "c", "turn": 1, "tags": ["hard"], "category": "billing"},
        {"item_id": "a", "turn": 0, "category": "returns", "source_line": 9, "query": "a 'quoted' one"},
        {"item_id": "b", "turn": 0, "tags": ["new"]},
    )


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("category = 'billing'", [0, 1]),
        ("category <> 'billing'", [2]),
        ("category is null or source_line = 9", [2, 3]),
        ("list_contains(tags, 'new')", [0, 3]),
        ("len(tags) > 0 and turn = 0", [0, 3]),
        ("query ilike '%GRÖSSE%' or query like '%''quoted''%'", [2]),
        ("item_id in (select item_id from items where turn = 1)", [0, 1]),
        ("turn = 0 -- first turns", [0, 2, 3]),
        ("true", [0, 1, 2, 3]),
        ("false", []),
    ],
)
def test_a_condition_keeps_its_rows_in_order(items: pl.DataFrame, where: str, found: list[int]) -> None:
    assert_frame_equal(filter_items(items, where), items[found])


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("categry = 'x'", "known columns: category, .*item_id"),
        ("category = ", "syntax error"),
        ("", "Parser Error"),
        ("turn = 0, turn = 1", "single expression"),
        ("turn = 0 limit 1", "modifiers"),
        ("source_line > 'abc'", "Could not convert string 'abc'"),
        ("item_id in (select run_id from scores)", "known tables: items"),
        ("exists (from 'file.parquet')", "refused: only the tables items can be read"),
    ],
)
def test_a_bad_condition_names_the_option_and_the_cause(
    items: pl.DataFrame, where: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=f"^--where: .*{message}") as caught:
        filter_items(items, where)
    assert "\n" not in str(caught.value)
    assert "__position" not in str(caught.value)


def test_no_items_stay_no_items() -> None:
    assert_frame_equal(filter_items(ITEMS.empty(), "turn = 0"), ITEMS.empty())
