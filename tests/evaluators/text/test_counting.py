from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.text.compiling import SMALL
from evaluators.text.counting import count_common, count_shared
from evaluators.text.tokenising import split_tokens
from evaluators.text.tokens import Tokens, hash_tokens

WORDS = st.lists(st.sampled_from("abcdefg"), max_size=16)
LONG = st.integers(0, 200).flatmap(
    lambda n: st.lists(st.sampled_from("abcdefghijklm"), min_size=n, max_size=n)
)
PAIRS = st.lists(st.tuples(WORDS, WORDS) | st.tuples(LONG, LONG), min_size=1, max_size=8)


def number(pairs: list[tuple[list[str], list[str]]], height: int) -> tuple[Tokens, Tokens]:
    """Repeat the pairs until there are so many rows."""
    rows = [pairs[n % len(pairs)] for n in range(height)]
    return hash_tokens(left for left, _ in rows), hash_tokens(right for _, right in rows)


def grams(words: list[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + n]) for at in range(len(words) - n + 1))


def longest(left: list[str], right: list[str]) -> int:
    """Find the longest common subsequence by the textbook's table."""
    before = [0] * (len(right) + 1)
    for word in left:
        now = [0]
        for at, other in enumerate(right):
            now.append(before[at] + 1 if word == other else max(now[at], before[at + 1]))
        before = now
    return before[-1]


@pytest.mark.parametrize("compiled", [False, True])
@given(PAIRS)
def test_shared_n_grams_are_counted_as_often_as_both_sides_have_them(
    compiled: bool, pairs: list[tuple[list[str], list[str]]]
) -> None:
    left, right = number(pairs, SMALL if compiled else len(pairs))
    wanted = [[(grams(a, n) & grams(b, n)).total() for n in range(1, 6)] for a, b in pairs]
    assert count_shared(left, right, 1, 5)[: len(pairs)].tolist() == wanted
    assert count_shared(left, right, 3, 4)[: len(pairs)].tolist() == [row[2:4] for row in wanted]


@pytest.mark.parametrize("compiled", [False, True])
@given(PAIRS)
def test_common_subsequences_are_as_long_as_by_the_textbook(
    compiled: bool, pairs: list[tuple[list[str], list[str]]]
) -> None:
    left, right = number(pairs, SMALL if compiled else len(pairs))
    assert count_common(left, right)[: len(pairs)].tolist() == [longest(a, b) for a, b in pairs]


@pytest.mark.parametrize("words", [63, 64, 65, 128, 129, 1000])
def test_long_texts_cross_the_borders_of_words_of_bits(words: int) -> None:
    texts = [" ".join(str(n) for n in range(words))] * SMALL
    swapped = [" ".join(str(n ^ 1) for n in range(words))] * SMALL
    left, right = (split_tokens(pl.Series(rows), "rouge") for rows in (texts, swapped))
    assert set(count_common(left, left).tolist()) == {words}
    pairs = {longest([str(n) for n in range(words)], [str(n ^ 1) for n in range(words)])}
    assert set(count_common(left, right).tolist()) == pairs


def test_borders_between_tokens_count_in_n_grams() -> None:
    left, right = hash_tokens([["ab", "c"]] * SMALL), hash_tokens([["a", "bc"]] * SMALL)
    assert not count_shared(left, right, 1, 2).any()
    texts = pl.Series(["ab c"] * SMALL), pl.Series(["a bc"] * SMALL)
    left, right = (split_tokens(rows, "rouge") for rows in texts)
    assert not count_shared(left, right, 1, 2).any()


def test_rows_without_tokens_share_nothing() -> None:
    empty = hash_tokens("" for _ in range(SMALL))
    assert not count_shared(empty, empty, 1, 4).any()
    assert not count_common(empty, hash_tokens([["a"]] * SMALL)).any()
    none = hash_tokens([])
    assert count_shared(none, none, 1, 4).shape == (0, 4)
    assert np.array_equal(count_common(none, none), [])


@cache
def make_texts() -> tuple[pl.Series, pl.Series]:
    numbers = [n * 7919 % 101 for n in range(50 * SMALL)]
    words = [f"w{n}" for n in numbers]
    rows = [" ".join(words[at : at + 40]) for at in range(0, len(words), 50)]
    return pl.Series(rows), pl.Series(rows[1:] + rows[:1])


def test_neither_order_nor_height_of_the_column_matters() -> None:
    texts, others = make_texts()
    left, right = split_tokens(texts, "rouge"), split_tokens(others, "rouge")
    back = split_tokens(texts.reverse(), "rouge"), split_tokens(others.reverse(), "rouge")
    few = split_tokens(texts[:100], "rouge"), split_tokens(others[:100], "rouge")
    for count in (count_common, count_shared):
        counted = count(left, right)
        assert np.array_equal(count(*back)[::-1], counted)
        assert np.array_equal(count(*few), counted[:100])
        assert np.array_equal(count(right, left), counted)
