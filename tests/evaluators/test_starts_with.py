from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


@pytest.mark.parametrize(
    ("name", "options", "wanted"),
    [
        ("StartsWith", {"search_text": "yes"}, 1.0),
        ("StartsWith", {"search_text": "yes", "case_sensitive": True}, 0.0),
        ("StartsWith", {"search_text": "Yes", "trim": False}, 0.0),
        ("StartsWith", {"search_text": "\n Yes", "trim": False}, 1.0),
        ("StartsWith", {"search_text": "es"}, 0.0),
        ("StartsWith", {"search_text": "es", "negated": True}, 1.0),
        ("EndsWith", {"search_text": "STRASSE."}, 1.0),
        ("EndsWith", {"search_text": "stra\u00dfe. "}, 1.0),
        ("EndsWith", {"search_text": ".", "trim": False}, 0.0),
        ("EndsWith", {"search_text": ".", "negated": True}, 0.0),
    ],
)
def test_an_end_is_compared_trimmed_and_folded(
    score: Callable[..., pl.DataFrame], name: str, options: dict[str, Any], wanted: float
) -> None:
    rows = {"response": ["\n Yes, die Stra\u00dfe.\n"]}
    assert score(name, rows, **options)["score"].item() == wanted


def test_without_a_text_the_reference_is_looked_for(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["ab", "ab", "ab"], "expected_response": ["A", "b", None]}
    assert score("starts_with", rows)["score"].to_list() == [1.0, 0.0, None]
    assert score("ends_with", rows)["score"].to_list() == [0.0, 1.0, None]


@given(st.text(), st.text())
def test_both_parts_of_a_text_are_its_ends(score: Callable[..., pl.DataFrame], first: str, last: str) -> None:
    rows = {"response": [first + last]}
    for options in ({}, {"case_sensitive": True, "trim": False}):
        assert score("StartsWith", rows, search_text=first, **options)["score"].item() == 1.0
        assert score("EndsWith", rows, search_text=last, **options)["score"].item() == 1.0
