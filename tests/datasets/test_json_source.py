"""JSON documents and lines: what is refused, and where the message points."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import parse_json, walk_json
from assay.datasets.files import Source
from assay.datasets.json_source import outer_keys, parse_document
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[str, str | bytes], str]

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def _source(text: str) -> Source:
    return Source(Path("a.json"), "a.json", text, "")


@given(value=VALUES, indent=st.sampled_from([None, 1, "\t"]), ascii_only=st.booleans())
def test_slices_of_a_document_are_its_members(value: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    members = {str(key): parse_json(text[start:end]) for key, start, end in walk_json(text)}
    match value:
        case dict():
            assert members == value
        case list():
            assert list(members.values()) == value
        case _:
            assert not members


def test_slices_keep_every_character_of_the_source() -> None:
    text = ' { "a" : 1.10 , "b":[ 1,\t{"c" :"\\u00e4"} ] } '
    assert [text[start:end] for _, start, end in walk_json(text)] == ["1.10", '[ 1,\t{"c" :"\\u00e4"} ]']


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ('{\n "a" 1\n}', 2, 6, "not JSON: Expecting ':' delimiter"),
        ('{\n // note\n "a": 1}', 2, 2, "not JSON"),
        ('{"a": 1,\n "b": {"c": 1, "c": 2}}', 2, 16, "key 'c' appears twice"),
        ('{"a": "NaN {",\n "b": [1, NaN]}', 2, 11, "NaN is not JSON"),
        ("[\n-Infinity]", 2, 1, "-Infinity is not JSON"),
        ('["\\\\ud800",\n "\\ud83d\\ude00 \\ud83d"]', 2, 16, "half of a surrogate pair"),
        ("[" * 100_000, None, None, "nested too deeply"),
        ("[" + "9" * 5000 + "]", None, None, "digits"),
    ],
)
def test_a_faulty_document_is_placed(text: str, line: int | None, column: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_document(_source(text))
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("head", "keys"),
    [
        ('{"a": {"x": 1}, "b": [{"y": 2}], "c": "z', {"a", "b", "c"}),
        ('[{"a": {"x": 1}}, {"b": 1', {"a", "b"}),
        ('{"\\u0061": 1, "q": "\\"items\\": 1"', {"a", "q"}),
        ("", set[str]()),
        ("no json at all }}", set[str]()),
    ],
)
def test_outer_keys_are_read_from_a_cut_text(head: str, keys: set[str]) -> None:
    assert outer_keys(head) == keys
