from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

NAMES = ["Levenshtein", "JaroWinkler", "TokenSet"]


@pytest.mark.parametrize(
    ("name", "left", "right", "wanted"),
    [
        ("Levenshtein", "kitten", "sitting", 1 - 3 / 7),
        ("Levenshtein", "flaw", "lawn", 0.5),
        ("Levenshtein", "abc", "ABC", 0.0),
        ("Levenshtein", "\U0001f44d\u00e4", "\U0001f44d", 0.5),
        ("Levenshtein", "", "abc", 0.0),
        ("JaroWinkler", "MARTHA", "MARHTA", 0.9611111111111111),
        ("JaroWinkler", "DIXON", "DICKSONX", 0.8133333333333332),
        ("JaroWinkler", "DWAYNE", "DUANE", 0.84),
        ("JaroWinkler", "abc", "xyz", 0.0),
        ("TokenSet", "fuzzy was a bear", "was a a bear fuzzy", 1.0),
        ("TokenSet", "new york mets", "york mets of new york", 1.0),
        ("TokenSet", "", "abc", 0.0),
    ],
)
def test_known_values_are_met(
    score: Callable[..., pl.DataFrame], name: str, left: str, right: str, wanted: float
) -> None:
    result = score(name, {"response": [left], "expected_response": [right]})
    assert result["score"].item() == pytest.approx(wanted, abs=1e-12)


def test_the_score_has_all_digits_of_a_float(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["a" * 3], "expected_response": ["a"]}
    assert score("Levenshtein", rows)["score"].item() == 1 - 2 / 3


@pytest.mark.parametrize("name", NAMES)
def test_a_normal_form_makes_look_alikes_one(score: Callable[..., pl.DataFrame], name: str) -> None:
    rows = {"response": ["CAF\u00c9 \uff14"], "expected_response": ["cafe\u0301 4"]}
    assert score(name, rows)["score"].item() < 1.0
    assert score(name, rows, normalise="nfkc_casefold")["score"].item() == 1.0


@pytest.mark.parametrize("name", NAMES)
def test_missing_and_blank_references_are_skipped(score: Callable[..., pl.DataFrame], name: str) -> None:
    rows = {"response": ["x", "x", None, ""], "expected_response": [None, " ", "x", "x"]}
    assert score(name, rows)["status"].to_list() == ["skipped", "skipped", "skipped", "ok"]


@pytest.mark.parametrize("name", NAMES)
@given(left=st.text(max_size=12), right=st.text(max_size=12))
def test_likeness_is_symmetric_and_whole_for_equal_texts(
    score: Callable[..., pl.DataFrame], name: str, left: str, right: str
) -> None:
    rows = {"response": [f"{left}.", f"{right}.", f"{left}."]}
    result = score(name, rows | {"expected_response": [f"{right}.", f"{left}.", f"{left}."]})
    there, back, same = result["score"]
    assert there == back
    assert same == 1.0
    assert 0.0 <= there <= 1.0


def edit(left: str, right: str) -> int:
    row = list(range(len(right) + 1))
    for i, char in enumerate(left, 1):
        last, row = row, [i]
        for j, other in enumerate(right, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (char != other)))
    return row[-1]


@given(
    st.lists(
        st.tuples(st.text("ab\u00e4", max_size=8), st.text("ab\u00e4", min_size=1, max_size=8)), min_size=1
    )
)
def test_a_table_of_edits_gives_the_same(
    score: Callable[..., pl.DataFrame], pairs: list[tuple[str, str]]
) -> None:
    left, right = map(list, zip(*pairs, strict=True))
    result = score("Levenshtein", {"response": left, "expected_response": right})
    wanted = [1 - edit(a, b) / max(len(a), len(b)) for a, b in pairs]
    assert result["score"].to_list() == pytest.approx(wanted, abs=1e-12)
