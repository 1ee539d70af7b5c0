"""What every dialect keeps to."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from assay.contracts.tables import ROWS, conform
from assay.datasets.dialects import DIALECTS
from assay.datasets.files import read_head
from assay.datasets.reader import read_documents

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[str, str | bytes], str]

OBJECTS = [
    {"id": "a", "query": "Größe?", "response": "8.0"},
    {"id": "b", "query": "\u2028", "response": None},
]
SAMPLES: dict[str, tuple[str, str]] = {
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
}
SOURCES: dict[str, list[dict[str, Any]]] = {
    "m365": [{"prompt": "Größe?", "id": "a"}, {"prompt": "x"}],
    "foundry": OBJECTS,
    "uipath": [{"id": "a", "inputs": {"x": "Größe?"}}, {"id": "b", "inputs": {}}],
    "csv": OBJECTS,
}
NAMES = [dialect.name for dialect in DIALECTS]


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
    file, text = SAMPLES[name]
    plain, packed = write(file, text), write(f"{file}.gz", gzip.compress(text.encode()))
    documents = read_documents([plain, packed])
    assert {document.sha256 for document in documents} == {hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize("name", NAMES)
def test_reading_twice_gives_the_same_document(name: str, write: Write) -> None:
    path = write(*SAMPLES[name])
    first, second = read_documents([path, path])
    assert_frame_equal(first.rows, second.rows)
    assert (first.defaults, first.sha256, first.warnings) == (second.defaults, second.sha256, second.warnings)


@pytest.mark.parametrize("name", NAMES)
def test_line_ends_and_byte_order_marks_change_no_cell(name: str, write: Write) -> None:
    file, text = SAMPLES[name]
    plain = read_documents([write(file, text)])[0].rows
    marked = read_documents([write(file, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())])[0].rows
    assert_frame_equal(plain, marked)


@pytest.mark.parametrize("name", NAMES)
def test_one_dialect_alone_claims_a_file(name: str, write: Write) -> None:
    path = Path(write(*SAMPLES[name]))
    head = read_head(path, shown=str(path))
    assert [dialect.name for dialect in DIALECTS if dialect.claims(path, head)] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_text_reaches_the_columns_unchanged(name: str, write: Write) -> None:
    rows = read_documents([write(*SAMPLES[name])])[0].rows
    assert rows["query"][0] == "Größe?"
    assert rows["id"][0] == "a"
    assert rows.select(pl.col("turn", "turn_count")).unique().rows() == [(0, 1)]
