from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from evaluators.catalog import resolve_evaluation

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


@pytest.mark.parametrize(
    ("response", "reference", "wanted"),
    [
        ("Paris", "Paris", (1, 0, 1, 1)),
        ("Paris", "paris", (0, 1, 0, 1)),
        ("in Paris", "Paris", (0, 1, 1, 1)),
        ("Paris ", "Paris", (0, 1, 1, 1)),
        ("a.b", "a%", (0, 1, 0, 0)),
        ("die STRASSE", "stra\u00dfe", (0, 1, 0, 1)),
        ("", "", (1, 0, 1, 1)),
        ("x", "", (0, 1, 1, 1)),
        ("", "x", (0, 1, 0, 0)),
    ],
)
def test_four_operations_compare_as_openai_documents(
    score: Callable[..., pl.DataFrame], response: str, reference: str, wanted: tuple[int, ...]
) -> None:
    rows = {"response": [response], "expected_response": [reference]}
    operations = ("eq", "ne", "like", "ilike")
    found = [score("string_check", rows, operation=each)["score"].item() for each in operations]
    assert tuple(found) == wanted


@pytest.mark.parametrize(
    ("response", "pattern", "like", "ilike"),
    [
        ("Paris", "P%", 1, 1),
        ("Paris", "p%", 0, 1),
        ("in Paris", "Paris", 0, 0),
        ("a\nb", "a_b", 1, 1),
        ("50%", r"50\%", 1, 1),
        ("500", r"50\%", 0, 0),
        ("a_c", r"a\_c", 1, 1),
        ("abc", r"a\_c", 0, 0),
        ("a\\c", r"a\\c", 1, 1),
        ("(a|b)*[x]", "(a|b)*[_]", 1, 1),
        ("", "%", 1, 1),
    ],
)
def test_wildcards_are_those_of_sql(
    score: Callable[..., pl.DataFrame], response: str, pattern: str, like: int, ilike: int
) -> None:
    rows = {"response": [response], "expected_response": [pattern]}
    for operation, wanted in (("like", like), ("ilike", ilike)):
        result = score("StringCheck", rows, operation=operation, wildcards=True)
        assert result["score"].item() == wanted


def test_a_pattern_beyond_the_engine_is_an_error_row(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["x", "x"], "expected_response": ["_%" * 100_000, "x"]}
    result = score("StringCheck", rows, operation="like", wildcards=True)
    assert result["status"].to_list() == ["error", "ok"]
    assert result["error_code"].to_list() == ["pattern_too_large", None]


@pytest.mark.parametrize(
    "options",
    [{}, {"operation": "neq"}, {"operation": "eq", "wildcards": True}, {"operation": "eq", "input": 1}],
)
def test_options_without_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="StringCheck"):
        resolve_evaluation("string_check", options)


def test_input_and_reference_are_mappings_and_the_threshold_has_two_names() -> None:
    given_options: dict[str, Any] = {
        "operation": "eq",
        "input": "{{sample.output_text}}",
        "reference": "{{item.label}}",
        "pass_threshold": 0.5,
    }
    evaluation = resolve_evaluation("string_check", given_options)
    assert evaluation.threshold == 0.5
    assert evaluation.mapping == {"response": "{{sample.output_text}}", "expected_response": "{{item.label}}"}


def translate(pattern: str) -> str:
    parts = re.findall(r"\\[%_\\]|.", pattern, re.DOTALL)
    special = {"%": ".*", "_": "."}
    return "".join(special.get(part) or re.escape(part[-1]) for part in parts)


@given(st.text("a.%_\\(\n^", max_size=6), st.text("a.%_\\(\n^", max_size=4))
def test_a_translation_to_python_agrees(score: Callable[..., pl.DataFrame], text: str, pattern: str) -> None:
    rows = {"response": [text], "expected_response": [pattern]}
    result = score("StringCheck", rows, operation="like", wildcards=True)
    wanted = re.fullmatch(translate(pattern), text, re.DOTALL) is not None
    assert result["score"].item() == float(wanted)
