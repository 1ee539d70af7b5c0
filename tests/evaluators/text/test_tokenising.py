from __future__ import annotations

import sys
import unicodedata
from functools import cache
from itertools import product
from threading import Thread
from typing import TYPE_CHECKING, get_args

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.text import columns, plain, tables, tokenising
from evaluators.text.compiling import SMALL
from evaluators.text.tables import Kind
from evaluators.text.tokenising import split_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from evaluators.text.tokens import Tokens

WAYS = list(product(get_args(Kind), (False, True)))
CODES = [code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
ASCII = "a An the THE Th t A x B1 7 1.5 1,2 ' . , : _ -"
OTHER = (
    " \n\x1c\x00\u00a0\u00df\u1e9e\u0130\u0149\u03a3\u212a\u2019\u0301\u0308\u00ad\u200d\ufe0f\uff9e\uff9f"
    "\u0e01\u0e49\u6771\u30c6\u1100\u1161\uac00\u00b2\u00bd\u24c2\u203f\u05d0\u05f4\U0001f44d\U0001f3fd"
    "\U0001f468\U0001f1e9\U0001f1ea\U0001e900\U00020000"
)
PIECES = st.sampled_from([*ASCII.split(), *OTHER])
TEXTS = st.one_of(st.lists(PIECES, max_size=12).map("".join), st.text(max_size=12))


def name_tokens(tokens: Tokens) -> list[list[int]]:
    """Number the tokens of all texts in order of appearance, so that only which are equal counts."""
    numbers: dict[int, int] = {}
    named = [numbers.setdefault(each, len(numbers)) for each in tokens.hashes.tolist()]
    return [named[first:end] for first, end in zip(tokens.starts, tokens.starts[1:], strict=False)]


def fill(texts: list[str]) -> pl.Series:
    """Make a column tall enough for the compiled loops."""
    return pl.Series([*texts, *[""] * SMALL])


@pytest.mark.parametrize(("kind", "case_sensitive"), WAYS)
@given(st.lists(TEXTS, min_size=1, max_size=60))
def test_compiled_and_plain_ways_find_the_same_tokens(
    kind: Kind, case_sensitive: bool, texts: list[str]
) -> None:
    rows = fill(texts)
    assert name_tokens(split_tokens(rows, kind, case_sensitive)) == name_tokens(
        plain.split_texts(rows, kind, case_sensitive)
    )


@cache
def list_known() -> list[int]:
    return [code for code in CODES if unicodedata.category(chr(code)) not in {"Cn", "Co"}]


@pytest.mark.parametrize("kind", get_args(Kind))
@pytest.mark.parametrize("frame", ["{}", "x{}y {}", "1{}2{}", "a{}{}a", "\U0001f44d{}\U0001f44d", "_{}'{}."])
def test_every_character_is_split_alike_in_every_place(kind: Kind, frame: str) -> None:
    texts = pl.Series([frame.replace("{}", chr(code)) for code in list_known()])
    compiled = split_tokens(texts, kind)
    wanted = plain.split_texts(texts, kind, case_sensitive=False)
    assert np.array_equal(compiled.starts, wanted.starts)
    assert len(np.unique(compiled.hashes)) == len(np.unique(wanted.hashes))


def test_shipped_word_classes_are_those_of_the_regular_expression() -> None:
    characters = pl.Series([chr(code) for code in CODES])
    wanted = {t: characters.str.contains(f"^{p}$").to_numpy() for t, p in columns.CLASSES.items()}
    wanted["N"] = wanted["N"] & ~wanted["L"] & ~wanted["D"]
    shipped = tables.load_words()[CODES] % tables.COMPOSE
    for trait, right in wanted.items():
        has = np.array([trait in traits for traits in tables.TRAITS])
        assert np.array_equal(has[shipped], right), trait


def test_shipped_marks_of_composition_are_those_of_the_regular_expression() -> None:
    wanted = pl.Series([chr(code) for code in CODES]).str.contains(columns.UNCOMPOSED).to_numpy()
    marked = tables.load_words()[CODES] & tables.COMPOSE
    assert np.array_equal(marked != 0, wanted)
    assert not marked[:0x300].any()  # the search for marked characters looks at none below


@pytest.mark.parametrize(
    ("kind", "change"), [("unicode", str.casefold), ("f1", str.lower), ("rouge", str.lower)]
)
def test_case_folds_as_python_does(kind: Kind, change: Callable[[str], str]) -> None:
    rules = tables.make_rules(kind, case_sensitive=False)
    plain_case = tables.make_rules(kind, case_sensitive=True)
    for code in CODES[:0x20000]:
        entry = int(rules.codes[code])
        folded = [entry & tables.SYMBOL]
        if entry >> tables.CLASS_SHIFT == tables.MANY:
            rest = rules.many[entry & tables.SYMBOL :].tolist()
            folded = [each & tables.SYMBOL for each in rest[: rest.index(0)]]
        assert "".join(chr(symbol - 1) for symbol in folded) == change(chr(code))
        assert int(plain_case.codes[code]) & tables.SYMBOL == code + 1


def test_equal_columns_are_split_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["one", "two two", None]
    first = split_tokens(pl.Series("^a.*$", texts), "unicode")
    monkeypatch.setattr(tokenising, "_split", None)
    assert split_tokens(pl.Series("b", list(texts)), "unicode") is first
    with pytest.raises(TypeError):
        split_tokens(pl.Series(["one", "two too", None]), "unicode")
    with pytest.raises(TypeError):
        split_tokens(pl.Series(texts), "f1")


def test_few_columns_are_kept_and_huge_ones_never(monkeypatch: pytest.MonkeyPatch) -> None:
    columns_of_text = [pl.Series([f"text {n} of many"]) for n in range(30)]
    first = [split_tokens(texts, "rouge") for texts in columns_of_text]
    again = [split_tokens(texts, "rouge") for texts in columns_of_text[::-1]]
    assert [a is b for a, b in zip(first[::-1], again, strict=True)] == [True] * 8 + [False] * 22
    monkeypatch.setattr(tokenising, "_MOST_TOKENS", 4)
    huge = pl.Series(["a b c d e"])
    assert split_tokens(huge, "rouge") is not split_tokens(huge, "rouge")


def test_threads_get_their_own_tokens() -> None:
    wrong: list[int] = []

    def split(n: int) -> None:
        for _ in range(10):
            counts = split_tokens(pl.Series(["w " * n] * SMALL), "rouge").counts
            wrong.extend(counts[counts != n])

    threads = [Thread(target=split, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_nulls_and_slices_are_texts_of_their_own() -> None:
    texts = pl.Series(["skipped", None, "a b c", ""] * SMALL)[1:]
    assert split_tokens(texts, "rouge").counts.tolist()[:5] == [0, 3, 0, 1, 0]
    assert split_tokens(texts[:3], "rouge").counts.tolist() == [0, 3, 0]
