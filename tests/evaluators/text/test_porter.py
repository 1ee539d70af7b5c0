from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.text.porter import stem
from evaluators.text.shipped import read_shipped

SUFFIXES = (
    "ational tional enci anci izer bli alli entli eli ousli ization ation ator alism iveness fulness "
    "ousness aliti iviti biliti fulli logi icate ative alize iciti ical ful ness al ance ence er ic "
    "able ible ant ement ment ent sion tion ou ism ate iti ous ive ize y ies ied eed ed ing s sses "
    "ll e"
)
ENDED = st.tuples(st.text("abceilorstuwxyz", max_size=6), *[st.sampled_from(["", *SUFFIXES.split()])] * 2)
WORDS = ENDED.map("".join) | st.text(max_size=8)


@pytest.fixture(scope="module")
def stemmer() -> Any:
    return import_module("nltk.stem.porter").PorterStemmer()


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("Skies", "sky"),
        ("dies", "die"),
        ("flies", "fli"),
        ("running", "run"),
        ("US", "us"),
        ("enjoy", "enjoy"),
    ],
)
def test_known_words_have_known_stems(word: str, wanted: str) -> None:
    assert stem(word) == wanted


@given(word=WORDS)
def test_stems_equal_those_of_nltk(stemmer: Any, word: str) -> None:
    assert stem(word) == stemmer.stem(word)


def test_stems_of_a_dictionary_equal_those_of_nltk(stemmer: Any) -> None:
    words = sorted(set(read_shipped("wordnet-3.0.txt.gz").split()))[::40]
    assert [stem(word) for word in words] == [stemmer.stem(word) for word in words]
