from __future__ import annotations

import sys
import unicodedata

import polars as pl
import pytest

from evaluators.text.columns import UNCOMPOSED, compose, fold_case
from evaluators.text.plain import list_tokens

SURROGATES = range(0xD800, 0xE000)


def test_every_character_is_folded_as_python_does() -> None:
    characters = [chr(n) for n in range(sys.maxunicode + 1) if n not in SURROGATES]
    folded = fold_case(pl.DataFrame({"text": characters}))["text"]
    assert folded.to_list() == [char.casefold() for char in characters]


def test_columns_of_ascii_are_folded_beside_others() -> None:
    frame = pl.DataFrame({"a": ["ABC [x]"], "b": ["STRA\u1e9eE \u039f\u03a3"]})
    assert fold_case(frame).rows() == [("abc [x]", "strasse \u03bf\u03c3")]


def test_every_character_that_nfc_may_touch_is_looked_for() -> None:
    known = [
        chr(n) for n in range(sys.maxunicode + 1) if unicodedata.category(chr(n)) not in {"Cn", "Cs", "Co"}
    ]
    parts = {unicodedata.decomposition(char) for char in known}
    seconds = {chr(int(p.split()[1], 16)) for p in parts if p and p[0] != "<" and " " in p}
    jamo = {*map(chr, range(0x1161, 0x1176)), *map(chr, range(0x11A8, 0x11C3))}
    touched = {
        char for char in known if not unicodedata.is_normalized("NFC", char) or unicodedata.combining(char)
    }
    wanted = pl.Series(sorted(touched | seconds | jamo))
    assert wanted.filter(~wanted.str.contains(UNCOMPOSED)).to_list() == []


def test_composition_works_in_a_column_with_one_loose_accent() -> None:
    frame = pl.DataFrame({"a": ["e\u0301", "plain"], "b": ["x", "\u00e9"]})
    assert compose(frame).rows() == [("\u00e9", "x"), ("plain", "\u00e9")]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, World!", ["Hello", "World"]),
        (
            "don't e.g. 1,000.50 3.14, snake_case v2.0a",
            ["don't", "e.g", "1,000.50", "3.14", "snake_case", "v2.0a"],
        ),
        (
            "state-of-the-art (a/b) `code` **bold** ___",
            ["state", "of", "the", "art", "a", "b", "code", "bold"],
        ),
        ("a.1 1.a 'quoted' rock'n'roll", ["a", "1", "1", "a", "quoted", "rock'n'roll"]),
        ("\u6771\u4eac\u306f\u3001\u65e5\u672c\u3002", list("\u6771\u4eac\u306f\u65e5\u672c")),
        ("abc\u6f22\u5b57def\u3005\u30ab\u30bf", ["abc", *"\u6f22\u5b57", "def", *"\u3005\u30ab\u30bf"]),
        ("\u304b\u3099\u3001", ["\u304c"]),
        ("\u0e01\u0e49\u0e32\u0e27 \u0e51\u0e52", ["\u0e01\u0e49", "\u0e32", "\u0e27", "\u0e51\u0e52"]),
        ("\ud55c\uad6d\uc5b4 \ub9d0", ["\ud55c\uad6d\uc5b4", "\ub9d0"]),
        ("\u0928\u092e\u0938\u094d\u0924\u0947", ["\u0928\u092e\u0938\u094d\u0924\u0947"]),
        ("\u0645\u0631\u062d\u0628\u0627\u060c", ["\u0645\u0631\u062d\u0628\u0627"]),
        ("ok\U0001f44d\U0001f3fd\U0001f44d!", ["ok", "\U0001f44d\U0001f3fd", "\U0001f44d"]),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", ["\U0001f468\u200d\U0001f469\u200d\U0001f467"]),
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"]),
        ("m\u00b2 \u00bd \u203c\ufe0f", ["m", "\u00b2", "\u00bd"]),
        ("10\u202f000", ["10", "000"]),
        ("", []),
    ],
)
def test_words_follow_uax_29_and_their_script(text: str, tokens: list[str]) -> None:
    assert list_tokens(pl.Series([text]), "unicode", case_sensitive=True) == [tokens]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a the an x", ["x"]),
        ("state-of-the-art", ["stateoftheart"]),
        ("\u201cthe\u201d", ["\u201c", "\u201d"]),
        ("a\u0301 a\u00b2", ["\u0301", "a\u00b2"]),
        ("a\u2019a\u2019a", ["\u2019", "\u2019"]),
        ("x\x1cy\u2003z", ["x", "y", "z"]),
        ("\ua000an b_the", ["\ua000an", "bthe"]),
    ],
)
def test_compat_words_have_the_borders_of_python(text: str, tokens: list[str]) -> None:
    assert list_tokens(pl.Series([text]), "f1", case_sensitive=True) == [tokens]
