"""Spreadsheets: cells of the first sheet as text, dates in ISO 8601, errors named by cell."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import zipfile
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import polars as pl
import pytest

from assay.config import Reading
from assay.datasets.files import Input
from assay.datasets.xlsx import DIALECT, claims, open_file
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.datasets.contract import Dataset

    Open = Callable[..., Dataset]
    Write = Callable[[str, str | bytes], str]

pytest.importorskip("fastexcel")

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
STYLES = (  # 1: date, 2: date and time, 3: time
    f'<styleSheet xmlns="{MAIN}"><cellXfs count="4"><xf numFmtId="0"/><xf numFmtId="14"/>'
    '<xf numFmtId="22"/><xf numFmtId="21"/></cellXfs></styleSheet>'
)
LETTERS = [*ascii_uppercase, "AA"]
Cell = tuple[str, Any]  # attributes of the cell, and its value


def number(value: float, style: int = 0) -> Cell:
    return f's="{style}"', value


def error(code: str) -> Cell:
    return 't="e"', code


def _sheet(rows: dict[int, list[Any]], first_column: int) -> str:
    written: list[str] = []
    for row, cells in rows.items():
        parts: list[str] = []
        for offset, cell in enumerate(cells):
            place = f'r="{LETTERS[first_column + offset]}{row}"'
            if isinstance(cell, str):
                text = f'<is><t xml:space="preserve">{escape(cell)}</t></is>'
                parts.append(f'<c {place} t="inlineStr">{text}</c>')
            elif cell is not None:
                parts.append(f"<c {place} {cell[0]}><v>{cell[1]}</v></c>")
        written.append(f'<row r="{row}">{"".join(parts)}</row>')
    return f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(written)}</sheetData></worksheet>'


def _relate(links: list[tuple[str, str, str]]) -> str:
    parts = (f'<Relationship Id="{i}" Type="{kind}" Target="{target}"/>' for i, kind, target in links)
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(parts)}</Relationships>'


def _workbook(*sheets: dict[int, list[Any]], first_column: int = 0) -> bytes:
    """Write sheets, each as row number to cells, with no more parts than a reader needs."""
    numbers = range(1, len(sheets) + 1)
    book = "".join(f'<sheet name="Sheet{n}" sheetId="{n}" r:id="s{n}"/>' for n in numbers)
    links = [(f"s{n}", f"{OFFICE}/worksheet", f"worksheets/sheet{n}.xml") for n in numbers]
    links.append(("styles", f"{OFFICE}/styles", "styles.xml"))

    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{SHEET_TYPE}.worksheet+xml"/>'
        for n in numbers
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" '
        f'ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
        f'ContentType="{SHEET_TYPE}.sheet.main+xml"/>{types}</Types>',
        "_rels/.rels": _relate([("book", f"{OFFICE}/officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{book}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relate(links),
        "xl/styles.xml": STYLES,
    }
    parts |= {f"xl/worksheets/sheet{n}.xml": _sheet(sheets[n - 1], first_column) for n in numbers}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


@pytest.fixture
def open_book(write: Write) -> Callable[..., Dataset]:
    """Open bytes as a spreadsheet."""

    def open_written(data: bytes, name: str = "rows.xlsx", **reading: Any) -> Dataset:
        return open_file(Input(Path(write(name, data)), name, Reading(**reading)))

    return open_written


def _load(dataset: Dataset) -> pl.DataFrame:
    blocks = list(dataset.blocks)
    dataset.faults.raise_any()
    return pl.concat(blocks)


def test_cells_are_text_as_they_are_shown(open_book: Open) -> None:
    values = {
        "007": "007",
        " a\nb ": " a\nb ",
        "2024-01-05 00:00:00": "2024-01-05 00:00:00",
        number(42): "42",
        number(0.1): "0.1",
        number(1234567890123456): "1234567890123456",
        number(45296, 1): "2024-01-05",
        number(45296.5, 2): "2024-01-05T12:00:00",
        number(0.5, 3): "12:00:00",
        ('t="b"', 1): "true",
        ('t="d"', "2024-01-05T10:00:00"): "2024-01-05T10:00:00",
        "": "",
        None: None,
    }
    book = _workbook({1: ["query", "x"]} | {row: ["q", cell] for row, cell in enumerate(values, start=2)})
    items = [json.loads(text) for text in _load(open_book(book))["item_json"]]
    assert [item["x"] for item in items] == list(values.values())


def test_standard_columns_are_taken_by_name_and_rows_numbered_as_in_the_sheet(open_book: Open) -> None:
    rows = {3: ["id", "query", "tags", "messages"], 4: [number(1), "q", "smoke"], 7: ["b", "", None, None]}
    loaded = _load(open_book(_workbook(rows, first_column=2)))
    assert loaded.select("id", "query", "source_line", "item_index").rows() == [
        ("1", "q", 4, 0),
        ("b", "", 7, 1),
    ]
    assert loaded["tags"].to_list() == [["smoke"], None]


def test_a_cell_that_shows_an_error_makes_a_bad_row(open_book: Open) -> None:
    rows = {1: ["query", "x"], 2: ["a", error("#N/A")], 3: ["b", "c"], 4: [error("#DIV/0!")]}
    dataset = open_book(_workbook(rows, first_column=25), on_bad_row="quarantine")
    (block,) = dataset.blocks
    assert block.select("query", "source_line").rows() == [("b", 3)]
    faults = dataset.faults.take()
    assert [(fault.line, fault.message) for fault in faults] == [
        (2, "cell AA2 shows an error (NA)"),
        (4, "cell Z4 shows an error (Div0)"),
    ]
    assert faults[0].text == '{"query":"a","x":null}'


def test_other_sheets_that_hold_something_are_named(open_book: Open) -> None:
    sheet = {1: ["query"], 2: ["q"]}
    dataset = open_book(_workbook(sheet, {}, sheet))
    assert _load(dataset).height == 1
    assert [(notice.code, notice.message) for notice in dataset.faults.notices] == [
        ("more_sheets", "sheet 'Sheet3' is not read, only the first one, 'Sheet1'")
    ]


def test_declared_columns_are_json(open_book: Open) -> None:
    book = _workbook({1: ["query", "meta"], 2: ["q", '{"n": 1.10}'], 3: ["q", "{"]})
    dataset = open_book(book, json_columns=("meta",), on_bad_row="quarantine")
    assert pl.concat(dataset.blocks)["item_json"].to_list() == ['{"query":"q","meta":{"n": 1.10}}']
    assert [fault.line for fault in dataset.faults.take()] == [3]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({2: ["a", "b", "a"], 3: ["x", "y", "z"]}, ":2: header 'a' appears twice"),
        ({1: ["a", None, "b"], 2: ["x", "y", "z"]}, ":1: column 2 has no name in the header"),
    ],
)
def test_a_malformed_header_is_refused(rows: dict[int, list[Any]], message: str, open_book: Open) -> None:
    with pytest.raises(InputError, match=message):
        _load(open_book(_workbook(rows)))


@pytest.mark.parametrize("data", [b"", _workbook({}), _workbook({1: ["a", "b"]}), _workbook({1: [None]})])
def test_a_file_without_rows_gives_no_blocks(data: bytes, open_book: Open) -> None:
    assert list(open_book(data).blocks) == []


@pytest.mark.parametrize("data", [b"PK", b"query\nq\n", _workbook({1: ["a"]})[:300]])
def test_a_torn_or_foreign_file_is_refused(data: bytes, open_book: Open) -> None:
    with pytest.raises(InputError, match=r"rows\.xlsx: cannot be read as a spreadsheet: "):
        list(open_book(data).blocks)


def test_a_missing_reader_is_named_with_its_extra(open_book: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(InputError, match=r'pip install "assay\[xlsx\]"'):
        list(open_book(_workbook({1: ["a"]})).blocks)


def test_packed_spreadsheets_are_read_and_hashed_as_plain_ones(open_book: Open) -> None:
    data = _workbook({1: ["query"], 2: ["q"]})
    dataset = open_book(gzip.compress(data), "rows.xlsx.gz")
    assert _load(dataset)["query"].to_list() == ["q"]
    assert dataset.digest() == hashlib.sha256(data).hexdigest()


def test_spreadsheets_are_claimed_by_name() -> None:
    assert [claims(Path(name), "") for name in ("a.XLSX", "a.xlsx.zst", "a.xls")] == [True, True, False]
    assert DIALECT.name == "xlsx"
