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
    ("unit", "text", "length"),
    [
        ("words", "", 0),
        ("words", "Don't stop, now!", 3),
        ("words", "\u6771\u4eac tower", 3),
        ("chars", "", 0),
        ("chars", "a\u00e4\U0001f44d\n", 4),
        ("lines", "", 0),
        ("lines", "a", 1),
        ("lines", "a\n", 1),
        ("lines", "a\n\nb", 3),
        ("lines", "a\r\nb\rc", 3),
        ("lines", "\n\n", 2),
    ],
)
def test_a_text_has_so_many_units(
    score: Callable[..., pl.DataFrame], unit: str, text: str, length: int
) -> None:
    exactly = score("Length", {"response": [text]}, unit=unit, min=length, max=length)
    assert exactly["score"].item() == 1.0
    assert exactly["details_json"].item() == f'{{"length":{length},"unit":"{unit}"}}'
    assert score("Length", {"response": [text]}, unit=unit, min=length + 1)["score"].item() == 0.0


def test_a_bound_that_is_broken_is_named(score: Callable[..., pl.DataFrame]) -> None:
    result = score("Length", {"response": ["a", "a b", "a b c"]}, min=2, max=2)
    assert result["score"].to_list() == [0.0, 1.0, 0.0]
    assert result["reason"].to_list() == ["1 words, at least 2", None, "3 words, at most 2"]


@pytest.mark.parametrize("options", [{}, {"min": 3, "max": 2}, {"min": -1}, {"max": 1.5}, {"max": 2**70}])
def test_bounds_without_sense_are_refused(
    score: Callable[..., pl.DataFrame], options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="Length"):
        score("Length", {"response": ["x"]}, **options)


@given(st.text("ab\r\n", max_size=12))
def test_lines_are_those_of_python(score: Callable[..., pl.DataFrame], text: str) -> None:
    length = len(text.splitlines())
    result = score("Length", {"response": [text]}, unit="lines", min=length, max=length)
    assert result["score"].item() == 1.0
