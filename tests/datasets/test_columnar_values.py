"""Values of Parquet and Arrow IPC: each keeps its exact text in `item_json`."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import UUID

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from assay.datasets.columnar import open_columns
from assay.datasets.files import Input

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Save = Callable[..., Path]

pa: Any = import_module("pyarrow")  # its stubs leave many types open
pq: Any = import_module("pyarrow.parquet")
MOMENT = 1_704_448_800_123_456_789  # nanoseconds; 2024-01-05 10:00 UTC
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
SCALARS = [
    (pl.String(), TEXTS),
    (pl.Int64(), st.integers(-(2**63), 2**63 - 1)),
    (pl.UInt64(), st.integers(0, 2**64 - 1)),
    (pl.Int128(), st.integers(-(2**127), 2**127 - 1)),
    (pl.Float64(), st.floats(allow_nan=False, allow_infinity=False)),
    (pl.Boolean(), st.booleans()),
    (pl.Categorical(), TEXTS),
]


def _nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Lists and structs of types with their values."""

    def struct(fields: dict[str, tuple[pl.DataType, st.SearchStrategy[Any]]]) -> Any:
        values = {name: st.none() | value for name, (_, value) in fields.items()}
        return pl.Struct({name: kind for name, (kind, _) in fields.items()}), st.fixed_dictionaries(values)

    lists = inner.map(lambda pair: (pl.List(pair[0]), st.lists(st.none() | pair[1], max_size=3)))
    return lists | st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(struct)


