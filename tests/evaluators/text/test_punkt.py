from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.text.punkt import ends_alone, load_model, split_sentences

if TYPE_CHECKING:
    from collections.abc import Callable

PIECES = [*" .?!\"')]},;:-(\n\t\x1c", "...", ". ", "? ", '." ', "Mr.", "U.S.", "e.g.", "J.", "5.", "ok. ."]
WORDS = ["The ", "He", " it", "Smith", "international", "x", "dr.", " Inc. ", "T.", "--", "##number##", "_."]
TEXTS = st.lists(st.sampled_from(PIECES + WORDS), max_size=20).map("".join)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Mr. Smith left the U.S. He came back.", ["Mr. Smith left the U.S.", "He came back."]),
        ('"Go!" he said. (So he did.) Then?', ['"Go!"', "he said.", "(So he did.)", "Then?"]),
        ("J. Bach wrote 5. It is e.g. this.", ["J. Bach wrote 5.", "It is e.g.", "this."]),
        ("Well ... no", ["Well ... no"]),
        ("", [""]),
    ],
)
def test_sentences_end_where_punkt_says(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


@given(text=TEXTS)
def test_sentences_equal_those_of_nltk(nltk_sentences: Callable[[str], list[str]], text: str) -> None:
    wanted = [sentence for sentence in nltk_sentences(text) if sentence.strip()]
    assert [sentence for sentence in split_sentences(text) if sentence.strip()] == wanted


@given(piece=st.sampled_from(["word.", "Mr.", "5.", "J.", "so?", "hm!", "...", "u.s.", "Bach."]), after=TEXTS)
def test_what_ends_alone_ends_before_everything(piece: str, after: str) -> None:
    following = f"x{after}"
    if ends_alone(piece):
        assert split_sentences(f"{piece} {following}")[0] == piece


def test_the_model_has_its_parts() -> None:
    model = load_model()
    sizes = (len(model.abbreviations), len(model.starters), len(model.collocations), len(model.contexts))
    assert sizes == (156, 39, 37, 20366)
