from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


@pytest.mark.parametrize(
    ("response", "options", "wanted"),
    [
        ("all ok", {"search_text": "OK"}, 1.0),
        ("all ok", {"search_text": "OK", "case_sensitive": True}, 0.0),
        ("fine", {"search_text": "error", "negated": True}, 1.0),
        ("an error", {"search_text": "error", "negated": True}, 0.0),
        ("fine", {"search_text": ""}, 1.0),
        ("a.b", {"search_text": "a.b"}, 1.0),
        ("axb", {"search_text": "a.b"}, 0.0),
        ("(x|y)*", {"search_text": "(x|y)*"}, 1.0),
        ("die STRASSE", {"search_text": "stra\u00dfe"}, 1.0),
        ("", {"search_text": "x"}, 0.0),
    ],
)
def test_a_given_text_is_looked_for_literally(
    score: Callable[..., pl.DataFrame], response: str, options: dict[str, Any], wanted: float
) -> None:
    assert score("Contains", {"response": [response]}, **options)["score"].item() == wanted


def test_without_a_text_the_reference_of_each_row_is_looked_for(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["9,009 rooms", "none", "x", "x"], "expected_response": ["9,009", "9,009", None, " "]}
    result = score("uipath-contains", rows)
    assert result["score"].to_list() == [1.0, 0.0, None, None]
    assert result["reason"].to_list() == [None, None, "no expected_response", "no expected_response"]


def test_with_a_text_no_reference_is_needed(score: Callable[..., pl.DataFrame]) -> None:
    result = score("contains", {"response": ["x", None], "expected_response": [None, "y"]}, search_text="x")
    assert result["status"].to_list() == ["ok", "skipped"]
    assert result["reason"].to_list() == [None, "no response"]


@settings(max_examples=50, deadline=None)
@given(st.text(), st.text(), st.text())
def test_a_part_is_always_found(
    score: Callable[..., pl.DataFrame], before: str, part: str, after: str
) -> None:
    result = score("Contains", {"response": [before + part + after]}, search_text=part)
    assert result["score"].item() == 1.0
