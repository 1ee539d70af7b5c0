from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


def compare(score: Callable[..., pl.DataFrame], got: str, expected: str, **options: Any) -> tuple[float, str]:
    result = score("JsonEquals", {"response": [got], "expected_response": [expected]}, **options)
    assert result["status"].to_list() == ["ok"], result["error_message"].item()
    return result["score"].item(), result["reason"].item()


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ('{"a":1,"b":2}', '{"b":2,"a":1.0}'),
        ("{}", "{}"),
        ('{"tags":[]}', '{"tags":[]}'),
        ('{"a":{"b":0.1}}', '{"a":{"b":0.10000000000000001}}'),
        (' {"a": 1}\n', '{"a":1}'),
        ("8", "8.0"),
        ('"8.0"', "8"),
        ("8", '"8.0"'),
        ('"true"', "true"),
        ("hello", '"hello"'),
        ("1e999", "1e999"),
        ('{"a":1,"a":2}', '{"a":1,"a":2}'),
        ("[" * 100_000, "[" * 100_000),
        ('{"a":' * 199 + "1" + "}" * 199, '{"a":' * 199 + "1.0" + "}" * 199),
    ],
)
def test_equal_values_score_one(score: Callable[..., pl.DataFrame], got: str, expected: str) -> None:
    assert compare(score, got, expected) == (1.0, None)


@pytest.mark.parametrize(
    ("got", "expected", "reason"),
    [
        ('{"a":[2]}', '{"a":[1]}', "$.a[0]: expected 1, got 2"),
        ("null", '{"amount":100}', "$: expected an object, got null"),
        ("[1,2]", "[2,1]", "$[0]: expected 2, got 1"),
        ("true", "1", "$: expected 1, got true"),
        ('{"a":0}', '{"a":false}', "$.a: expected false, got 0"),
        ('{"a":"8"}', '{"a":8}', '$.a: expected 8, got "8"'),
        ('{"x":1}', '{"a":1}', "$.a: expected 1, got nothing"),
        ('{"a":1,"b c":null}', '{"a":1}', '$["b c"]: expected nothing, got null'),
        ("[1]", "[1,[2]]", "$[1]: expected a list, got nothing"),
        ("9007199254740992", "9007199254740993", "$: expected 9007199254740993, got 9007199254740992"),
        ('" hi "', '"hi"', '$: expected "hi", got " hi "'),
        ("Hi", "hi", '$: expected "hi", got "Hi"'),
        ("nothing", "null", '$: expected null, got "nothing"'),
        ('"' + "x" * 99 + '"', "1.10", '$: expected 1.10, got "' + "x" * 59 + "\u2026"),
    ],
)
def test_the_first_difference_is_named(
    score: Callable[..., pl.DataFrame], got: str, expected: str, reason: str
) -> None:
    assert compare(score, got, expected) == (0.0, reason)


def test_case_can_be_ignored_in_texts_at_any_depth_but_not_in_keys(
    score: Callable[..., pl.DataFrame],
) -> None:
    assert compare(score, '{"a":["STRASSE"]}', '{"a":["stra\u00dfe"]}', case_sensitive=False)[0] == 1.0
    assert compare(score, '{"A":1}', '{"a":1}', case_sensitive=False)[0] == 0.0
    assert compare(score, '"TRUE"', "true", case_sensitive=False)[0] == 1.0
    assert compare(score, '"TRUE"', "true")[0] == 0.0


def test_negated_turns_the_score_around(score: Callable[..., pl.DataFrame]) -> None:
    assert compare(score, "1", "2", negated=True) == (1.0, "$: expected 2, got 1")
    assert compare(score, "1", "1", negated=True) == (0.0, None)


@settings(max_examples=50, deadline=None)
@given(VALUES)
def test_every_value_equals_itself_in_any_key_order(score: Callable[..., pl.DataFrame], value: Any) -> None:
    forward, indented = json.dumps(value), json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False)
    expected = indented if indented.strip() else forward
    assert compare(score, forward, expected) == (1.0, None)


@settings(max_examples=50, deadline=None)
@given(st.text().filter(lambda text: text.split() != []))
def test_every_text_equals_itself(score: Callable[..., pl.DataFrame], text: str) -> None:
    assert compare(score, text, text) == (1.0, None)
