"""Parquet written: typed columns where values agree, JSON text that says so where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import Reading
from assay.contracts.json_text import Number, dump_json, parse_json
from assay.datasets.columnar import PARQUET
from assay.datasets.files import Input
from assay.datasets.reader import Found, read_document
from assay.datasets.writing.catalog import find_writer
from assay.datasets.writing.conversion import convert_dataset
from assay.datasets.writing.parquet import JSON_COLUMNS

if TYPE_CHECKING:
    from tests.datasets.writing.conftest import Workshop

DATA = Path(__file__).parents[3] / "data"
ALIKE = st.sampled_from(["\0", "null", '"', "1"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | ALIKE
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: Number(repr(x)))
ODD = st.sampled_from(["1.50", "-0.0", "1E400", "1e2", "9223372036854775808", "-9223372036854775808"])
ODD_NUMBERS = ODD.map(lambda text: int(text) if text.lstrip("-").isdigit() else Number(text))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | ODD_NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
PATTERN = "^a.*$"  # a name that expressions take for a pattern
NAMES = st.sampled_from(["x", "id", "", "*", PATTERN, "Ünï", "context"])
KINDS = st.sampled_from([VALUES, st.none() | st.booleans(), st.none() | NUMBERS, st.lists(TEXTS, max_size=2)])
ROWS = st.lists(NAMES, max_size=3, unique=True).flatmap(
    lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, VALUES)), min_size=1, max_size=4)
) | KINDS.flatmap(lambda values: st.lists(st.fixed_dictionaries({"x": values}), min_size=1, max_size=4))


def _read(path: Path) -> tuple[pl.DataFrame, set[str]]:
    metadata = pl.read_parquet_metadata(path)
    nested = parse_json(metadata.get(JSON_COLUMNS, "[]"))
    assert isinstance(nested, list)
    return pl.read_parquet(path), {str(name) for name in nested}


def _list_values(path: Path) -> list[dict[str, Any]]:
    frame, nested = _read(path)
    return [
        {
            name: parse_json(value) if name in nested and value is not None else value
            for name, value in row.items()
        }
        for row in frame.rows(named=True)
    ]


def _full(rows: list[dict[str, Any]]) -> list[str]:
    """Rows with all fields of all, nulls left out, numbers as they are spelt."""
    return [dump_json({name: row[name] for name in sorted(row) if row[name] is not None}) for row in rows]


@given(rows=ROWS)
def test_any_value_of_any_field_is_in_the_file(workshop: Any, rows: list[dict[str, Any]]) -> None:
    with workshop() as shop:
        written = shop.convert(shop.put("rows.jsonl", rows), "parquet")
        assert _full(_list_values(written.out)) == _full(rows)
        assert written.account == {}


@given(rows=ROWS.filter(lambda rows: not any(PATTERN in row for row in rows)))
def test_any_value_of_any_field_comes_back_as_a_row(workshop: Any, rows: list[dict[str, Any]]) -> None:
    with workshop() as shop:
        written = shop.convert(shop.put("rows.jsonl", rows), "parquet")
        reading = Reading(json_columns=tuple(_read(written.out)[1]), allow_empty=True)
        found = Found(Input(written.out, "out.parquet", reading), PARQUET)
        convert_dataset(found.open(), find_writer("foundry"), shop.folder / "back.jsonl")
        lines = (shop.folder / "back.jsonl").read_bytes().decode().split("\n")[:-1]
        assert [_fill(parse_json(line), rows) for line in lines] == [_fill(row, rows) for row in rows]


def _fill(row: Any, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """A row with every field of all rows, and the two that a table has at least."""
    return {"id": None, "query": None, **{name: None for each in rows for name in each}, **row}


def test_columns_have_types_where_all_values_agree(bench: Workshop) -> None:
    rows: list[Any] = [
        {"query": "q", "n": 1, "x": Number("0.5"), "yes": True, "tags": ["a"]}
        | {"mixed": 1, "odd": Number("1.50")},
        {"query": None, "n": None, "tags": [], "mixed": "1", "big": 2**63, "deep": {"a": 1}},
    ]
    written = bench.convert(bench.put("rows.jsonl", rows), "parquet")
    frame, nested = _read(written.out)
    assert dict(frame.schema) == {
        "tags": pl.List(pl.String),
        "query": pl.String,
        "n": pl.Int64,
        "x": pl.Float64,
        "yes": pl.Boolean,
        "mixed": pl.String,
        "odd": pl.String,
        "big": pl.String,
        "deep": pl.String,
    }
    assert nested == {"mixed", "odd", "big", "deep"}
    assert frame["mixed"].to_list() == ["1", '"1"']
    assert frame["odd"].to_list() == ["1.50", None]


def test_a_kind_that_changes_late_holds_for_the_whole_file(bench: Workshop) -> None:
    rows: list[dict[str, Any]] = [{"query": "x" * 1000, "n": n, "t": ["a"]} for n in range(3000)]
    rows.append({"query": "q", "n": "late", "t": None, "new": False})
    frame, nested = _read(bench.convert(bench.put("rows.jsonl", rows), "parquet").out)
    assert nested == {"n"}
    assert frame["n"].to_list() == [*map(str, range(3000)), '"late"']
    assert frame["new"].to_list() == [None] * 3000 + [False]
    assert frame["t"].to_list() == [["a"]] * 3000 + [None]


def test_conversations_and_messages_are_json_text(bench: Workshop) -> None:
    path = bench.put("rows.csv", 'id,messages\n1,"[{""role"":""user"",""content"":""hi""}]"\n')
    frame, nested = _read(bench.convert(path, "parquet").out)
    assert nested == {"messages"}
    assert frame["messages"].to_list() == ['[{"role":"user","content":"hi"}]']


def test_a_file_without_rows_has_columns(bench: Workshop) -> None:
    assert _read(bench.convert(bench.put("rows.jsonl", []), "parquet").out)[0].schema == {
        "id": pl.String,
        "query": pl.String,
    }


@pytest.mark.parametrize("source", ["foundry/conversations.jsonl", "foundry/support.jsonl", "csv/faq.csv"])
def test_the_samples_are_read_back_with_the_same_rows(bench: Workshop, list_rows: Any, source: str) -> None:
    written = bench.convert(DATA / source, "parquet")
    reading = Reading(json_columns=tuple(_read(written.out)[1]))
    after = read_document(Found(Input(written.out, "out.parquet", reading), PARQUET))
    assert list_rows(after) == [
        row | {"item_json": mine["item_json"]}
        for row, mine in zip(list_rows(written.before), list_rows(after), strict=True)
    ]


def test_tags_are_read_back_as_tags(bench: Workshop) -> None:
    rows: list[Any] = [{"query": "q", "tags": ["a", "b"]}, {"query": "r", "tags": []}, {"query": "s"}]
    written = bench.convert(bench.put("rows.jsonl", rows), "parquet")
    after = read_document(Found(Input(written.out, "out.parquet"), PARQUET))
    assert after.rows["tags"].to_list() == [["a", "b"], [], None]
