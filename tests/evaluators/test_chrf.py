from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


def naive(given_text: str, wanted: str) -> float:
    """Average precision and recall over the lengths of n-grams that both sides have; F with recall twice."""
    rates: list[tuple[float, float]] = []
    sides = ["".join(text.split()) for text in (given_text, wanted)]
    for size in range(1, 7):
        left, right = (Counter(text[i : i + size] for i in range(len(text) - size + 1)) for text in sides)
        if left and right:
            shared = (left & right).total()
            rates.append((shared / left.total(), shared / right.total()))
    precision, recall = (sum(each) / len(rates) for each in zip(*rates, strict=True)) if rates else (0.0, 0.0)
    return 5 * precision * recall / (4 * precision + recall) if precision + recall else 0.0


@given(st.text("ab c", max_size=12), st.text("ab c", min_size=1, max_size=12))
def test_a_naive_count_gives_the_same(score: Callable[..., pl.DataFrame], left: str, right: str) -> None:
    rows = {"response": [left], "expected_response": [f"a{right}"]}
    assert score("ChrF", rows)["score"].item() == pytest.approx(naive(left, f"a{right}"), abs=1e-12)


PIECES = st.lists(st.sampled_from(["ab", "a.", ".b", "...", "!", "\u00e4", "\U0001f44d", "b"]), max_size=8)


@given(PIECES.map(" ".join), PIECES.map(" ".join), st.sampled_from([0, 1, 2]))
def test_sacrebleu_gives_the_same(
    score: Callable[..., pl.DataFrame], left: str, right: str, order: int
) -> None:
    rows = {"response": [left], "expected_response": [f"{right} x"]}
    wanted = CHRF(word_order=order).sentence_score(left, [f"{right} x"]).score / 100
    assert score("ChrF", rows, word_order=order)["score"].item() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("order", [0, 2])
def test_many_rows_score_as_one_alone(score: Callable[..., pl.DataFrame], order: int) -> None:
    left = ["the cat sat on the mat.", "", "\u6771\u4eac\u90fd", "x\U0001f44d y", "aaaa aaaa"]
    right = ["a cat sat on that mat.", "x", "\u6771\u4eac", "\U0001f44d x", "aaa"]
    single = [
        CHRF(word_order=order).sentence_score(a, [b]).score / 100 for a, b in zip(left, right, strict=True)
    ]
    rows = {"response": left * 2100, "expected_response": right * 2100}
    found = score("ChrF", rows, word_order=order)["score"].to_list()
    assert found == pytest.approx(single * 2100, abs=1e-12)


@given(st.text().map(lambda text: f"{text}."), st.sampled_from([0, 1, 2]))
def test_equal_texts_score_one(score: Callable[..., pl.DataFrame], text: str, order: int) -> None:
    rows = {"response": [text], "expected_response": [text]}
    assert score("ChrF", rows, word_order=order)["score"].item() == 1.0


def test_words_case_and_form_count_as_asked(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["The cat", "x"], "expected_response": ["the cat", "caf\u00e9"]}
    plain = score("ChrF", rows)["score"]
    assert score("chrf", rows, word_order=2)["score"][0] < plain[0]
    assert score("chrf", rows, case_sensitive=False)["score"].to_list() == [1.0, 0.0]
    assert score("chrf", rows, normalise="nfkc_casefold")["score"][0] == 1.0


def test_a_missing_reference_is_skipped(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["x", "x", None], "expected_response": [None, "", "x"]}
    assert score("ChrF", rows)["status"].to_list() == ["skipped"] * 3
