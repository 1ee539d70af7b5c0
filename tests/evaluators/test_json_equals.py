from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from evaluators.json_equals import JsonEqualsOptions

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
        ("1e400", "10e399"),
        ("1e400", f"1{'0' * 400}"),
        ("1e30", f"1{'0' * 30}"),
        ("10000000000000000.0", "10000000000000000"),
        ("[1e99999999999999999999]", "[1e99999999999999999999]"),
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
        ("1e400", "2e400", "$: expected 2e400, got 1e400"),
        ("[1e-400]", "[0]", "$[0]: expected 0, got 1e-400"),
        ("9007199254740993.0", "9007199254740992", "$: expected 9007199254740992, got 9007199254740993.0"),
        ("[1e99999999999999999999]", "[1]", "$[0]: expected 1, got 1e99999999999999999999"),
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


@pytest.mark.parametrize("compat", ["uipath", "uipath-legacy"])
def test_compat_is_told_and_names_what_differs_inside(
    score: Callable[..., pl.DataFrame], compat: str
) -> None:
    rows = {
        "response": ["[1,[2,3]]", "[1e999]", "5", "5"],
        "expected_response": ["[1,[2,4]]", "[1]", "6", "5"],
    }
    result = score("JsonEquals", rows, compat=compat)
    assert result["reason"].to_list() == [
        "$[1][1]: expected 4.0, got 3.0",
        "$[0]: expected 1.0, got inf",
        "$: expected 6, got 5",
        None,
    ]
    assert [json.loads(each) for each in result["details_json"]] == [{"compat": compat}] * 4
    assert score("JsonEquals", rows)["details_json"].to_list() == [None] * 4


def test_negated_turns_the_score_around(score: Callable[..., pl.DataFrame]) -> None:
    assert compare(score, "1", "2", negated=True) == (1.0, "$: expected 2, got 1")
    assert compare(score, "1", "1", negated=True) == (0.0, None)


@given(VALUES.filter(lambda value: not isinstance(value, str) or value.strip()))
def test_every_value_equals_itself_in_any_key_order(score: Callable[..., pl.DataFrame], value: Any) -> None:
    forward, indented = json.dumps(value), json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False)
    expected = indented if indented.strip() else forward
    assert compare(score, forward, expected) == (1.0, None)


@given(st.text().filter(lambda text: text.split() != []))
def test_every_text_equals_itself(score: Callable[..., pl.DataFrame], text: str) -> None:
    assert compare(score, text, text) == (1.0, None)


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        ('{"a":1,"b":2}', '{"b":2,"a":1.0}', 1.0),
        ("null", '{"amount":100}', 0.0),
        ("{}", "{}", 1.0),
        ('{"tags":[]}', '{"tags":[]}', 1.0),
        ("[1,2]", "[2,1]", 0.0),
        ("true", "1", 0.0),
        ('"{\\"a\\":1}"', '{"a":1}', 1.0),
        ('{"a":{"b":0.1}}', '{"a":{"b":0.10000000000000001}}', 1.0),
    ],
)
def test_json_that_others_fail_on(
    score: Callable[..., pl.DataFrame], got: str, expected: str, equal: float
) -> None:
    assert compare(score, got, expected)[0] == equal


@pytest.mark.parametrize(
    ("got", "expected", "equal"),
    [
        ('"{\\"a\\":1,\\"b\\":2}"', '"{\\"b\\":2,\\"a\\":1}"', 1.0),  # two texts that both hold JSON
        ('"8"', '"8.0"', 1.0),
        ('"\\"hello\\""', '"hello"', 1.0),
        ('"8"', '"eight"', 0.0),
        ('["8"]', '["8.0"]', 0.0),  # only whole fields are read
    ],
)
def test_whole_texts_are_read_as_the_json_they_hold(
    score: Callable[..., pl.DataFrame], got: str, expected: str, equal: float
) -> None:
    assert compare(score, got, expected)[0] == equal


def test_lines_are_compared_in_pairs_and_the_blank_ones_dropped(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["A\n\nX\r\nc\nd"], "expected_response": ["a\nb\nc"]}
    result = score("JsonEquals", rows, line_by_line=True, case_sensitive=False)
    assert (result["score"].item(), result["reason"].item()) == (0.5, "lines that differ: 2, 4")
    details = json.loads(result["details_json"].item())
    assert details["lines"][3] == {"line": 4, "got": "d", "expected": "", "score": 0.0}
    assert (details["got_lines"], details["expected_lines"]) == (4, 3)
    assert compare(score, "a;b", "a;c", line_by_line=True, line_delimiter=";", negated=True)[0] == 0.5
    assert compare(score, '{"a":1}', '{"a":1.0}', line_by_line=True)[0] == 1.0
    many = "\n".join("abcdefg"), "\n".join("ABCDEFG")
    assert compare(score, *many, line_by_line=True) == (0.0, "lines that differ: 1, 2, 3, 4, 5, \u2026")


def test_a_part_that_a_side_lacks_is_an_error(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ['{"a":1}', '{"b":1}'], "expected_response": ['{"a":1}', '{"a":1}']}
    result = score("JsonEquals", rows, target_output_key="a")
    assert result["status"].to_list() == ["ok", "error"]
    assert result["score"].to_list() == [1.0, None]
    assert result["error_code"].to_list() == [None, "missing_field"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"case_sensitive": True}, "set case_sensitive: false"),
        ({"negated": True}, "set negated: false"),
        ({"line_by_line": True}, "set line_by_line: false"),
        ({"aggregators": [{"type": "recall", "classes": ["a"]}] * 2}, "recall.macro stands there twice"),
    ],
)
def test_aggregators_need_classes_to_count(options: dict[str, Any], message: str) -> None:
    given = {"case_sensitive": False, "aggregators": [{"type": "precision", "classes": ["a"]}]} | options
    with pytest.raises(ConfigError, match=message):
        JsonEqualsOptions.model_validate(given).check_setup()
