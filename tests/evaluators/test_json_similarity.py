from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import CallError, ConfigError
from evaluators.json_similarity import JsonSimilarityOptions, measure_similarity

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)


def measure(got: str, expected: str, **options: Any) -> float | None:
    fields = {"response": got, "expected_response": expected}
    return measure_similarity(JsonSimilarityOptions.model_validate(options), fields).score


def reverse_keys(value: Any) -> Any:
    return json.loads(json.dumps(value), object_pairs_hook=lambda pairs: dict(reversed(pairs)))


@pytest.mark.parametrize(
    ("got", "expected", "similarity"),
    [
        ('{"a":1,"b":2}', '{"b":2,"a":1.0}', 1.0),
        ("null", '{"amount":100}', 0.0),
        ("{}", "{}", 1.0),
        ('{"tags":[]}', '{"tags":[]}', 1.0),
        ("[1,2]", "[2,1]", 0.25),
        ("true", "1", 0.0),
        ('"{\\"a\\":1}"', '{"a":1}', 1.0),
        ('{"a":{"b":0.1}}', '{"a":{"b":0.10000000000000001}}', 1.0),
    ],
)
def test_json_that_others_fail_on(got: str, expected: str, similarity: float) -> None:
    assert measure(got, expected) == pytest.approx(similarity)


@pytest.mark.parametrize(
    ("got", "expected", "similarity"),
    [
        ("kitten", "sitting", 4 / 7),
        ('"na\u00efve caf\u00e9"', '"naive cafe"', 0.8),
        ('"\U0001f44d\U0001f44d"', '"\U0001f44d\U0001f44e"', 0.5),
        ('{"a":null}', '{"a":"null"}', 0.0),
        ('{"a":null}', '{"a":null,"b":{"c":[1,2]}}', 1 / 3),
        ("0", "1e-13", 1.0),
        ("0.5", "0", 0.0),
        ("-9", "-10", 0.9),
        ("1e999", "1e999", 1.0),
        ("1e400", "2e400", 0.5),
        ("1e400", f"1{'0' * 400}", 1.0),
        ("1e30", f"1{'0' * 30}", 1.0),
        ("10000000000000000.0", "10000000000000000", 1.0),
        ("[1e99999999999999999999]", "[2e99999999999999999999]", 0.0),
        ("1e999", "1", 0.0),
        ("1", "1e999", 0.0),
        ("-1e999", "1e999", 0.0),
        (f"1{'0' * 400}", f"2{'0' * 400}", 0.5),
        (f"1{'0' * 400}", "1.5", 0.0),
        ("[]", '{"a":{}}', 0.0),
        ('{"a":[7]}', '{"a":[]}', 1.0),
        ('{"a":[7]}', '{"a":{}}', 0.0),
        ("12", "hello", 0.0),
        ("1 apple", "2 apple", 6 / 7),
    ],
)
def test_leaves_are_compared_by_kind(got: str, expected: str, similarity: float) -> None:
    assert measure(got, expected) == pytest.approx(similarity)


def test_details_count_the_leaves() -> None:
    fields = {"response": '{"a":"abcx"}', "expected_response": '{"a":"abcd","b":[1,{}]}'}
    verdict = measure_similarity(JsonSimilarityOptions(), fields)
    assert verdict.details == {"matched_leaves": 0.75, "total_leaves": 3}
    assert (verdict.score, verdict.reason) == (0.25, "0.75 of 3 leaves match")


def test_compat_is_told_in_the_details() -> None:
    fields = {"response": "1e999", "expected_response": "1e999"}
    for options in ({"compat": "uipath"}, {"compat": "uipath", "line_by_line": True}):
        verdict = measure_similarity(JsonSimilarityOptions.model_validate(options), fields)
        assert (verdict.score, (verdict.details or {})["compat"]) == (1.0, "uipath")
    assert "compat" not in (measure_similarity(JsonSimilarityOptions(), fields).details or {})


def test_tolerance_is_a_share_of_the_expected_number() -> None:
    assert measure("99", "100", tolerance=0.01) == 1.0
    assert measure("98", "100", tolerance=0.01) == pytest.approx(0.98)
    assert measure("0.001", "0", tolerance=0.01) == 0.0


def test_case_can_be_ignored_at_any_depth() -> None:
    assert measure('{"a":["STRASSE"]}', '{"a":["stra\u00dfe"]}', case_sensitive=False) == 1.0
    assert measure('{"a":["ABC"]}', '{"a":["abc"]}') == 0.0


def test_lines_are_compared_in_pairs() -> None:
    assert measure("abc\r\nabxd\nextra", "abc\n\nabcd", line_by_line=True) == pytest.approx(1.75 / 3)
    assert measure('{"a":1};{"a":9}', '{"a":1.0};{"a":"x"}', line_by_line=True, line_delimiter=";") == 0.5
    assert measure(" ", "", line_by_line=True) == 1.0
    assert measure('{"a":1}', '{"a":2}', line_by_line=True) == 0.5


def test_parts_are_selected_on_both_sides() -> None:
    assert measure('{"a":{"b":[1]},"c":0}', '{"a":{"b":[1]},"c":9}', target_output_key="a.b[0]") == 1.0
    assert measure('{"a":1,"b":"xz","c":0}', '{"a":1,"b":"xy"}', target_output_key=["a", "b"]) == 0.75
    with pytest.raises(CallError, match=r"missing_field: response has no 'b'"):
        measure('{"a":1}', '{"a":1,"b":2}', target_output_key=["a", "b"])


def test_lines_of_several_parts_are_refused() -> None:
    options = JsonSimilarityOptions(line_by_line=True, target_output_key=["a"])
    with pytest.raises(ConfigError, match="line_by_line: several target_output_key"):
        options.check_setup()


@given(VALUES)
def test_every_value_is_like_itself(value: Any) -> None:
    text = json.dumps(value)
    assert measure(text, text) == 1.0
    assert measure(json.dumps(text), text) == 1.0


@given(VALUES, VALUES)
def test_the_order_of_keys_never_matters(got: Any, expected: Any) -> None:
    scores = {
        measure(json.dumps(left), json.dumps(right))
        for left in (got, reverse_keys(got))
        for right in (expected, reverse_keys(expected))
    }
    first = scores.pop()
    assert first is not None
    assert 0 <= first <= 1
    assert all(score == pytest.approx(first) for score in scores)


@given(VALUES, st.dictionaries(st.text(), VALUES, max_size=3))
def test_what_is_beyond_the_expected_does_not_count(value: Any, more: dict[str, Any]) -> None:
    assert measure(json.dumps({**more, "v": value}), json.dumps({"v": value})) == 1.0
