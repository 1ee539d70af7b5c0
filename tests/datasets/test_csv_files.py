"""CSV: every cell is text, and what stands in which column is found by its header."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.config import Reading
from assay.datasets import foundry
from assay.datasets.csv_files import claims, open_file
from assay.datasets.faults import Fault
from assay.datasets.files import Input
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.datasets.contract import Dataset

    Load = Callable[..., pl.DataFrame]
    Write = Callable[[str, str | bytes], str]


def _open(path: str | Path, **reading: Any) -> Dataset:
    return open_file(Input(Path(path), str(path), Reading(**reading)))


def _load(path: str | Path, **reading: Any) -> pl.DataFrame:
    dataset = _open(path, **reading)
    blocks = list(dataset.blocks)
    dataset.faults.raise_any()
    return pl.concat(blocks)


@pytest.fixture
def load(write: Write) -> Load:
    """Read a text as a CSV file."""

    def load_text(text: str, **reading: Any) -> pl.DataFrame:
        return _load(write("rows.csv", text), **reading)

    return load_text


def test_cells_are_text_and_only_an_unquoted_empty_one_is_null(load: Load) -> None:
    rows = load('id,query,expected_response\n007,N/A,\n008,null,""\n009,1e5,True\n')
    assert rows["id"].to_list() == ["007", "008", "009"]
    assert rows["query"].to_list() == ["N/A", "null", "1e5"]
    assert rows["expected_response"].to_list() == [None, "", "True"]


def test_item_json_holds_every_cell_under_its_header(load: Load) -> None:
    rows = load('query,Kunde (ö),"say ""hi"""\nq,"a ""b""\n\tc",\n')
    assert json.loads(rows["item_json"][0]) == {"query": "q", "Kunde (ö)": 'a "b"\n\tc', 'say "hi"': None}
    assert "ö" in rows["item_json"][0]


def test_a_quote_that_is_never_closed_is_no_row_to_set_aside(write: Write) -> None:
    dataset = _open(write("rows.csv", 'id,query\n1,q\n2\n3,"q\n4,q\n'), on_bad_row="quarantine")
    with pytest.raises(InputError, match="never closed") as caught:
        list(dataset.blocks)
    assert caught.value.line == 4


@pytest.mark.parametrize("text", ["", "\n \n", "a,b", "a,b\r\n", b"\xef\xbb\xbf"])
def test_a_file_without_records_gives_no_tables(text: str | bytes, write: Write) -> None:
    assert list(_open(write("rows.csv", text)).blocks) == []


def test_aliases_tags_and_empty_ids(load: Load) -> None:
    rows = load('testId,prompt,ground_truth,tags\n"",q,g,smoke\n2,q,g,""\n')
    assert rows["id"].to_list() == [None, "2"]
    assert rows["query"].to_list() == ["q", "q"]
    assert rows["expected_response"].to_list() == ["g", "g"]
    assert rows["tags"].to_list() == [["smoke"], None]


def test_of_two_names_the_first_that_is_not_null_counts(load: Load) -> None:
    rows = load('ground_truth,expected_response\na,b\n,c\n"",d\n')
    assert rows["expected_response"].to_list() == ["a", "c", ""]


def test_messages_and_tool_definitions_are_read_as_json(load: Load) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    cell = json.dumps(messages).replace('"', '""')
    rows = load(f'id,messages,tool_definitions\n1,"{cell}","[{{""name"": ""t""}}]"\n2,,\n')
    assert rows.select("query", "response", "tool_definitions_json").rows() == [
        ("Hi", "Hello", '[{"name":"t"}]'),
        (None, None, None),
    ]
    assert json.loads(rows["messages_json"][0]) == messages
    assert json.loads(rows["item_json"][0])["messages"] == json.dumps(messages)


def test_a_simulation_is_read_from_cells(load: Load) -> None:
    rows = load("test_case_description,desired_num_turns,query\nA guest asks for a refund,3,q\n")
    seed = {
        "test_case_description": "A guest asks for a refund",
        "simulation_configuration": {"desired_num_turns": 3},
    }
    assert json.loads(rows["seed_json"][0]) == seed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query,messages\n,[]\n", "messages is empty"),
        ("query,messages\n,Hi\n", "column messages is text that is not JSON"),
        ("query,tool_calls\nq,{\n", "column tool_calls is text that is not JSON"),
        ("query,tool_definitions\nq,track\n", "tool_definitions is text that is not JSON"),
    ],
)
def test_a_cell_that_should_be_json_is_a_bad_row(text: str, message: str, load: Load) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load(text)
    assert caught.value.line == 2


def test_declared_columns_stand_in_item_json_as_they_are_written(load: Load) -> None:
    rows = load(
        'a,meta,context,b\nx," {""n"": 1.10}","[1, ""t""]",y\n,,"""text""",\n',
        json_columns=("meta", "context"),
    )
    assert rows["item_json"].to_list() == [
        '{"a":"x","meta":{"n": 1.10},"context":[1, "t"],"b":"y"}',
        '{"a":null,"meta":null,"context":"text","b":null}',
    ]
    assert rows["context"].to_list() == ['[1,"t"]', "text"]


def test_headers_that_look_like_patterns_are_names(load: Load) -> None:
    text = '^x.*$,*,x,^.*$\n{},a,b,"[1]"\n,,,\n'
    for declared in ((), ("^x.*$", "^.*$"), ("*x",)):
        first, second = (json.loads(text) for text in load(text, json_columns=declared)["item_json"])
        assert list(first) == list(second) == ["^x.*$", "*", "x", "^.*$"]
        assert list(second.values()) == [None] * 4
        assert list(first.values()) == (
            [{}, "a", "b", [1]] if "^.*$" in declared else ["{}", "a", "b", "[1]"]
        )


