from __future__ import annotations

import pytest

from evaluators.text.wordnet import list_synonyms


@pytest.mark.parametrize(
    ("word", "synonyms"),
    [
        ("geese", "bozo cuckoo fathead geese goof goofball goose jackass twat zany"),
        ("quickly", "apace chop-chop cursorily promptly quick quickly rapidly speedily"),
        ("happy", "felicitous glad happy well-chosen"),
        ("u.s.", "America U.S. U.S.A. US USA u.s."),
        ("car", "auto automobile car gondola machine motorcar railcar"),
        ("axes", "Axis ax axe axes axis bloc"),
        ("hot_dog", "dog frank frankfurter hot_dog hotdog weenie wiener wienerwurst"),
        ("zzz", "zzz"),
        ("", ""),
        ("\u6771\u4eac", "\u6771\u4eac"),
    ],
)
def test_synonyms_are_those_that_nltk_finds_in_wordnet(word: str, synonyms: str) -> None:
    assert list_synonyms(word) == {word, *synonyms.split()}


@pytest.mark.parametrize(
    ("word", "lemma"),
    [("dogs", "dog"), ("went", "go"), ("tried", "try"), ("men", "man")],
)
def test_an_inflected_form_has_the_synonyms_of_its_lemma(word: str, lemma: str) -> None:
    assert lemma in list_synonyms(word)