TYPES = st.recursive(
    st.sampled_from(SCALARS).filter(lambda pair: pair[0] != pl.Int128()), _nest, max_leaves=4
)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Write columns to a file whose name says its form."""

    def save_columns(columns: Any, name: str = "rows.parquet") -> Path:
        path = tmp_path / name
        table: Any = pa.table(columns)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(str(path), table.schema) as writer:
                writer.write_table(table)
        return path

    return save_columns


def _load(path: Path) -> pl.DataFrame:
    form = "Parquet" if path.suffix == ".parquet" else "Arrow IPC"
    dataset = open_columns(Input(path, path.name), "x", form)
    blocks = list(dataset.blocks)
    dataset.faults.raise_any()
    return pl.concat(blocks)


def _texts(path: Path) -> list[str]:
    """Values of the column `x` as they are spelt."""
    return [text.removeprefix('{"x":').removesuffix("}") for text in _load(path)["item_json"]]


@pytest.mark.parametrize("name", ["rows.parquet", "rows.ipc"])
@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([2**63 - 1, -(2**63), None], pa.int64(), [str(2**63 - 1), str(-(2**63)), "null"]),
        ([2**64 - 1], pa.uint64(), [str(2**64 - 1)]),
        ([1.0, 0.1, 1e300, -0.0], pa.float64(), ["1.0", "0.1", "1e+300", "-0.0"]),
        ([0.1, 16777216.0], pa.float32(), ["0.1", "16777216.0"]),
        ([1.5], pa.float16(), ["1.5"]),
        ([Decimal("1.10"), Decimal("-0.05")], pa.decimal128(9, 2), ["1.10", "-0.05"]),
        ([Decimal("1.10")], pa.decimal256(50, 2), ["1.10"]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([dt.date(2024, 1, 5), dt.date(1, 1, 1)], pa.date32(), ['"2024-01-05"', '"0001-01-01"']),
        ([dt.date(2024, 1, 5)], pa.date64(), ['"2024-01-05"']),
        ([MOMENT], pa.timestamp("ns"), ['"2024-01-05T10:00:00.123456789"']),
        ([MOMENT // 10**9], pa.timestamp("s", "UTC"), ['"2024-01-05T10:00:00+00:00"']),
        ([MOMENT // 10**6], pa.timestamp("ms", "Europe/Berlin"), ['"2024-01-05T11:00:00.123+01:00"']),
        ([dt.time(1, 2, 3, 400)], pa.time64("us"), ['"01:02:03.000400"']),
        ([dt.timedelta(days=1, seconds=2)], pa.duration("ms"), ['"P1DT2S"']),
        ([b"ab", "ö".encode(), None], pa.binary(), ['"ab"', '"ö"', "null"]),
        ([b"ab"], pa.binary(2), ['"ab"']),
        ([None, None], pa.null(), ["null", "null"]),
        (["b", "a", None], pa.dictionary(pa.int8(), pa.string()), ['"b"', '"a"', "null"]),
        (["x"], pa.large_string(), ['"x"']),
        ([[1.5, None], [], None], pa.large_list(pa.float64()), ["[1.5,null]", "[]", "null"]),
        ([[1, 2], None], pa.list_(pa.int8(), 2), ["[1,2]", "null"]),
        (
            [[("k", 1), ("ö", None)], [], None],
            pa.map_(pa.string(), pa.int64()),
            ['{"k":1,"ö":null}', "{}", "null"],
        ),
        ([[(5, [1])]], pa.map_(pa.int32(), pa.list_(pa.int8())), ['{"5":[1]}']),
        ([[MOMENT, None]], pa.list_(pa.timestamp("ns")), ['["2024-01-05T10:00:00.123456789",null]']),
        (
            [{"a": Decimal("1.10"), "b": dt.date(2024, 1, 5)}, {"a": None, "b": None}, None],
            pa.struct([("a", pa.decimal128(5, 2)), ("b", pa.date32())]),
            ['{"a":1.10,"b":"2024-01-05"}', '{"a":null,"b":null}', "null"],
        ),
    ],
)
def test_values_keep_their_exact_text(
    values: list[Any], kind: Any, texts: list[str], name: str, save: Save
) -> None:
    column = pa.array(values, kind)
    assert _texts(save({"x": column}, name)) == texts


@pytest.mark.parametrize("kind", [pl.Int128, pl.Decimal(38, 0)])
def test_integers_of_any_width_are_exact(kind: Any, tmp_path: Path) -> None:
    pl.DataFrame({"x": [10**37, -1]}, schema={"x": kind}).write_parquet(tmp_path / "rows.parquet")
    assert _texts(tmp_path / "rows.parquet") == [str(10**37), "-1"]


def test_a_uuid_is_written_as_text(save: Save) -> None:
    value = UUID("550e8400-e29b-41d4-a716-446655440000")
    column = pa.array([value.bytes, None], pa.uuid())
    assert _texts(save({"x": column})) == [f'"{value}"', "null"]


def test_three_thousand_columns_are_read(save: Save) -> None:
    columns = {f"c{n}": [n, None] if n % 3 else [str(n), ""] for n in range(3000)}
    first, second = [json.loads(text) for text in _load(save(columns))["item_json"]]
    assert first == {name: values[0] for name, values in columns.items()}
    assert second == {name: values[1] for name, values in columns.items()}


@given(data=st.data(), height=st.integers(1, 4), form=st.sampled_from(["Parquet", "Arrow IPC"]))
def test_any_value_of_any_type_survives(
    data: st.DataObject, height: int, form: Any, tmp_path_factory: Any
) -> None:
    columns = data.draw(st.dictionaries(NAMES, TYPES, min_size=1, max_size=3))
    rows = [
        {name: data.draw(st.none() | values) for name, (_, values) in columns.items()} for _ in range(height)
    ]
    frame = pl.DataFrame(rows, schema={name: kind for name, (kind, _) in columns.items()})
    path = tmp_path_factory.mktemp("any") / "rows"
    if form == "Parquet":
        frame.write_parquet(path)
    else:
        frame.write_ipc(path, compression=data.draw(st.sampled_from(["uncompressed", "zstd"])))
    file = Input(path, "rows")
    blocks = pl.concat(open_columns(file, "x", form, size=data.draw(st.sampled_from([1, 1 << 20]))).blocks)
    assert [json.loads(text) for text in blocks["item_json"]] == rows
    assert_frame_equal(blocks, pl.concat(open_columns(file, "x", form).blocks))


def test_names_that_look_like_patterns_are_names(save: Save) -> None:
    inner = pa.array([{"*": 1, "^x$": "a"}, None])
    columns = {"^x.*$": [1, None], "*": ["a", None], "x": [1.5, None], "": ["b", None], "^.*$": inner}
    first, second = _load(save(columns))["item_json"]
    assert json.loads(first) == {"^x.*$": 1, "*": "a", "x": 1.5, "": "b", "^.*$": {"*": 1, "^x$": "a"}}
    assert json.loads(second) == dict.fromkeys(columns)


def test_looks_of_texts_do_not_matter(save: Save) -> None:
    values = [
        "2024-01-05",
        "2024-01-05T10:00:00Z",
        "12:30",
        "550e8400-e29b-41d4-a716-446655440000",
        "0042",
        "1e5",
    ]
    assert _load(save({"expected_response": values}))["expected_response"].to_list() == values


@pytest.mark.parametrize("nested", [False, True])
def test_what_lies_under_a_null_is_never_looked_at(nested: bool, tmp_path: Path) -> None:
    column = pa.array(["q1", None], pa.string_view())
    column = pa.StructArray.from_arrays([column], ["a"]) if nested else column
    table = pa.table({"x": column})
    with pa.ipc.new_file(str(tmp_path / "rows.arrow"), table.schema) as writer:
        writer.write_table(table)
    data = (tmp_path / "rows.arrow").read_bytes()
    view = b"\2\0\0\0q1" + b"\0" * 10
    assert view + b"\0" * 16 in data
    (tmp_path / "rows.arrow").write_bytes(data.replace(view + b"\0", view + b"\x33"))
    assert _texts(tmp_path / "rows.arrow") == (['{"a":"q1"}', '{"a":null}'] if nested else ['"q1"', "null"])
