from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl


@pytest.mark.parametrize(
    ("name", "response", "reference", "wanted"),
    [
        ("wer", "the cat sat", "the cat sat", 0.0),
        ("wer", "The cat, sat!", "the dog sat down", 0.5),
        ("wer", "", "two words", 1.0),
        ("wer", "one two three four", "one", 3.0),
        ("wer", "x y", "!?", 2.0),
        ("wer", "!", "?", 0.0),
        ("wer", "cafe\u0301", "caf\u00e9", 0.0),
        ("wer", "\u6771\u4eac\u90fd", "\u6771\u4eac", 0.5),
        ("cer", "kitten", "sitting", 3 / 7),
        ("cer", "Kitten ", "kitten", 0.0),
        ("cer", "", "ab", 1.0),
        ("cer", "STRASSE", "stra\u00dfe", 0.0),
    ],
)
def test_known_rates_are_met(
    score: Callable[..., pl.DataFrame], name: str, response: str, reference: str, wanted: float
) -> None:
    result = score(name, {"response": [response], "expected_response": [reference]})
    assert result["score"].item() == pytest.approx(wanted, abs=1e-12)


def test_fewer_errors_pass_and_no_threshold_gives_no_verdict(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["a b", "a c", "x y"], "expected_response": ["a b"] * 3}
    assert score("WordErrorRate", rows, threshold=0.5)["passed"].to_list() == [True, True, False]
    assert score("WordErrorRate", rows)["passed"].to_list() == [None] * 3


def test_case_counts_when_asked_and_details_tell_the_counts(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["A b"], "expected_response": ["a b"]}
    for name, size in (("WordErrorRate", 2), ("CharErrorRate", 3)):
        result = score(name, rows, case_sensitive=True)
        assert result["score"].item() == 1 / size
        assert result["details_json"].item() == f'{{"edits":1,"reference_length":{size}}}'


def test_many_rows_score_as_one_alone(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["A cat, sat", "x", ""], "expected_response": ["the cat sat down", "y z", "q"]}
    many = {side: texts * 18_000 for side, texts in rows.items()}
    for name, wanted in (("wer", [0.5, 1.0, 1.0]), ("cer", score("cer", rows)["score"].to_list())):
        assert score(name, many)["score"].to_list() == wanted * 18_000


def edit(left: Sequence[str], right: Sequence[str]) -> int:
    row = list(range(len(right) + 1))
    for i, word in enumerate(left, 1):
        last, row = row, [i]
        for j, other in enumerate(right, 1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (word != other)))
    return row[-1]


WORDS = st.lists(st.sampled_from(["a", "bc", "d", "\u00e4"]), min_size=1, max_size=8)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_a_table_of_edits_gives_the_same(
    score: Callable[..., pl.DataFrame], pairs: list[tuple[list[str], list[str]]]
) -> None:
    rows = {
        "response": [" ".join(given_words) for given_words, _ in pairs],
        "expected_response": [" ".join(wanted) for _, wanted in pairs],
    }
    words = [edit(left, right) / len(right) for left, right in pairs]
    texts = [edit(a, b) / len(b) for a, b in zip(*rows.values(), strict=True)]
    assert score("wer", rows)["score"].to_list() == pytest.approx(words, abs=1e-12)
    assert score("cer", rows)["score"].to_list() == pytest.approx(texts, abs=1e-12)
