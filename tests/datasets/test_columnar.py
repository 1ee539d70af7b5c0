"""Parquet and Arrow IPC: standard columns by name, bad rows named, torn files refused."""

from __future__ import annotations

import datetime as dt
import gzip
import hashlib
import json
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
import zstandard

from assay.config import Reading
from assay.datasets.columnar import ARROW, PARQUET
from assay.datasets.files import Input
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.datasets.contract import Dataset

    Save = Callable[..., Path]

pa: Any = import_module("pyarrow")  # its stubs leave many types open
pq: Any = import_module("pyarrow.parquet")


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write columns to a file whose name says its form."""

    def save_columns(columns: Any, name: str = "rows.parquet") -> Path:
        path = tmp_path / name
        table = pa.table(columns)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)
        return path

    return save_columns


def _open(path: Path, **reading: Any) -> Dataset:
    dialect = PARQUET if ".parquet" in path.name else ARROW
    return dialect.open(Input(path, path.name, Reading(**reading)))


def _load(path: Path, **reading: Any) -> pl.DataFrame:
    dataset = _open(path, **reading)
    blocks = list(dataset.blocks)
    dataset.faults.raise_any()
    return pl.concat(blocks)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow", "rows.feather"])
def test_standard_columns_are_taken_by_name_and_texts_stay(name: str, save: Save) -> None:
    columns = {
        "testId": ["007", None],
        "prompt": ["2024-01-05", ""],
        "ground_truth": [None, "null"],
        "expected_response": ["1.10", "x"],
        "tags": [["a", ""], None],
        "note": ["\u2028", '"'],
    }
    rows = _load(save(columns, name))
    assert rows.select("id", "query", "expected_response", "source_line", "item_index").rows() == [
        ("007", "2024-01-05", "1.10", 1, 0),
        (None, "", "null", 2, 1),
    ]
    assert rows["tags"].to_list() == [["a"], None]
    assert [list(json.loads(text)) for text in rows["item_json"]] == [list(columns)] * 2
    assert json.loads(rows["item_json"][1])["note"] == '"'


def test_numbers_and_lists_stand_in_standard_columns_as_json(save: Save) -> None:
    rows = _load(
        save(
            {
                "id": [9007199254740993, None],
                "query": ["q", "r"],
                "context": [["a", "b"], None],
                "response": [1.0, 2.5],
            }
        )
    )
    assert rows.select("id", "query", "context", "response").rows() == [
        ("9007199254740993", "q", '["a","b"]', "1.0"),
        (None, "r", None, "2.5"),
    ]


def test_messages_may_be_nested_or_json_text(save: Save) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    nested = _load(save({"messages": [messages]}))
    text = _load(save({"messages": [json.dumps(messages)]}))
    for rows in (nested, text):
        assert rows.select("query", "response").rows() == [("Hi", "Hello")]
        assert json.loads(rows["messages_json"][0]) == messages
    assert isinstance(json.loads(nested["item_json"][0])["messages"], list)
    assert isinstance(json.loads(text["item_json"][0])["messages"], str)


def test_declared_columns_are_json_and_a_bad_one_is_named_with_its_row(save: Save) -> None:
    path = save({"query": ["q", "q"], "meta": ['{"n": 1.10}', "{"]})
    with pytest.raises(InputError, match=r"rows\.parquet:2: column meta is text that is not JSON"):
        _load(path, json_columns=("meta",))
    (block,) = _open(path, json_columns=("meta",), on_bad_row="quarantine").blocks
    assert block["item_json"].to_list() == ['{"query":"q","meta":{"n": 1.10}}']


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([1.0, float("nan"), float("-inf")], "column x: NaN or Infinity is not JSON"),
        ([[1.0], [float("inf")], [None, float("nan")]], "column x: NaN or Infinity is not JSON"),
        ([dt.date(1, 1, 1), 2**30, -(2**30)], "column x: a date outside the years 1 to 9999"),
        ([None, [2**62], [-(2**62)]], "column x: a date outside the years 1 to 9999"),
        ([[], [("k", 1), ("k", 2)], [("a", 1), ("a", 1)]], "column x: a map that names a key twice"),
    ],
)
def test_a_value_without_a_text_makes_a_bad_row(column: list[Any], message: str, save: Save) -> None:
    kinds = {"date": pa.date32(), "map": pa.map_(pa.string(), pa.int64())}
    kind = next((kind for word, kind in kinds.items() if word in message), None)
    if column[0] is None:
        kind = pa.list_(pa.timestamp("us"))
    array = pa.array(column, kind)
    dataset = _open(save({"x": array, "id": ["a", "b", "c"]}), on_bad_row="quarantine")
    (block,) = dataset.blocks
    assert block.select("id", "source_line", "item_index").rows() == [("a", 1, 0)]
    faults = dataset.faults.take()
    assert [(fault.line, fault.message) for fault in faults] == [(2, message), (3, message)]
    assert [json.loads(fault.text)["id"] for fault in faults] == ["b", "c"]
    with pytest.raises(InputError, match="2 bad rows"):
        dataset.faults.raise_any()


def test_a_lenient_reading_takes_nan_as_null_and_says_how_often(save: Save) -> None:
    path = save({"response": [1.0, float("nan")], "y": [[float("inf")], [2.0]], "z": [0.5, 0.5]})
    dataset = _open(path, lenient=True)
    (block,) = dataset.blocks
    assert block["item_json"].to_list() == [
        '{"response":1.0,"y":[null],"z":0.5}',
        '{"response":null,"y":[2.0],"z":0.5}',
    ]
    assert block["response"].to_list() == ["1.0", None]
    assert [(notice.code, notice.line, notice.message) for notice in dataset.faults.notices] == [
        ("lenient", 2, "column response: NaN or Infinity read as null in 1 rows"),
        ("lenient", 1, "column y: NaN or Infinity read as null in 1 rows"),
    ]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([b"ok", b"\xff"]), "column 'x' holds bytes that are not UTF-8 text"),
        (pa.array([[b"\xff"]]), "column 'x' holds bytes that are not UTF-8 text"),
        (pa.array([b"\xff"]).view(pa.string()), "column 'x': Invalid UTF8 sequence at string index 0"),
        (
            pa.array([[(1.5, 1)]], pa.map_(pa.float64(), pa.int64())),
            "maps whose keys are neither text nor integers",
        ),
        (
            pa.array([Decimal("1" * 45)], pa.decimal256(50, 0)),
            "column 'x': Decimal value does not fit in precision 38",
        ),
        (
            pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
            "column 'x' is of type month_day_nano_interval; accepted",
        ),
    ],
)
def test_a_column_without_text_is_refused_by_name(column: Any, message: str, save: Save) -> None:
    with pytest.raises(InputError, match=message):
        _load(save({"x": column}, "rows.arrow"))


def test_a_column_named_twice_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="column 'a' appears twice"):
        _load(tmp_path / "rows.parquet")


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_a_torn_or_foreign_file_is_refused_by_name(name: str, save: Save, tmp_path: Path) -> None:
    data = save({"x": list(range(5000))}, name).read_bytes()
    for wrong in (data[:-30], data[:100], b"PAR1", b"hello", b"\0" * 64):
        (tmp_path / name).write_bytes(wrong)
        with pytest.raises(InputError, match=rf"{name}: cannot be read as (Parquet|Arrow IPC): "):
            _load(tmp_path / name)


def test_files_without_rows_columns_or_bytes_give_what_they_hold(save: Save, tmp_path: Path) -> None:
    empty = pa.array([], pa.string())
    assert list(_open(save({"query": empty})).blocks) == []
    (tmp_path / "zero.arrow").write_bytes(b"")
    assert list(_open(tmp_path / "zero.arrow").blocks) == []
    bare = pa.table({"x": [1, 2]}).select([])
    rows = _load(save(bare, "rows.arrow"))
    assert rows.select("item_json", "source_line").rows() == [("{}", 1), ("{}", 2)]


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
def test_packed_files_are_read_and_hashed_as_plain_ones(
    pack: Any, name: str, save: Save, tmp_path: Path
) -> None:
    plain = save({"query": ["a", "b"]}, name)
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(pack(plain.read_bytes()))
    dataset = _open(packed)
    (block,) = dataset.blocks
    assert block["query"].to_list() == ["a", "b"]
    assert dataset.digest() == _open(plain).digest() == hashlib.sha256(plain.read_bytes()).hexdigest()
    packed.write_bytes(pack(plain.read_bytes())[:-9])
    with pytest.raises(InputError, match=f"{name}.gz: unexpected end of"):
        _open(packed)


def test_a_stream_of_arrow_is_read_as_a_file_of_it(tmp_path: Path) -> None:
    table = pa.table({"query": ["a", "b", "c"]})
    with pa.ipc.new_stream(str(tmp_path / "rows.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    assert _load(tmp_path / "rows.arrow").select("query", "item_index").rows() == [
        ("a", 0),
        ("b", 1),
        ("c", 2),
    ]


@pytest.mark.parametrize(
    ("name", "dialect"), [("a.PARQUET.gz", PARQUET), ("a.ipc", ARROW), ("b.feather.zst", ARROW)]
)
def test_files_are_claimed_by_name(name: str, dialect: Any) -> None:
    assert [each.claims(Path(name), "") for each in (PARQUET, ARROW)] == [
        dialect is PARQUET,
        dialect is ARROW,
    ]


@pytest.mark.parametrize("name", ["zero.parquet", "header_only.parquet"])
def test_torn_files_of_the_field_are_refused(name: str, field: Path) -> None:
    if name.startswith("zero"):
        assert list(_open(field / "F066" / name).blocks) == []
    else:
        with pytest.raises(InputError, match="cannot be read as Parquet"):
            _load(field / "F066" / name)
