from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError

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
    result = score("contains", rows)
    assert result["score"].to_list() == [1.0, 0.0, None, None]
    assert result["reason"].to_list() == [None, None, "no expected_response", "no expected_response"]


def test_with_a_text_no_reference_is_needed(score: Callable[..., pl.DataFrame]) -> None:
    result = score("contains", {"response": ["x", None], "expected_response": [None, "y"]}, search_text="x")
    assert result["status"].to_list() == ["ok", "skipped"]
    assert result["reason"].to_list() == [None, "no response"]


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"search_texts": ["ok", "all"]}, 1.0),
        ({"search_texts": ["ok", "no"]}, 0.0),
        ({"search_texts": ["ok", "no"], "match": "any"}, 1.0),
        ({"search_texts": ["OK"], "case_sensitive": True}, 0.0),
        ({"search_texts": ["ok", "no"], "negated": True}, 0.0),
        ({"search_texts": ["ok", "no"], "negated": True, "match": "all"}, 1.0),
        ({"search_texts": ["x", "no"], "negated": True}, 1.0),
        ({"search_texts": [""]}, 1.0),
    ],
)
def test_of_several_texts_all_are_needed_and_none_may_be_there(
    score: Callable[..., pl.DataFrame], options: dict[str, Any], wanted: float
) -> None:
    assert score("Contains", {"response": ["All ok"]}, **options)["score"].item() == wanted


def test_details_tell_which_texts_are_there(score: Callable[..., pl.DataFrame]) -> None:
    result = score("Contains", {"response": ["b a", "", "c"]}, search_texts=["A", "b"])
    assert result["details_json"].to_list() == [
        '{"found":["A","b"],"missing":[]}',
        *['{"found":[],"missing":["A","b"]}'] * 2,
    ]


def test_absence_is_the_opposite(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["all ok", "none", "x"], "expected_response": ["OK", "ok", None]}
    assert score("NotContains", rows)["score"].to_list() == [0.0, 1.0, None]
    assert score("NotContains", rows, search_texts=["x", "k"])["score"].to_list() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("options", [{"search_text": "a", "search_texts": ["a"]}, {"search_texts": []}])
def test_searches_that_contradict_are_refused(
    score: Callable[..., pl.DataFrame], options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="Contains"):
        score("Contains", {"response": ["x"]}, **options)


@given(
    st.lists(st.text("ab\u00df\u1e9eS ", max_size=6), min_size=1, max_size=4),
    st.lists(st.text("ab\u00dfs", max_size=2), min_size=1, max_size=4),
    st.sampled_from(["any", "all"]),
)
def test_a_plain_loop_finds_the_same(
    score: Callable[..., pl.DataFrame], texts: list[str], needles: list[str], match: str
) -> None:
    result = score("Contains", {"response": texts}, search_texts=needles, match=match)
    together = any if match == "any" else all
    wanted = [together(needle.casefold() in text.casefold() for needle in needles) for text in texts]
    assert result["score"].to_list() == [float(each) for each in wanted]


@given(st.text(), st.text(), st.text())
def test_a_part_is_always_found(
    score: Callable[..., pl.DataFrame], before: str, part: str, after: str
) -> None:
    result = score("Contains", {"response": [before + part + after]}, search_text=part)
    assert result["score"].item() == 1.0
