"""CSV: every cell is text, and every row has the width of the header."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.datasets.csv_files import parse_table, read
from assay.datasets.files import Source, read_source
from assay.errors import InputError

if TYPE_CHECKING:
    import polars as pl

CELLS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def _source(text: str) -> Source:
    return Source(Path("rows.csv"), "rows.csv", text, "sha")


def _read(text: str) -> pl.DataFrame:
    return read(_source(text)).rows


def test_cells_are_text_and_only_an_unquoted_empty_one_is_null() -> None:
    rows = _read('id,query,expected_response\n007,N/A,\n008,null,""\n009,1e5,True\n')
    assert rows["id"].to_list() == ["007", "008", "009"]
    assert rows["query"].to_list() == ["N/A", "null", "1e5"]
    assert rows["expected_response"].to_list() == [None, "", "True"]


def test_item_json_holds_every_cell_under_its_header() -> None:
    rows = _read('query,Kunde (ö),"say ""hi"""\nq,"a ""b""\n\tc",\n')
    assert json.loads(rows["item_json"][0]) == {"query": "q", "Kunde (ö)": 'a "b"\n\tc', 'say "hi"': None}
    assert "ö" in rows["item_json"][0]


@pytest.mark.parametrize(
    "text", ["query;context\na,b;c\n", "query\tcontext\na,b\tc\n", '"query";context\na,b;c']
)
def test_the_separator_is_read_off_the_header(text: str) -> None:
    assert _read(text).select("query", "context").rows() == [("a,b", "c")]


def test_lines_are_counted_through_blank_ones_and_quoted_breaks() -> None:
    rows = _read('\r\nid,query\r\n\r\n1,"line1\r\nline2"\r\n\r\n2,"only"\r\n')
    assert rows["source_line"].to_list() == [4, 7]
    assert rows["query"].to_list() == ["line1\r\nline2", "only"]


def test_a_header_may_span_lines() -> None:
    table, lines = parse_table(_source('"a\nb",c\n1,2\n'))
    assert (table.columns, table.rows(), lines.to_list()) == (["a\nb", "c"], [("1", "2")], [3])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a,b\n1,2\n1\n", 3, "1 cells, the header has 2"),
        ("a,b\n1,2,3\n", 2, "3 cells, the header has 2"),
        ('a,b\n"x\ny",2\n1,"2,3",4\n', 4, "3 cells, the header has 2"),
        ("a,b,a\n1,2,3\n", 1, "header 'a' appears twice"),
        ('a,b\n1,"x\n2,y\n', 2, "a quote in this row is never closed"),
        ('a,b\n1,5" pipe\n2,6" pipe\n', 2, "a quote stands inside an unquoted cell"),
        ('a,b\n"x"y,2\n', 2, "a quote stands inside an unquoted cell"),
        ("messages\n[]\n", 2, "messages is empty"),
        ("messages\nHi\n", 2, "column messages is text that is not JSON"),
        ("tool_definitions\ntrack\n", 2, "column tool_definitions is text that is not JSON"),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        _read(text)
    assert caught.value.line == line


def test_aliases_tags_and_empty_ids() -> None:
    rows = _read('testId,prompt,ground_truth,tags\n"",q,g,smoke\n2,q,g,""\n')
    assert rows["id"].to_list() == [None, "2"]
    assert rows["query"].to_list() == ["q", "q"]
    assert rows["expected_response"].to_list() == ["g", "g"]
    assert rows["tags"].to_list() == [["smoke"], None]


def test_messages_and_tool_definitions_are_read_as_json() -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    cell = json.dumps(messages).replace('"', '""')
    rows = _read(f'id,messages,tool_definitions\n1,"{cell}","[{{""name"": ""t""}}]"\n2,,\n')
    assert rows.select("query", "response", "tool_definitions_json").rows() == [
        ("Hi", "Hello", '[{"name":"t"}]'),
        (None, None, None),
    ]
    assert json.loads(rows["messages_json"][0]) == messages


@given(rows=st.lists(st.tuples(st.text(min_size=1, max_size=3), CELLS), min_size=1, max_size=5))
def test_any_cell_survives(rows: list[tuple[str, str | None]]) -> None:
    def quote(cell: str | None) -> str:
        return "" if cell is None else '"' + cell.replace('"', '""') + '"'

    text = "a,b\n" + "\n".join(",".join(map(quote, row)) for row in rows)
    table, _ = parse_table(_source(text))
    assert table.rows() == rows


def test_files_of_the_field(field: Path) -> None:
    def load(name: str) -> pl.DataFrame:
        return read(read_source(field / name, shown=name)).rows

    assert load("F001/bom.csv")["query"].to_list() == ["Wo liegt Köln?", "2+2?"]
    assert load("F001/bom_quoted.csv")["query"].to_list() == ["a, b"]
    assert load("F004/crlf_in_field.csv")["query"].to_list() == ["line1\r\nline2", "only"]
    texts = [json.loads(text)["text"] for text in load("F004/quoted_newlines.csv")["item_json"]]
    assert texts == [f'ABCDE FGHIJ\nKLMNOP, "Q{n}"' for n in range(1041)]
    literals = [json.loads(text)["expected_output"] for text in load("F006/literals.csv")["item_json"]]
    assert literals == ["N/A", "null", "True", "42", "2024-01-05", None, "", "1e5"]
    assert json.loads(load("F008/conversation.csv")["item_json"][1])["conversation"].endswith("}]}")
