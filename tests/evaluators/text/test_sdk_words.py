from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from evaluators.text import sdk_words
from evaluators.text.sdk_words import list_sdk, split_sdk

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    Split = Callable[[str], list[str]]

MARKS = [*".,:;?!\"'`()[]{}<>-@#$%&*/\n\t\x1c", "...", "''", "--", ". ", "? ", '." ', " ) ", ' "', "\n"]
WORDS = ["Mr. ", "U.S.", "e.g.", "J.", " 5. ", "don't", "cannot", " 'tis", "wanna", "it's", "5,000", "Inc."]
PLAIN = [" word", " Word.", " end. ", ' "quoted" ', " (both) ", " ", " The ", "He", ", ", " so? ", " now! "]
ENGLISH = st.lists(st.sampled_from(MARKS + WORDS + PLAIN * 2), max_size=25).map("".join)
MIXED = st.text("ab. ,\u00fc\u4e2d\u3002&\n'\"", max_size=20)


@given(text=ENGLISH)
def test_english_tokens_equal_word_tokenize(
    nltk_sentences: Split, nltk_sentence_words: Split, text: str
) -> None:
    wanted = [word for sentence in nltk_sentences(text) for word in nltk_sentence_words(sentence)]
    assert list_sdk(text) == wanted


@given(text=MIXED.filter(lambda text: not text.isascii()))
def test_other_tokens_equal_the_international_ones(nltk_international: Split, text: str) -> None:
    assert list_sdk(text) == nltk_international(text)


@given(texts=st.lists(ENGLISH | MIXED, max_size=6))
def test_numbers_stand_for_tokens(texts: list[str]) -> None:
    tokens = split_sdk(texts)
    assert tokens.starts.tolist()[0] == 0
    for row, text in enumerate(texts):
        numbers = tokens.hashes[tokens.starts[row] : tokens.starts[row + 1]]
        assert numbers.tolist() == [hash(token) % 2**64 for token in list_sdk(text)]


def test_memory_is_bounded_and_forgetting_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f'Word{n} is "w{n}." He{n} left, and so did Mr. W{n}.' for n in range(40)]
    before = split_sdk(texts).hashes.tolist()
    monkeypatch.setattr(sdk_words, "MAX_PIECES", 3)
    assert split_sdk(texts).hashes.tolist() == before


def test_long_pieces_are_split_but_not_remembered() -> None:
    piece = "x" * 100 + ",y"
    assert list_sdk(f"{piece} z") == ["x" * 100, ",", "y", "z"]
    assert list_sdk(f"{piece} z") == ["x" * 100, ",", "y", "z"]


def test_no_texts_have_no_tokens() -> None:
    assert len(split_sdk([])) == 0
    assert split_sdk(["", " "]).starts.tolist() == [0, 0, 0]
