from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from evaluators.catalog import resolve_evaluation

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "ages": {"items": {"type": "integer"}}},
}
DRAFT = "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(
    ("response", "wanted", "reason"),
    [
        ('{"name": "a", "ages": [1, 2.0]}', 1.0, None),
        ('{"name": "a", "ages": [1, "x"]}', 0.0, "$.ages[1]: 'x' is not of type 'integer'"),
        ("{}", 0.0, "$: 'name' is a required property"),
        ("[]", 0.0, "$: [] is not of type 'object'"),
        ("nope", 0.0, "not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("", 0.0, "not JSON: Expecting value: line 1 column 1 (char 0)"),
    ],
)
def test_the_first_fault_is_the_reason(
    score: Callable[..., pl.DataFrame], response: str, wanted: float, reason: str | None
) -> None:
    result = score("JsonSchema", {"response": [response]}, schema=SCHEMA)
    assert (result["score"].item(), result["reason"].item()) == (wanted, reason)


def test_labels_and_details_tell_the_faults(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ['{"name": 1, "ages": ["x"]}', "{", '{"name": ""}']}
    result = score("json_schema", rows, schema=SCHEMA)
    assert result["label"].to_list() == ["invalid", "invalid_json", "valid"]
    details = json.loads(result["details_json"][0])
    assert [fault["path"] for fault in details["faults"]] == ["$.name", "$.ages[0]"]
    assert details["fault_count"] == 2


def test_without_a_schema_each_reference_is_one(score: Callable[..., pl.DataFrame]) -> None:
    schemas = ['{"type": "object"}', "false", '{"type": "strin"}', "[1]", "{", '{"$ref": "#/x"}', None]
    result = score("JsonSchema", {"response": ["{}"] * 7, "expected_response": schemas})
    assert result["score"].to_list() == [1.0, 0.0, *[None] * 5]
    assert result["error_code"].to_list() == [
        None,
        None,
        *["invalid_schema"] * 3,
        "schema_reference",
        None,
    ]
    assert result["reason"][6] == "no expected_response"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strin"}, "is not valid under any"),
        ({"pattern": "("}, "is not a 'regex'"),
        (
            {"items": {"pattern": "(?=a)b"}},
            r"pattern '\(\?=a\)b' cannot be matched in linear time: look-around",
        ),
        ({"patternProperties": {r"(a)\1": True}}, "cannot be matched in linear time: backreferences"),
        ({"patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False}, "one repeat after"),
        ({"properties": {"a": {"$ref": "https://example.com/a.json"}}}, "never fetched"),
        ("{}", "JsonSchema.schema"),
    ],
)
def test_what_is_no_schema_is_refused_at_once(schema: object, message: str) -> None:
    options: dict[str, Any] = {"schema": schema}
    with pytest.raises(ConfigError, match=message):
        resolve_evaluation("JsonSchema", options)


def test_published_drafts_and_inner_references_are_known(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ['{"type": 3}', '{"type": "array"}']}
    assert score("JsonSchema", rows, schema={"$ref": DRAFT})["score"].to_list() == [0.0, 1.0]
    inner = {"$defs": {"t": {"type": "object"}}, "$ref": "#/$defs/t"}
    assert score("JsonSchema", rows, schema=inner)["score"].to_list() == [1.0, 1.0]
    tree = {"type": "object", "additionalProperties": {"$ref": "#"}}
    assert score("JsonSchema", {"response": ['{"a": {"b": {}}}', '{"a": 1}']}, schema=tree)[
        "score"
    ].to_list() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("text", "strict", "fenced"),
    [
        ('{"a": 1}', 1.0, 1.0),
        ("```json\n[1]\n```", 0.0, 1.0),
        ("\n~~~\n[1]\n~~~\n", 0.0, 1.0),
        ("Here: ```\n[1]\n```", 0.0, 0.0),
        ("```\n[1]", 0.0, 0.0),
        ("NaN", 0.0, 0.0),
        ("[1,]", 0.0, 0.0),
        ("{'a': 1}", 0.0, 0.0),
        ('"\\ud800"', 1.0, 1.0),
        ('{"a": 1, "a": 2}', 1.0, 1.0),
        ("[" * 100_000, 0.0, 0.0),
        ("", 0.0, 0.0),
        (" null ", 1.0, 1.0),
        (f"0{'9' * 5000}", 0.0, 0.0),
    ],
)
def test_json_is_what_the_standard_says(
    score: Callable[..., pl.DataFrame], text: str, strict: float, fenced: float
) -> None:
    assert score("IsJson", {"response": [text]})["score"].item() == strict
    assert score("is_json", {"response": [text]}, fenced=True)["score"].item() == fenced
    assert score("JsonSchema", {"response": [text]}, schema=True, fenced=True)["score"].item() == fenced


def test_integers_of_any_length_are_json(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["9" * 5000, f'{{"a": -{"1" * 5000}}}', f"```\n[{'1' * 5000}]\n```"]}
    result = score("IsJson", rows, fenced=True)
    assert result["label"].to_list() == ["number", "object", "array"]
    assert result["score"].to_list() == [1.0] * 3


def test_the_kind_of_a_value_can_be_asked_for(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["{}", "[]", '"x"', "1", "true", "null", "x", None]}
    result = score("IsJson", rows, kind="object")
    assert result["score"].to_list() == [1.0, *[0.0] * 6, None]
    kinds = ["object", "array", "string", "number", "boolean", "null", "invalid", None]
    assert result["label"].to_list() == kinds
    assert result["reason"][1] == "the value is of kind array, not object"


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES, st.booleans())
def test_every_json_value_is_json_and_its_own_constant(
    score: Callable[..., pl.DataFrame], value: object, ascii_only: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert score("IsJson", {"response": [text, text[:-1] + "\x00"]})["score"].to_list() == [1.0, 0.0]
    schema = json.dumps({"const": value})
    result = score("JsonSchema", {"response": [text], "expected_response": [schema]})
    assert result["score"].item() == 1.0
