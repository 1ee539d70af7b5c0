from __future__ import annotations

import re
import time
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
        ("order 66", {"pattern": r"\d+"}, 1.0),
        ("order", {"pattern": r"\d+"}, 0.0),
        ("order", {"pattern": r"\d+", "negated": True}, 1.0),
        ("OK", {"pattern": "ok"}, 0.0),
        ("OK", {"pattern": "ok", "flags": "i"}, 1.0),
        ("a\nok\nb", {"pattern": "^ok$"}, 0.0),
        ("a\nok\nb", {"pattern": "^ok$", "flags": "m"}, 1.0),
        ("a\nb", {"pattern": "a.b"}, 0.0),
        ("a\nb", {"pattern": "a.b", "flags": "s"}, 1.0),
        ("ab", {"pattern": "a b # both", "flags": "x"}, 1.0),
        ("ab", {"pattern": "a b # both", "flags": "x", "full_match": True}, 1.0),
        ("abc", {"pattern": "ab|bc", "full_match": True}, 0.0),
        ("ab\n", {"pattern": "ab", "full_match": True}, 0.0),
        ("\u0663 \u00fc", {"pattern": r"^\d \w$"}, 1.0),
        ("", {"pattern": "^$"}, 1.0),
    ],
)
def test_a_pattern_matches_by_its_flags(
    score: Callable[..., pl.DataFrame], response: str, options: dict[str, Any], wanted: float
) -> None:
    assert score("Regex", {"response": [response]}, **options)["score"].item() == wanted


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pattern": "("}, "unclosed group"),
        ({"pattern": "a)(b", "full_match": True}, "unopened group"),
        ({"pattern": "(?=a)"}, "look-around"),
        ({"pattern": r"(a)\1"}, "backreferences"),
        ({"pattern": r"(\w{1000}){1000}"}, "size limit"),
        ({"pattern": ""}, "Regex.pattern"),
        ({"pattern": "a", "flags": "q"}, "Regex.flags"),
        ({}, "Regex.pattern"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_at_once(
    score: Callable[..., pl.DataFrame], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        score("Regex", {"response": ["x"]}, **options)


def test_a_pattern_with_nested_repeats_takes_linear_time(score: Callable[..., pl.DataFrame]) -> None:
    started = time.perf_counter()
    assert score("Regex", {"response": ["a" * 50_000 + "b"]}, pattern=r"^(a+)+$")["score"].item() == 0.0
    assert time.perf_counter() - started < 5


@given(st.text("ab.\n", max_size=6), st.text("ab.*+?|", min_size=1, max_size=4))
def test_plain_patterns_match_as_those_of_python(
    score: Callable[..., pl.DataFrame], text: str, pattern: str
) -> None:
    try:
        wanted = float(re.search(pattern, text) is not None)
        result = score("Regex", {"response": [text]}, pattern=pattern)
    except (re.error, ConfigError):
        return
    assert result["score"].item() == wanted
