"""CSV records: cut where they end, checked, numbered, and read back exactly as they were written."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import Reading
from assay.datasets.csv_records import read_tables
from assay.datasets.faults import Faults
from assay.datasets.files import ByteStream, Input
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
TRICKY = TEXTS | st.text('"\r\n,;\t\ufeff a', max_size=5)
QUOTINGS = st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])


class _Text(ByteStream):
    """A stream whose file is a text at hand, in chunks of a few bytes."""

    def __init__(self, text: str | bytes, reading: Reading | None = None, name: str = "rows.csv") -> None:
        super().__init__(Input(Path(name), name, reading or Reading()))
        self.data = text.encode() if isinstance(text, str) else text

    def __iter__(self) -> Iterator[bytes]:
        return (self.data[start : start + 3] for start in range(0, len(self.data), 3))


class _Read(NamedTuple):
    columns: list[str]
    rows: list[tuple[str | None, ...]]
    lines: list[int]
    faults: Faults


def _read(text: str | bytes, size: int = 1 << 20, name: str = "rows.csv") -> _Read:
    faults = Faults(name)
    tables = list(read_tables(_Text(text, name=name), faults, size))
    columns = tables[0].cells.columns if tables else []
    rows = [row for table in tables for row in table.cells.rows()]
    return _Read(columns, rows, [line for table in tables for line in table.numbers], faults)


def _cells(text: str | bytes, size: int = 1 << 20, name: str = "rows.csv") -> list[tuple[str | None, ...]]:
    read = _read(text, size, name)
    read.faults.raise_any()
    return read.rows


@pytest.mark.parametrize(
    "text", ["query;context\na,b;c\n", "query\tcontext\na,b\tc\n", '"query";context\na,b;c']
)
def test_the_separator_is_read_off_the_header(text: str) -> None:
    read = _read(text)
    assert (read.columns, read.rows) == (["query", "context"], [("a,b", "c")])


def test_tsv_is_separated_by_tabs_whatever_its_header_holds() -> None:
    read = _read("a,b,c\td\n1,2\t\n\t\n", name="rows.tsv")
    assert (read.columns, read.rows) == (["a,b,c", "d"], [("1,2", None), (None, None)])


def test_lines_are_counted_through_blank_ones_and_quoted_breaks() -> None:
    read = _read('\r\nid,query\r\n\r\n1,"line1\r\nline2"\r\n \t\r\n2,"only"\r\n')
    assert (read.rows, read.lines) == ([("1", "line1\r\nline2"), ("2", "only")], [4, 7])


def test_a_header_may_span_lines() -> None:
    read = _read('"a\nb",c\n1,2\n')
    assert (read.columns, read.rows, read.lines) == (["a\nb", "c"], [("1", "2")], [3])


def test_line_ends_are_dropped_and_other_carriage_returns_kept() -> None:
    assert _cells('a,b\r\nx\r,y\r\r\n"p\r",\r\n1,2\r') == [("x\r", "y\r"), ("p\r", None), ("1", "2\r")]


def test_a_cell_at_the_start_of_a_block_keeps_what_looks_like_a_byte_order_mark() -> None:
    assert _cells("a,b\n\ufeffx,1\n\ufeffy,2\n", size=1) == [("\ufeffx", "1"), ("\ufeffy", "2")]


def test_a_blank_line_of_one_column_is_no_row_and_white_space_is_text() -> None:
    assert _cells('a\n\n  \n""\n\r\nx\n') == [("  ",), ("",), ("x",)]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a,b\n1,2\n1\n3,4\n1,2,3\n", [(3, "1 cells, the header has 2"), (5, "3 cells, the header has 2")]),
        ('a,b\n"x\ny",2\n1,"2,3",4\n', [(4, "3 cells, the header has 2")]),
        ('a,b\n1,5" pipe\n2,6" pipe\n3,7\n', [(2, "a quote stands"), (3, "a quote stands")]),
        ('a,b\n"x"y,2\n3,4\n', [(2, "a quote stands inside an unquoted cell")]),
        ('a,b\n"x\ny"z"",2\n3,4\n', [(2, "a quote stands inside an unquoted cell")]),
        ('a\n1,2\n"x""y"\n', [(2, "2 cells, the header has 1")]),
        (b"a,b\n1,\xfc\n2,\xc3\xbc\n\xff,3\n", [(2, "byte 0xFC is not UTF-8"), (4, "byte 0xFF")]),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_every_bad_row_is_named_and_no_other_is_lost(
    text: str | bytes, faults: list[tuple[int, str]], size: int
) -> None:
    read = _read(text, size)
    notes = read.faults.take()
    assert [fault.line for fault in notes] == [line for line, _ in faults]
    assert all(fault.message.startswith(said) for fault, (_, said) in zip(notes, faults, strict=True))
    assert all(fault.text for fault in notes)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a,b,a\n1,2,3\n", 1, "header 'a' appears twice"),
        ("\na,,b\n1,2,3\n", 2, "column 2 has no name in the header"),
        ('a,""\n1,2\n', 1, "column 2 has no name in the header"),
        ('a,5"b\n1,2\n', 1, "a quote stands inside an unquoted cell"),
        ("a,b\r1,2\r", 1, "lines end in CR alone"),
        ('"a,b\n1,2\n', 1, "a quote in the header is never closed"),
        ("a,b\n1,2\n", 1, "byte 0xFC is not UTF-8"),
        ('a,b\n1,"x\n2,y\n', 2, "a quote in this row is never closed"),
        ('a,b\n1,2\n1,"x\n2,""\n', 3, "a quote in this row is never closed"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(text: str, line: int, message: str) -> None:
    data = text.encode().replace(b"b", b"\xfc") if "0xFC" in message else text
    with pytest.raises(InputError, match=message) as caught:
        _cells(data)
    assert caught.value.line == line


def test_a_quote_that_is_never_closed_is_refused_before_the_file_is_read_whole() -> None:
    stream = _Text('a,b\n1,"x\n' + "2,y\n" * 1000)
    faults = Faults("rows.csv")
    with pytest.raises(
        InputError, match="longer than 100 bytes; a quote in it may never be closed"
    ) as caught:
        list(read_tables(stream, faults, size=10, longest=100))
    assert caught.value.line == 2


@given(
    header=st.lists(TRICKY.filter(str.strip), min_size=1, max_size=4, unique=True),
    data=st.data(),
    quoting=QUOTINGS,
    separator=st.sampled_from(",;\t"),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_table_of_texts_survives(
    header: list[str], data: st.DataObject, quoting: Any, separator: str, end: str
) -> None:
    rows = data.draw(st.lists(st.lists(TRICKY, min_size=len(header), max_size=len(header)), max_size=5))
    if any("\r" in text for text in itertools.chain(header, *rows)):
        quoting = csv.QUOTE_ALL  # the writer of older Pythons leaves it bare
    out = io.StringIO()
    writer = csv.writer(out, delimiter=separator, quoting=quoting, lineterminator=end)
    writer.writerow(header)
    writer.writerows(rows)
    name = "rows.tsv" if separator == "\t" else "rows.csv"
    seen = [text.count(sign) for text in header for sign in ",;\t" if sign != separator]
    if name == "rows.csv" and (sum(seen) or (len(header) == 1 and separator == ";")):  # it may be mistaken
        return
    found = _cells(out.getvalue(), name=name, size=data.draw(st.sampled_from([1, 7, 1 << 20])))
    assert [tuple(cell or "" for cell in row) for row in found] == [tuple(row) for row in rows]


@given(rows=st.lists(st.tuples(st.none() | TRICKY, st.none() | TRICKY), max_size=5))
def test_null_and_empty_text_stay_apart(rows: list[tuple[str | None, str | None]]) -> None:
    def quote(cell: str | None) -> str:
        return "" if cell is None else '"' + cell.replace('"', '""') + '"'

    text = "a,b\n" + "\n".join(",".join(map(quote, row)) for row in rows)
    assert _cells(text) == rows


@given(text=st.text('ab"\n\r,; ', max_size=60), size=st.integers(1, 30))
def test_blocks_of_any_size_give_equal_rows_and_faults(text: str, size: int) -> None:
    def outcome(size: int) -> tuple[Any, ...]:
        try:
            read = _read("a,b\n" + text, size)
        except InputError as error:
            return (error.line, error.message)
        return read.rows, read.lines, read.faults.take()

    assert outcome(size) == outcome(1 << 20)


def test_a_late_decimal_of_the_field_changes_nothing_before_it() -> None:
    lines = [f"{n},{n}\n" for n in range(25_000)]
    cells = _cells("id,expected_output\n" + "".join(lines) + "25000,3.75\n25001,0042\n", size=10_000)
    assert cells[-3:] == [("24999", "24999"), ("25000", "3.75"), ("25001", "0042")]
    assert len(cells) == 25_002


def _count_records(text: str) -> int | None:
    """Count records sign by sign; None where a quote that opens a cell is never closed."""
    records, place, begins, blank = 0, 0, True, True
    while place < len(text):
        if begins and text[place] == '"':
            while text[place : place + 1] == '"':
                end = text.find('"', place + 1)
                if end < 0:
                    return None
                place = end + 1
            begins = blank = False
            continue
        begins = text[place] in ",\n"
        blank = blank and text[place] in " \n"
        if text[place] == "\n":
            records, blank = records + (not blank), True
        place += 1
    return records


@given(text=st.text('ab", \n', max_size=60), size=st.integers(1, 30))
def test_every_record_is_read_or_refused(text: str, size: int) -> None:
    records = _count_records(text + "\n")
    if records is None:
        with pytest.raises(InputError, match="never closed"):
            _cells("x,y\n" + text, size)
    else:
        read = _read("x,y\n" + text, size)
        assert len(read.rows) + len(read.faults) == records
