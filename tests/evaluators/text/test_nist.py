from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.text.nist import load_classes, split_international

if TYPE_CHECKING:
    from collections.abc import Callable

CHARS = "ab5.,:;-+$<>&\"' \n\t\u00fc\u00df\u20ac\u3002\uff0c\u201c\u2014\u2026\u4e2d\u30ab\ud55c"
OTHERS = "\u00bd\u0661\u00a0\u2028\u3000"
PIECES = [
    *CHARS,
    *OTHERS,
    "\U0001f44d",
    "<skipped>",
    "&amp;",
    "&lt;",
    "&#91;",
    "&apos;",
    "&amp;lt;",
    " ",
    " ",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("M\u00fcller kauft.", ["M", "\u00fc", "ller", "kauft", "."]),
        ("gr\u00f6\u00dfer", ["gr", "\u00f6\u00df", "er"]),
        ("caf\u00e9 &amp; 3,5 \u20ac", ["caf", "\u00e9", "&", "3,5", "\u20ac"]),
        ("\u6771\u4eac\u3002", ["\u6771\u4eac\u3002"]),
        ("", []),
    ],
)
def test_words_fall_apart_as_in_the_ported_script(text: str, tokens: list[str]) -> None:
    assert split_international(text) == tokens


@given(text=TEXTS)
def test_tokens_equal_those_of_nltk(nltk_international: Callable[[str], list[str]], text: str) -> None:
    assert split_international(text) == nltk_international(text)


@given(text=TEXTS)
def test_a_text_is_the_sum_of_its_pieces(text: str) -> None:
    pieces = text.split()
    assert [token for piece in pieces for token in split_international(piece)] == split_international(text)


def test_the_classes_have_their_size_and_no_white_space() -> None:
    classes = load_classes()
    assert {name: len(chars) for name, chars in classes.items()} == {
        "Number": 14709,
        "Punctuation": 593,
        "Symbol": 3299,
    }
    assert not any(char.isspace() for chars in classes.values() for char in chars)
