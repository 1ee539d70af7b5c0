from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.text.treebank import split_sentence

if TYPE_CHECKING:
    from collections.abc import Callable

MARKS = [*".,:;?!\"'`()[]{}<>-@#$%&*/ \n\t\x1c", "''", "``", "--", "...", ' "', '" ', ". ", "' "]
WORDS = ["a", "B", "7", "don't", "cannot", "wanna", "'tis", "'Twas", "it's", "x'S", "'ll", "N'T", "more'n"]
SENTENCES = st.lists(st.sampled_from(MARKS + WORDS), max_size=20).map("".join)


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("Don't pay $3.88, e.g. now.", ["Do", "n't", "pay", "$", "3.88", ",", "e.g.", "now", "."]),
        ('He said "no" (twice).', ["He", "said", "``", "no", "''", "(", "twice", ")", "."]),
        ("I cannot wait--'tis late...", ["I", "can", "not", "wait", "--", "'", "tis", "late", "..."]),
        ("U.S. firms' shares.) ", ["U.S.", "firms", "'", "shares", ".", ")"]),
        ("", []),
    ],
)
def test_words_part_from_punctuation_and_contractions(sentence: str, tokens: list[str]) -> None:
    assert split_sentence(sentence) == tokens


@given(sentence=SENTENCES)
def test_tokens_equal_those_of_nltk(nltk_sentence_words: Callable[[str], list[str]], sentence: str) -> None:
    assert split_sentence(sentence) == nltk_sentence_words(sentence)
