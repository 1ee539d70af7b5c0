from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.normal_form import NormalForm, normalise

if TYPE_CHECKING:
    from collections.abc import Callable

PAIRS = [
    ("caf\u00e9", "cafe\u0301"),
    ("\uff14\uff12", "42"),
    ("don\u2019t", "don't"),
    ("a\u00a0b", "a b"),
    ("STRASSE", "stra\u00dfe"),
    ("\u0130", "i"),
]
EQUAL = {
    "none": [False] * 6,
    "nfc": [True, *[False] * 5],
    "nfkc_casefold": [True, True, False, True, True, False],
}


@pytest.mark.parametrize("form", ["none", "nfc", "nfkc_casefold"])
@pytest.mark.parametrize("copies", [1, 500])
def test_six_look_alikes_are_equal_as_the_form_has_it(
    score: Callable[..., pl.DataFrame], form: NormalForm, copies: int
) -> None:
    left, right = map(list, zip(*PAIRS * copies, strict=True))
    rows = {"response": left, "expected_response": right}
    exact = score("ExactMatch", rows, case_sensitive=True, normalise=form)
    near = score("Levenshtein", rows, threshold=1, normalise=form)
    assert exact["passed"].to_list() == near["passed"].to_list() == EQUAL[form] * copies


def scalar(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


@given(st.lists(st.text(max_size=8), max_size=5))
def test_the_form_of_a_column_is_that_of_its_texts(texts: list[str]) -> None:
    frame = pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)})
    assert normalise(frame, "nfkc_casefold")["text"].to_list() == [scalar(text) for text in texts]
    composed = [unicodedata.normalize("NFC", text) for text in texts]
    assert normalise(frame, "nfc")["text"].to_list() == composed
    assert normalise(frame, "none")["text"].to_list() == texts
