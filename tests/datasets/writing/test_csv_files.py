"""CSV written: every text comes back, and what is no text is named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import Reading
from assay.contracts.json_text import Number, parse_json
from assay.errors import InputError

if TYPE_CHECKING:
    from tests.datasets.writing.conftest import Workshop

CELLS = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
ALIKE = st.sampled_from(["=1+1", "-5", "@x", "007", "null", "😀"])
TRICKY = st.text('"\r\n,;\t\ufeff a\u2028', max_size=5) | ALIKE
JSON_NAMES = ("messages", "tool_definitions", "tool_calls", "simulation_configuration")
SEED_NAMES = ("test_case_id", "test_case_description", "test_case_category", "desired_num_turns")
NAMES = st.sampled_from(["id", "query", "response", "ground_truth", "context", "tags", "notes"]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5
).filter(lambda name: name not in {*JSON_NAMES, *SEED_NAMES, "prompt", "expected_response", "testId"})
ROWS = st.lists(st.dictionaries(NAMES, CELLS | TRICKY, max_size=4), min_size=1, max_size=5)


def _drop_nulls(row: Any) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


@given(rows=ROWS)
def test_every_text_comes_back(workshop: Any, rows: list[dict[str, str | None]]) -> None:
    with workshop() as shop:
        written = shop.convert(shop.put("rows.jsonl", rows), "csv")
        after = [parse_json(text) for text in written.after.rows["item_json"]]
        assert [_drop_nulls(row) for row in after] == [_drop_nulls(row) for row in rows]
        assert written.account == {}


@given(rows=ROWS)
def test_csv_comes_back_as_it_was(workshop: Any, list_rows: Any, rows: list[dict[str, str | None]]) -> None:
    with workshop() as shop:
        first = shop.convert(shop.put("rows.jsonl", rows), "csv", name="first")
        second = shop.convert(first.out, "csv", name="second")
        assert second.text == first.text
        assert list_rows(second.after) == list_rows(second.before)


def test_standard_names_come_first_and_others_as_they_are_met(bench: Workshop) -> None:
    rows = [{"z": "1", "response": "r", "query": "q"}, {"a;b": "2", "id": "1", "query": "", "z": None}]
    written = bench.convert(bench.put("rows.jsonl", rows), "csv")
    assert written.text == 'id,query,response,z,"a;b"\n,q,r,1,\n1,"",,,2\n'


def test_what_is_no_text_is_json_text_and_is_named(bench: Workshop) -> None:
    row = {"query": "q", "n": Number("1.50"), "yes": True, "deep": {"a": [1, None]}, "tags": ["a", "b"]}
    written = bench.convert(bench.put("rows.jsonl", [row, {"query": "x", "tags": ["c"]}]), "csv")
    assert written.text == 'tags,query,n,yes,deep\n"[""a"",""b""]",q,1.50,true,"{""a"":[1,null]}"\nc,x,,,\n'
    assert written.account == {"(n)": 1, "(yes)": 1, "(deep)": 1, "(tags)": 2}
    columns = Reading(json_columns=("n", "yes", "deep"))
    (first, _) = bench.convert(written.out, "foundry", columns, name="again").text.split("\n", 1)
    assert parse_json(first) == {"query": "q", "n": 1.5, "yes": True, "deep": {"a": [1, None]}} | {
        "tags": '["a","b"]'
    }


def test_messages_stay_messages(bench: Workshop, list_rows: Any) -> None:
    rows = [{"id": "1", "messages": [{"role": "user", "content": "hi"}]}, {"id": "2", "query": "q"}]
    written = bench.convert(bench.put("rows.jsonl", rows), "csv")
    before, after = list_rows(written.before), list_rows(written.after)
    assert [row | {"item_json": ""} for row in after] == [row | {"item_json": ""} for row in before]
    assert next(iter(written.losses)).outcome == "numbers, lists and the like as JSON text"


def test_a_table_of_one_column_has_two(bench: Workshop) -> None:
    written = bench.convert(bench.put("rows.jsonl", [{"query": None}, {"query": " "}]), "csv")
    assert written.text == "id,query\n,\n, \n"
    assert written.after.rows["query"].to_list() == [None, " "]


def test_rows_without_fields_and_files_without_rows_have_a_header(bench: Workshop) -> None:
    assert bench.convert(bench.put("a.jsonl", [{}]), "csv", name="a").text == "id,query\n,\n"
    assert bench.convert(bench.put("b.jsonl", []), "csv", name="b").text == "id,query\n"


def test_a_field_without_a_name_is_left_out_and_named(bench: Workshop) -> None:
    written = bench.convert(bench.put("rows.jsonl", [{"id": "x", "": "v"}, {"": None}]), "csv")
    assert written.text == "id,query\nx,\n,\n"
    assert written.account == {"field without a name": 1}


def test_a_nul_is_refused_by_name(bench: Workshop) -> None:
    path = bench.put("rows.jsonl", [{"id": "a", "query": "q"}, {"id": "b", "notes": "x\0y"}])
    with pytest.raises(InputError, match=r"field notes of b holds a NUL character"):
        bench.convert(path, "csv")
    assert [entry.name for entry in bench.folder.iterdir()] == ["rows.jsonl"]


def test_fields_that_come_late_are_there_for_all(bench: Workshop) -> None:
    rows: list[dict[str, Any]] = [{"query": "x" * 1000} for _ in range(3000)]
    rows.append({"query": "q", "late": "v"})
    written = bench.convert(bench.put("rows.jsonl", rows), "csv")
    lines = written.text.splitlines()
    assert (lines[0], lines[1][-2:], lines[-1]) == ("query,late", "x,", "q,v")
    assert len(lines) == 3002
