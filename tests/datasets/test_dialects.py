"""What every dialect keeps to."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from assay.contracts.tables import ROWS, conform
from assay.datasets.dialects import DIALECTS
from assay.datasets.files import Input, read_head
from assay.datasets.reader import read_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[str, str | bytes], str]

OBJECTS: list[dict[str, str | None]] = [
    {"id": "a", "query": "Größe?", "response": "8.0"},
    {"id": "b", "query": "\u2028", "response": None},
]


def _pack(how: str) -> bytes:
    """Write the objects as a table of Arrow's."""
    buffer = io.BytesIO()
    frame = pl.DataFrame(OBJECTS)
    if how == "parquet":
        frame.write_parquet(buffer)
    else:
        frame.write_ipc(buffer)
    return buffer.getvalue()


MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
BOOK_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"


def _link(kind: str, target: str) -> str:
    link = f'<Relationship Id="a" Type="{OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{PACKAGE}/relationships">{link}</Relationships>'


def _cell(text: str | None) -> str:
    return f'<c t="inlineStr"><is><t>{text}</t></is></c>' if text else "<c/>"


def _book() -> bytes:
    """Write the objects as a spreadsheet with as few parts as a reader needs."""
    table = [list(OBJECTS[0]), *(list(row.values()) for row in OBJECTS)]
    rows = "".join(f"<row>{''.join(map(_cell, cells))}</row>" for cells in table)
    types = f'<Override PartName="/xl/workbook.xml" ContentType="{BOOK_TYPE}"/>'
    sheets = '<sheets><sheet name="S" sheetId="1" r:id="a"/></sheets>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{types}</Types>',
        "_rels/.rels": _link("officeDocument", "xl/workbook.xml"),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}">{sheets}</workbook>',
        "xl/_rels/workbook.xml.rels": _link("worksheet", "worksheets/s.xml"),
        "xl/worksheets/s.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>',
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


SAMPLES: dict[str, tuple[str, str | bytes]] = {
    "m365": (
        "evals.json",
        '[{"prompt": "Größe?", "id": "a"}, {"turns": [{"prompt": "x"}]}]',
    ),
    "foundry": ("rows.jsonl", "\n".join(json.dumps(value) for value in OBJECTS)),
    "uipath": (
        "evals/eval-sets/set.json",
        '{"id": "s", "evaluations": [{"id": "a", "inputs": {"x": "Größe?"}}, {"id": "b", "inputs": {}}]}',
    ),
    "csv": ("rows.csv", "id,query,response\na,Größe?,8.0\nb,\u2028,\n"),
    "json": ("rows.json", json.dumps(OBJECTS)),
    "parquet": ("rows.parquet", _pack("parquet")),
    "arrow": ("rows.arrow", _pack("arrow")),
    "xlsx": ("rows.xlsx", _book()),
}
SOURCES: dict[str, list[dict[str, Any]]] = {
    "m365": [{"prompt": "Größe?", "id": "a"}, {"prompt": "x"}],
    "foundry": OBJECTS,
    "uipath": [{"id": "a", "inputs": {"x": "Größe?"}}, {"id": "b", "inputs": {}}],
    **dict.fromkeys(("csv", "json", "parquet", "arrow", "xlsx"), OBJECTS),
}
NAMES = [dialect.name for dialect in DIALECTS]
TEXTS = [name for name, (_, content) in SAMPLES.items() if isinstance(content, str)]


@pytest.mark.parametrize("name", NAMES)
def test_rows_keep_the_contract(name: str, write: Write) -> None:
    (document,) = read_documents([write(*SAMPLES[name])])
    assert dict(document.rows.schema) == dict(ROWS.columns)
    assert_frame_equal(conform(document.rows, ROWS), document.rows)
    assert document.dialect == name
    assert document.rows["item_index"].to_list() == [0, 1]
    assert not document.rows.select(ROWS.key).is_duplicated().any()
    assert document.rows["source_file"].unique().to_list() == [document.path]


@pytest.mark.parametrize("name", NAMES)
def test_item_json_gives_back_the_source_object(name: str, write: Write) -> None:
    (document,) = read_documents([write(*SAMPLES[name])])
    found = [json.loads(text) for text in document.rows["item_json"]]
    assert [{key: item[key] for key in item if key != "thread"} for item in found] == SOURCES[name]


@pytest.mark.parametrize("name", NAMES)
def test_the_hash_is_that_of_the_bytes_whatever_the_compression(name: str, write: Write) -> None:
    file, content = SAMPLES[name]
    data = content.encode() if isinstance(content, str) else content
    plain, packed = write(file, data), write(f"{file}.gz", gzip.compress(data))
    documents = read_documents([plain, packed])
    assert {document.sha256 for document in documents} == {hashlib.sha256(data).hexdigest()}


@pytest.mark.parametrize("name", NAMES)
def test_reading_twice_gives_the_same_document(name: str, write: Write) -> None:
    path = write(*SAMPLES[name])
    first, second = read_documents([path, path])
    assert_frame_equal(first.rows, second.rows)
    assert (first.defaults, first.sha256, first.warnings) == (second.defaults, second.sha256, second.warnings)


@pytest.mark.parametrize("name", TEXTS)
def test_line_ends_and_byte_order_marks_change_no_cell(name: str, write: Write) -> None:
    file, text = SAMPLES[name]
    assert isinstance(text, str)
    plain = read_documents([write(file, text)])[0].rows
    marked = read_documents([write(file, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())])[0].rows
    assert_frame_equal(plain, marked)


@pytest.mark.parametrize("name", NAMES)
def test_one_dialect_alone_claims_a_file(name: str, write: Write) -> None:
    file = Input(Path(path := write(*SAMPLES[name])), path)
    head = read_head(file).decode("utf-8", "replace")
    assert [dialect.name for dialect in DIALECTS if dialect.claims(file.path, head)] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_text_reaches_the_columns_unchanged(name: str, write: Write) -> None:
    rows = read_documents([write(*SAMPLES[name])])[0].rows
    assert rows["query"][0] == "Größe?"
    assert rows["id"][0] == "a"
    assert rows.select(pl.col("turn", "turn_count")).unique().rows() == [(0, 1)]
