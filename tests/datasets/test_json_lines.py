"""JSON lines: what is refused and where, and the fast way beside the slow one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import Reading
from assay.contracts.json_text import JsonValue, parse_json
from assay.datasets import json_lines
from assay.datasets.faults import Faults
from assay.datasets.json_lines import Block, parse_block
from assay.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {"x": ("a", "b"), "y": ("none",), "z": ("c",)}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(("a", "b", "c", "d", "\u00e4", '"', ""))
PIECES = st.sampled_from(
    (
        '"a"',
        '"b"',
        ":",
        ",",
        "{",
        "}",
        "[",
        "]",
        " ",
        '"\\u0022"',
        '"\\ud83d"',
        "NaN",
        "1.10",
        "-0",
        "1e5",
        "9" * 20,
    )
)


def _parse(text: str, reading: Reading | None = None) -> tuple[Block, Faults]:
    faults = Faults("a.jsonl")
    numbered = [
        (n, line) for n, line in enumerate(text.encode().split(b"\n"), start=1) if line.strip(b" \t\r")
    ]
    block = parse_block(
        [n for n, _ in numbered],
        [line.rstrip(b" \t\r") for _, line in numbered],
        NAMES,
        faults,
        reading or Reading(),
    )
    return block, faults


def _lines(text: str) -> Block:
    block, faults = _parse(text)
    faults.raise_any()
    return block


def _refuse(_: object) -> None:
    """Take nothing, as the fast way does with what only the slow way can judge."""


def _spell(values: list[JsonValue]) -> list[str]:
    return [str(getattr(value, "text", value)) for value in values]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ('{"a":1}\n{"b":"to', 2, 6, "not JSON: Unterminated string"),
        ('{"a":1}\n\nERROR timeout\n{"a":2}', 3, 1, "not JSON: Expecting value"),
        ('{"a":1}\n  {"a":1} {"a":2}', 2, 10, "a second value on the line"),
        ('{"a":1}\n["a"]', 2, None, "a list, expected an object"),
        ('{"a":1}\n{"a":1,"a":2}', 2, 8, "key 'a' appears twice"),
        ('{"a":1}\n{"a":NaN}', 2, 6, "NaN is not JSON"),
        ('{"a":1}\n{"a":"\\udc00"}', 2, 7, "half of a surrogate pair"),
    ],
)
def test_a_faulty_line_is_placed(text: str, line: int, column: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        _lines(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_all_bad_lines_are_in_one_message_and_the_first_is_the_place() -> None:
    with pytest.raises(InputError) as caught:
        _lines('{"a":1}\n' + "oops\n" * 25)
    assert caught.value.line == 2
    assert "25 bad lines:" in caught.value.message
    assert caught.value.message.count("\n  line ") == 20
    assert caught.value.message.endswith("and 5 more")


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("F017/torn_tail.jsonl", "3:11"),
        ("F017/garbage_middle.jsonl", "2:1"),
        ("F017/two_per_line.jsonl", "1:23"),
        ("F017/non_object.jsonl", "2"),
        ("F017/pretty.jsonl", "1:2"),
        ("F013/nan.jsonl", "101:21"),
        ("F016/dup_keys.jsonl", "1:40"),
    ],
)
def test_broken_lines_of_the_field_are_placed(name: str, place: str, field: Path) -> None:
    with pytest.raises(InputError) as caught:
        _lines((field / name).read_text("utf-8"))
    assert str(caught.value).startswith(f"a.jsonl:{place}: ")


def test_lines_keep_number_and_text() -> None:
    block = _lines('\n  {"a": 1.10}\r\n \t\n{"b":"\u2028"}')
    assert block.numbers == [2, 4]
    assert block.text_series.to_list() == ['{"a": 1.10}', '{"b":"\u2028"}']


def test_picked_numbers_keep_their_spelling_and_the_first_value_counts() -> None:
    block = _lines('{"a": null, "b": 1.10}\n{"b": 2, "a": 10000000000000000000000}')
    assert list(block.cells) == ["x"]
    assert _spell(block.cells["x"]) == ["1.10", "1" + "0" * 22]


@given(rows=st.lists(st.dictionaries(KEYS, VALUES, max_size=4), max_size=5), ascii_only=st.booleans())
def test_any_object_is_read_as_it_is(rows: list[dict[str, Any]], ascii_only: bool) -> None:
    block = _lines("\n".join(json.dumps(row, ensure_ascii=ascii_only) for row in rows))
    assert [json.loads(text) for text in block.text_series] == rows
    wanted = [next((row[key] for key in ("a", "b") if row.get(key) is not None), None) for row in rows]
    assert block.cells.get("x", [None] * len(rows)) == wanted


@given(lines=st.lists(st.lists(PIECES, max_size=12), min_size=1, max_size=4))
def test_the_fast_way_takes_and_refuses_what_the_slow_way_does(lines: list[list[str]]) -> None:
    text = "\n".join("{" + "".join(pieces) + "}" for pieces in lines)
    block, faults = _parse(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "_parse_plainly", _refuse)
        slow, slow_faults = _parse(text)
    assert (block.numbers, block.texts, faults.rows) == (slow.numbers, slow.texts, slow_faults.rows)
    assert {name: _spell(cells) for name, cells in block.cells.items()} == {
        name: _spell(cells) for name, cells in slow.cells.items()
    }


@pytest.mark.parametrize("depth", [252, 253, 254, 300, 2000])
def test_the_fast_way_knows_the_depth_that_the_slow_way_allows(depth: int) -> None:
    text = '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"
    _, faults = _parse(text)
    assert len(faults) == (depth > 253)


def test_a_repeated_key_is_found_behind_an_escaped_quote() -> None:
    _, faults = _parse(r'{"a":1,"a":"\u0022\u0022"}' + "\n" + r'{"a":"\u0022"}')
    assert faults.rows == {1}


def test_a_lenient_reading_takes_what_python_writes() -> None:
    block, faults = _parse(
        '{"a": NaN, "c": 1}\n{"a": "old", "a": "new"}\n{"a": [Infinity]}', Reading(lenient=True)
    )
    assert block.cells["x"] == [None, "new", [None]]
    assert [parse_json(text) for text in block.text_series][1:] == [{"a": "new"}, {"a": [None]}]
    assert [(notice.line, notice.code) for notice in faults.notices] == [
        (1, "lenient"),
        (2, "lenient"),
        (3, "lenient"),
    ]
    assert len(faults) == 0


def test_columns_declared_as_json_are_opened_and_broken_ones_refused() -> None:
    text = '{"a": "[1, 2.50]", "d": 1.10}\n{"a": "[1,"}\n{"a": null}\n{"a": {"b": 1}}'
    block, faults = _parse(text, Reading(json_columns=("a",)))
    assert block.text_series[0] == '{"a":[1,2.50],"d":1.10}'
    assert (block.numbers, faults.rows) == ([1, 3, 4], {2})


def test_a_bad_byte_is_a_fault_of_its_line_alone() -> None:
    faults = Faults("a.jsonl")
    block = parse_block([1, 2], [b'{"a":"\xfc"}', b'{"a":"b"}'], NAMES, faults, Reading())
    assert (block.numbers, block.cells["x"]) == ([2], ["b"])
    with pytest.raises(InputError, match=r"a\.jsonl:1: byte 0xFC is not UTF-8; name the encoding"):
        faults.raise_any()
