from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.contracts.json_text import dump_json, parse_json
from transforms.templates import MISSING, Missing, Reference, look_up
from transforms.values import read_json, read_texts

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue

KEYS = ["a", "b", "a", "b", "a", "b", "a.b", "a.b.c", "é", "x y", "q\\", 'c"a', "b/", "", "ab", "\n"]
TEXTS = [
    '"a":1',
    '{"a":1}',
    'x","a":"y',
    '\\"a\\":2',
    ',"b": {',
    "}",
    "{",
    "{}",
    "{{item.a}}",
    "\\",
    '"',
    "null",
    "-0",
    "1.10",
    "[1]",
    "{x} and {y}",
    "line\nbreak",
    "ü\u2028\x00",
    "",
]
NUMBERS = ["0", "-0", "-0.0", "1.10", "1e5", "1E-7", "-0e1", "0.00001", "1" * 31, "1234567.12345678912", "42"]


def look(text: str, path: tuple[str | int, ...]) -> JsonValue | Missing:
    return look_up(parse_json(text), path)


def spell(text: str) -> Any:
    """A JSON string as any writer may spell it."""
    return st.sampled_from([dump_json(text), json.dumps(text), json.dumps(text).replace("/", "\\/")])


LITERAL: Any = (st.sampled_from(TEXTS) | st.text(max_size=5)).flatmap(spell)
LEAF: Any = LITERAL | st.sampled_from([*NUMBERS, "true", "false", "null"])
GAP: Any = st.sampled_from(["", "", " ", "\t ", "\n"])


@st.composite
def spelt_objects(draw: Any, members: Any) -> str:
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, min_size=draw(st.integers(0, 3)), max_size=5))
    pairs = [f"{draw(spell(key))}{draw(GAP)}:{draw(GAP)}{draw(members)}" for key in keys]
    return "{" + draw(GAP) + f"{draw(GAP)},{draw(GAP)}".join(pairs) + draw(GAP) + "}"


def spelt_arrays(members: Any) -> Any:
    return st.lists(members, max_size=3).map(lambda texts: f"[{', '.join(texts)}]")


TREE: Any = st.recursive(LEAF, lambda inner: spelt_objects(inner) | spelt_arrays(inner), max_leaves=10)
ROW: Any = spelt_objects(LEAF | spelt_objects(LEAF) | TREE)
STEP: Any = st.sampled_from(KEYS) | st.integers(-2, 2)


@st.composite
def cases(draw: Any) -> tuple[list[str], tuple[str | int, ...]]:
    """Some rows, and a path: any, or one that leads somewhere in the first row."""
    rows = draw(st.lists(ROW, min_size=1, max_size=4))
    if draw(st.integers(0, 3)) == 0:
        return rows, draw(st.lists(STEP, max_size=3).map(tuple))
    path: list[str | int] = []
    value, depth = look(rows[0], ()), draw(st.integers(1, 3))
    while isinstance(value, dict | list) and value and len(path) < depth:
        steps: list[str | int] = list(value) if isinstance(value, dict) else list(range(len(value)))
        path.append(draw(st.sampled_from(steps)))
        value = look(rows[0], tuple(path))
    return rows, tuple(path)


def assert_same(rows: list[str], path: tuple[str | int, ...]) -> None:
    frame = pl.DataFrame({"item_json": rows}, schema={"item_json": pl.String})
    reference = Reference("item", path)
    texts, typed = read_texts(frame, [reference])[reference], read_json(frame, [reference])[reference]
    found = [look(row, path) for row in rows]
    missing = [value is MISSING for value in found]
    assert texts.missing.to_list() == missing
    assert typed.missing.to_list() == missing
    known = [None if value is MISSING else dump_json(value) for value in found]
    assert typed.values.to_list() == known
    plain = [value if isinstance(value, str) else text for value, text in zip(found, known, strict=True)]
    assert texts.values.to_list() == [
        None if text == "null" and v is None else text for text, v in zip(plain, found, strict=True)
    ]


@given(cases())
@example((['{"a":{"x":"}", "b":1},"c":2}'], ("b",)))
@example((['{"m":{"b":"}", "a":1}}'], ("a",)))
@example((['{"m":{"b":"}", "a":1, "c":"}{"}}'], ("a",)))
@example((['{"m":{"b":1},"a":"}{"}'], ("a",)))
@example((['{"m":[{"a":1}],"t":"{","a":2}'], ("a",)))
@example((['{"a":"use {x} and","u":" to"}'], ("a",)))
@example((['[{"a":1}]', ' {"a":1} ', '"{\\"a\\":1}"', "1", "null"], ("a",)))
@example((['{"k":"a","l":["a"],"a":1}'], ("a",)))
@example((['{"c\\"a":1,"a":2}'], ("a",)))
@example((['{"c\\"a":{"b":1}}'], ("a", "b")))
@example((['{"\\u0061":1,"b":{"a":2}}'], ("a",)))
@example((['{"a":{"b":null},"a.b":1}', '{"a":{"c":1},"a.b":1}', '{"a":null,"a.b":1}'], ("a", "b")))
@example((['{"a":{"c":1},"b":{"b":2}}', '{"b":{"b":2},"a":{"b":1}}'], ("a", "b")))
def test_columns_and_a_walk_through_each_row_agree(case: tuple[list[str], Any]) -> None:
    assert_same(*case)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "row", ['{{"a":{}}}', '{{"m":[{{"b":1}},{{"c":2}}],"a": {} }}', '{{"a":[{}]}}', '{{"a":{{"b":{}}}}}']
)
def test_numbers_keep_their_spelling(row: str, number: str) -> None:
    for path in (("a",), ("a", 0), ("a", "b"), ()):
        assert_same([row.format(number)], path)


def test_rows_beyond_one_slice_keep_their_order() -> None:
    rows = [f'{{"id":{n},"a":"{n}","m":{{"b":{n}}}}}' for n in range(2_503)]
    for path in (("a",), ("m", "b")):
        assert_same(rows, path)
