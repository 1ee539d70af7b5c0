from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import parse_json
from assay.errors import ConfigError
from evaluators.catalog import resolve_evaluation

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

BOMB = "a" * 36 + "!"
NESTED = "^(a+)+$"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"


def nest(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels):
        schema = {"items": schema}
    return schema


@pytest.mark.parametrize(
    ("schema", "response"),
    [
        ({"pattern": NESTED}, BOMB),
        ({"$schema": DRAFT, "items": {"$ref": "#"}, "pattern": NESTED}, [[BOMB]]),
        ({"$schema": DRAFT, "items": {"$schema": DRAFT_7, "pattern": NESTED}}, [BOMB]),
        ({"patternProperties": {NESTED: True}, "additionalProperties": False}, {BOMB: 1}),
        ({"$schema": DRAFT_7, "patternProperties": {NESTED: {"type": "null"}}}, {"aaa": 1, BOMB: 2}),
    ],
)
def test_no_pattern_takes_for_ever(
    score: Callable[..., pl.DataFrame], schema: dict[str, Any], response: object
) -> None:
    result = score("JsonSchema", {"response": [json.dumps(response)]}, schema=schema)
    assert result["label"].to_list() == ["invalid"]


def test_patterns_match_names_and_texts(score: Callable[..., pl.DataFrame]) -> None:
    schema = {
        "properties": {"n": {"pattern": "b+c$"}},
        "patternProperties": {"^x-": {"type": "integer"}},
        "additionalProperties": {"type": "null"},
    }
    rows = {"response": ['{"n": "abc", "x-a": 1, "z": null}', '{"n": "abcd"}', '{"x-a": ""}', '{"z": 1}']}
    result = score("JsonSchema", rows, schema=schema)
    assert result["reason"].to_list() == [
        None,
        "$.n: 'abcd' does not match 'b+c$'",
        "$['x-a']: '' is not of type 'integer'",
        "$.z: 1 is not of type 'null'",
    ]
    rest = {"patternProperties": {"^x-": True}, "unevaluatedProperties": False}
    both = score("JsonSchema", {"response": ['{"x-a": 1}', '{"y": 1}']}, schema=rest)
    assert both["score"].to_list() == [1.0, 0.0]


def test_a_row_schema_with_such_a_pattern_is_an_error(score: Callable[..., pl.DataFrame]) -> None:
    schemas = ['{"pattern": "(?=a)b"}', '{"default": {"pattern": "(?=a)"}}']
    result = score("JsonSchema", {"response": ["{}"] * 2, "expected_response": schemas})
    assert result["error_code"].to_list() == ["invalid_schema", None]
    assert "(?=a)b" in result["error_message"][0]


def test_half_a_surrogate_pair_is_told_as_its_escape(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ['{"\\ud800": 1}', '{"a": "\\udc00"}']}
    schema = {"additionalProperties": {"type": "string", "pattern": "^x"}}
    result = score("JsonSchema", rows, schema=schema)
    assert result["reason"].to_list() == [
        "$['\\ud800']: 1 is not of type 'string'",
        "$.a: '\\udc00' does not match '^x'",
    ]
    details = parse_json(result["details_json"][0])
    assert details == {
        "faults": [{"path": "$['\\ud800']", "message": "1 is not of type 'string'"}],
        "fault_count": 1,
    }


@pytest.mark.parametrize(
    ("response", "constant", "wanted"),
    [
        ("12345678901234567890123", "12345678901234567890123", 1.0),
        ("18446744073709551617", "18446744073709551616", 0.0),
        ("18446744073709551617", "18446744073709551617", 1.0),
        ("1e400", "10e399", 1.0),
        ("1e400", "2e400", 0.0),
        ("1.0", "1", 1.0),
        ("1e5000", "1", None),
        ("9" * 5000, "1", None),
    ],
)
def test_vast_numbers_are_exact_or_an_error(
    score: Callable[..., pl.DataFrame], response: str, constant: str, wanted: float | None
) -> None:
    rows = {"response": [response], "expected_response": [f'{{"const": {constant}}}']}
    result = score("JsonSchema", rows)
    code = "number_range" if wanted is None else None
    assert (result["score"].item(), result["error_code"].item()) == (wanted, code)


@pytest.mark.parametrize("levels", [400, 900])
def test_a_schema_nested_too_deeply_is_refused(score: Callable[..., pl.DataFrame], levels: int) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        resolve_evaluation("JsonSchema", {"schema": nest(levels)})
    rows = {"response": ["[]"] * 2, "expected_response": [json.dumps(nest(levels)), "{}"]}
    assert score("JsonSchema", rows)["error_code"].to_list() == ["invalid_schema", None]


def test_an_answer_nested_too_deeply_for_its_schema_is_an_error(score: Callable[..., pl.DataFrame]) -> None:
    deep = "[" * 500 + "]" * 500
    result = score("JsonSchema", {"response": [deep, "[[]]"]}, schema={"items": {"$ref": "#"}})
    assert result["error_code"].to_list() == ["too_deep", None]


WORDS = st.text("ab.-+*[^$\u00e9\U0001f44d", min_size=1, max_size=8)


@given(WORDS, WORDS, WORDS)
def test_an_escaped_text_matches_wherever_it_stands(
    score: Callable[..., pl.DataFrame], before: str, text: str, after: str
) -> None:
    schema = json.dumps({"pattern": re.escape(text)})
    rows = {"response": [json.dumps(before + text + after), '"x"'], "expected_response": [schema] * 2}
    assert score("JsonSchema", rows)["score"].to_list() == [1.0, 0.0]
