"""JSON arrays: members are cut out of a stream, kept as written, and every fault has its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from assay.config import Reading
from assay.datasets.files import ByteStream, Input
from assay.datasets.json_array import DIALECT, claims, open_file
from assay.datasets.json_members import cut_members
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.datasets.contract import Dataset

    Open = Callable[..., Dataset]
    Write = Callable[[str, str | bytes], str]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\[]{},\n'), max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


class _Text(ByteStream):
    """A stream whose file is a text at hand, in chunks of three bytes."""

    def __init__(self, text: str | bytes) -> None:
        super().__init__(Input(Path("rows.json"), "rows.json"))
        self.data = text.encode() if isinstance(text, str) else text

    def __iter__(self) -> Iterator[bytes]:
        return (self.data[start : start + 3] for start in range(0, len(self.data), 3))


def _cut(text: str | bytes, size: int = 1 << 20) -> list[tuple[int, int, str]]:
    """Number, line and text of every member."""
    return [
        (number, line, text.decode())
        for members in cut_members(_Text(text), size)
        for number, line, text in zip(members.numbers, members.lines, members.texts, strict=True)
    ]


@pytest.fixture
def open_text(write: Write) -> Callable[..., Dataset]:
    """Open a text as a JSON file."""

    def open_written(text: str | bytes, size: int = 1 << 20, **reading: Any) -> Dataset:
        return open_file(Input(Path(write("rows.json", text)), "rows.json", Reading(**reading)), size)

    return open_written


def _load(dataset: Dataset) -> pl.DataFrame:
    blocks = list(dataset.blocks)
    dataset.faults.raise_any()
    return pl.concat(blocks)


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_members_are_kept_as_written_each_with_its_line(open_text: Open, size: int) -> None:
    text = '[\n  {"id": 9007199254740993, "query": "a, ] }",\n   "n": 1.10},\n\n  {"id": "b", "n": ["x"]} ]\n'
    rows = _load(open_text(text, size))
    assert rows.select("id", "query", "source_line", "item_index").rows() == [
        ("9007199254740993", "a, ] }", 2, 0),
        ("b", None, 5, 1),
    ]
    assert rows["item_json"].to_list() == [
        '{"id": 9007199254740993, "query": "a, ] }",\n   "n": 1.10}',
        '{"id": "b", "n": ["x"]}',
    ]


@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_members_of_every_kind_are_cut(size: int) -> None:
    members = [
        "1.5e3",
        '"a]\\"\\\\"',
        "null",
        "{}",
        "[]",
        '{"a":[[[[[[{"b":"}"}]]]]]]}',
        "true",
        '""',
        '{"ö":"😀"}',
    ]
    text = " [" + " , \n".join(members) + "\n]\n"
    assert _cut(text, size) == [(n, n, member) for n, member in enumerate(members, start=1)]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ('[\n {"a": 1},\n]', 3, 1, "a comma before the end of the list"),
        ('[{"a": 1}, ,{"a": 1}]', 1, 12, "expected an object"),
        ('[\n // note\n {"a": 1}]', 2, 2, "expected an object"),
        ('[{"a": 1} // ö\n]', 1, 11, "expected a comma or the end of the list"),
        ('[{"ö": 1} {"a": 2}]', 1, 11, "expected a comma or the end of the list"),
        ('[{"a": 1}]\n\n  [', 3, 3, "text after the end of the list"),
        ('[{"a": 1}]]', 1, 11, "text after the end of the list"),
        ('[{"a": 1}', 1, 10, "the list is never closed"),
        ('[{"a": 1},\n', 2, 1, "the list is never closed"),
        ("[", 1, 2, "the list is never closed"),
        ('[{"a": 1}, {"b": [1, 2}', 1, 23, "Expecting ',' delimiter"),
        ('[\n{"a": "x},\n{"b": "y"}]', 2, 11, "Invalid control character at"),
        ('[{"a": 1}, "x', 1, 12, "Unterminated string starting at"),
        ('[{"a": {"b": ', 1, 14, "Expecting value"),
        ("[{]", 1, 4, "the list is never closed"),
        ("[}", 1, 2, "expected an object"),
        ("5", 1, 1, "expected a list of objects"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_broken_syntax_is_refused_at_its_place(
    text: str, line: int, column: int, message: str, size: int
) -> None:
    with pytest.raises(InputError) as caught:
        _cut(text, size)
    assert (caught.value.line, caught.value.column, caught.value.message) == (
        line,
        column,
        f"not JSON: {message}",
    )


def test_a_member_that_is_never_closed_is_refused_before_the_file_is_read_whole() -> None:
    text = '[{"a": "x,\n' + '{"a": 1},\n' * 1000
    with pytest.raises(InputError, match="not JSON: Invalid control character") as caught:
        list(cut_members(_Text(text), size=10, longest=100))
    assert (caught.value.line, caught.value.column) == (1, 11)
    with pytest.raises(InputError, match="a member is never closed"):
        list(cut_members(_Text("[" * 10_000), size=10, longest=5000))


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_every_bad_member_is_named_by_line_column_and_index(open_text: Open, size: int) -> None:
    text = b'[{"id": 1}, 5, {"id": 2 x}, {"a": 1,\n "a": 2},\n {"id": "\xfc"}, {"messages": 1}, {"id": 3}]'
    dataset = open_text(text, size, on_bad_row="quarantine")
    rows = pl.concat(dataset.blocks)
    assert rows.select("id", "source_line", "item_index").rows() == [("1", 1, 0), ("3", 3, 1)]
    faults = dataset.faults.take()
    assert [(fault.line, fault.column, fault.pointer) for fault in faults] == [
        (1, 13, "[1]"),
        (1, 25, "[2]"),
        (2, 2, "[3]"),
        (3, 2, "[4]"),
        (3, 15, "[5]"),
    ]
    assert [fault.message.split(",")[0] for fault in faults] == [
        "a number",
        "not JSON: Expecting '",
        "key 'a' appears twice",
        "byte 0xFC is not UTF-8; name the encoding",
        "messages is a number",
    ]
    assert all(fault.text for fault in faults)
    assert len(dataset.faults) == 5


def test_a_lenient_reading_says_where_it_was(open_text: Open) -> None:
    dataset = open_text('[{"x": 1},\n {"x": NaN}]', lenient=True)
    assert _load(dataset)["item_json"].to_list() == ['{"x": 1}', '{"x":null}']
    assert [(notice.line, notice.pointer) for notice in dataset.faults.notices] == [(2, "[1]")]


def test_what_was_converted_is_said_with_the_index_of_the_first(open_text: Open) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    dataset = open_text(json.dumps([{"query": "q"}, {"messages": messages}, {"messages": messages}]))
    rows = _load(dataset)
    assert rows["query"].to_list() == ["q", "q", "q"]
    assert {(notice.code, notice.line, notice.pointer) for notice in dataset.faults.notices} == {
        ("converted", None, "[1]")
    }


def test_json_lines_under_the_name_of_a_json_file_are_read_as_lines(open_text: Open) -> None:
    dataset = open_text('{"id": 1, "query": "q"}\n{"id": 2}\n')
    assert _load(dataset).select("id", "source_line").rows() == [("1", 1), ("2", 2)]
    assert dataset.dialect == "json"


@pytest.mark.parametrize("text", ["[ ]", "[]\n", " [\n\n]", "", "\ufeff[]"])
def test_a_list_without_members_gives_no_blocks(text: str, open_text: Open) -> None:
    assert list(open_text(text).blocks) == []


def test_encodings_are_those_of_every_text_file(open_text: Open) -> None:
    text = '[{"query": "Wo liegt Köln?"}]'
    for data in (text.encode("utf-8-sig"), text.encode("utf-16")):
        assert _load(open_text(data))["query"].to_list() == ["Wo liegt Köln?"]
    assert _load(open_text(text.encode("cp1252"), encoding="cp1252"))["query"].to_list() == ["Wo liegt Köln?"]


def test_a_member_larger_than_many_blocks_is_read(open_text: Open) -> None:
    big = {
        "query": "x" * 50_000,
        "deep": [[[[[[{"n": 1}]]]]]],
        "list": [{"n": n, "t": '"]'} for n in range(2000)],
    }
    rows = _load(open_text(json.dumps([{"query": "a"}, big, {"query": "b"}], indent=1), size=1000))
    assert json.loads(rows["item_json"][1]) == big
    assert rows["query"].to_list() == ["a", big["query"], "b"]


@given(
    members=st.lists(st.dictionaries(TEXTS, VALUES, max_size=4), max_size=5),
    indent=st.sampled_from([None, 0, 2]),
    size=st.integers(1, 40),
    ascii_only=st.booleans(),
)
def test_blocks_of_any_size_give_equal_members(
    members: list[Any], indent: int | None, size: int, ascii_only: bool
) -> None:
    text = json.dumps(members, indent=indent, ensure_ascii=ascii_only)
    cut = _cut(text, size)
    assert cut == _cut(text)
    assert [json.loads(member) for _, _, member in cut] == members


@given(text=st.text('[]{}",:1 \n\\', max_size=40), size=st.integers(1, 20))
def test_whatever_the_text_every_size_gives_the_same_outcome(text: str, size: int) -> None:
    def outcome(size: int) -> Any:
        try:
            return _cut("[" + text, size)
        except InputError as error:
            return error.line, error.column, error.message

    assert outcome(size) == outcome(1 << 20)
    try:
        members = json.loads("[" + text)
    except ValueError:
        return
    assert [json.loads(member) for _, _, member in outcome(size)] == members


@pytest.mark.parametrize(
    ("name", "head", "claimed"),
    [
        ("a.json", '[{"query": "q"}]', True),
        ("a.json.gz", ' [\n {"id": "x', True),
        ("a.json", '[{"prompt": "q"}]', False),
        ("a.json", '[{"turns": []}]', False),
        ("a.json", "[]", False),
        ("a.json", "[ ]", True),
        ("a.json", "[1, 2]", False),
        ("a.json", '{"query": "q"}\n{"query": "r"}\n', True),
        ("a.json", '{"query": "q"}\n\n', False),
        ("a.json", '{\n "query": "q"}\n', False),
        ("a.json", '{"items": []}\n{"a": 1}', False),
        ("a.jsonl", '[{"query": "q"}]', False),
    ],
)
def test_lists_of_rows_are_claimed_and_other_documents_not(name: str, head: str, claimed: bool) -> None:
    assert claims(Path(name), head) is claimed


def test_blocks_are_framed_alike_whatever_their_size(open_text: Open) -> None:
    text = json.dumps([{"id": n, "query": f"q{n}"} for n in range(300)])
    assert_frame_equal(_load(open_text(text, 50)), _load(open_text(text)))
    assert DIALECT.name == open_text(text).dialect == "json"