def test_a_lenient_reading_takes_nan_and_repeated_keys_with_a_notice(write: Write) -> None:
    path = write("rows.csv", 'query,meta\nq,"{""a"": NaN}"\nq,"{""a"": 1, ""a"": 2}"\n')
    dataset = _open(path, json_columns=("meta",), lenient=True)
    (block,) = dataset.blocks
    assert [json.loads(text)["meta"] for text in block["item_json"]] == [{"a": None}, {"a": 2}]
    assert [(notice.line, notice.code) for notice in dataset.faults.notices] == [
        (2, "lenient"),
        (3, "lenient"),
    ]


def test_a_cell_nested_too_deeply_to_stand_in_a_row_is_refused(load: Load) -> None:
    with pytest.raises(InputError, match="column meta is text that is not JSON: nested too deeply"):
        load(f"query,meta\nq,{'[' * 253 + ']' * 253}\n", json_columns=("meta",))


def test_bad_rows_are_left_out_of_the_blocks_with_their_text(write: Write) -> None:
    text = 'id,query,meta\n1,q,"[1]"\n2,q,[\n3,q\n4,q,{}\n'
    dataset = _open(write("rows.csv", text), json_columns=("meta",), on_bad_row="quarantine")
    (block,) = dataset.blocks
    assert block["id"].to_list() == ["1", "4"]
    assert block["item_index"].to_list() == [0, 1]
    faults = dataset.faults.take()
    assert sorted((fault.line, fault.text) for fault in faults) == [
        (3, '{"id":"2","query":"q","meta":"["}'),
        (4, "3,q"),
    ]
    assert isinstance(faults[0], Fault)


def test_marks_and_encodings_of_the_field(field: Path) -> None:
    assert _load(field / "F001" / "bom.csv")["query"].to_list() == ["Wo liegt Köln?", "2+2?"]
    rows = _load(field / "F001" / "bom_quoted.csv")
    assert (rows["query"].to_list(), rows["expected_response"].to_list()) == (["a, b"], ["c"])
    with pytest.raises(InputError, match=r"cp1252\.csv:3: byte 0xFC is not UTF-8; name the encoding"):
        _load(field / "F003" / "cp1252.csv")
    rows = _load(field / "F003" / "cp1252.csv", encoding="cp1252")
    assert (rows.height, rows["query"][1]) == (3, "Müller \u2013 “Café”")


def test_quoted_line_ends_of_the_field_stay_in_their_cells(field: Path) -> None:
    rows = _load(field / "F004" / "quoted_newlines.csv")
    items = [json.loads(text) for text in rows["item_json"]]
    assert [item["text"] for item in items] == [f'ABCDE FGHIJ\nKLMNOP, "Q{n}"' for n in range(1041)]
    assert [int(item["index"]) for item in items] == list(range(1041))
    rows = _load(field / "F004" / "crlf_in_field.csv")
    assert rows["query"].to_list() == ["line1\r\nline2", "only"]
    assert rows["expected_response"].to_list() == ["x", ""]


def test_texts_of_the_field_that_look_typed_stay_as_written(field: Path) -> None:
    literals = _load(field / "F006" / "literals.csv")
    assert literals["id"].to_list() == [f"{n:03}" for n in range(7, 15)]
    outputs = [json.loads(text)["expected_output"] for text in literals["item_json"]]
    assert outputs == ["N/A", "null", "True", "42", "2024-01-05", None, "", "1e5"]
    dates = _load(field / "F024" / "dates_only.csv")
    assert dates["expected_response"].to_list() == ["2024-01-05", "2024-02-05"]


@pytest.mark.parametrize("name", ["looks_typed", "dates_only", "stamps_only"])
def test_lines_of_the_field_that_look_typed_stay_as_written(name: str, field: Path) -> None:
    path = field / "F024" / f"{name}.jsonl"
    rows = pl.concat(foundry.open_file(Input(path, path.name)).blocks)
    written = [json.loads(line)["expected_response"] for line in path.read_text("utf-8").splitlines()]
    assert rows["expected_response"].to_list() == written


def test_a_conversation_of_the_field_is_json_where_it_is_declared(field: Path) -> None:
    path = field / "F008" / "conversation.csv"
    with pytest.raises(InputError, match=r":3: column conversation is text that is not JSON"):
        _load(path, json_columns=("conversation",))
    dataset = _open(path, json_columns=("conversation",), on_bad_row="quarantine")
    (block,) = dataset.blocks
    assert block["id"].to_list() == ["1"]
    assert len(json.loads(block["item_json"][0])["conversation"]["messages"]) == 2
    assert [fault.line for fault in dataset.faults.take()] == [3]
    assert isinstance(json.loads(_load(path)["item_json"][1])["conversation"], str)


def test_a_large_table_of_quoted_breaks_is_read_as_the_standard_library_does(write: Write) -> None:
    rows = [[str(n), f'line {n}\r\n"{n % 7}", tab\t', "x" * (n % 50)] for n in range(20_000)]
    out = io.StringIO()
    csv.writer(out).writerows([["id", "query", "response"], *rows])
    loaded = _load(write("rows.csv.gz", gzip.compress(out.getvalue().encode())))
    assert loaded["query"].to_list() == [row[1] for row in rows]
    assert loaded["source_line"].to_list() == [2 + 2 * n for n in range(20_000)]


def test_csv_is_claimed_by_name() -> None:
    names = ("a.csv", "a.CSV.gz", "a.tsv.zst", "a.txt", "csv")
    assert [claims(Path(name), "") for name in names] == [True, True, True, False, False]
