from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

GOLDEN = Path(__file__).parents[1] / "golden" / "golden-m365.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
CASES = [line for line in LINES if line["evaluator"] == "ExactMatch"]


@pytest.mark.parametrize("line", CASES, ids=range(len(CASES)))
def test_known_verdicts_are_met(score: Callable[..., pl.DataFrame], line: dict[str, Any]) -> None:
    rows = {"response": [line["response"]], "expected_response": [line["expected_response"]]}
    assert score("ExactMatch", rows, **line["options"])["passed"].to_list() == [line["passed"]]


@pytest.mark.parametrize(
    ("response", "expected", "options", "passed"),
    [
        ("4", "4", {}, True),
        (" 4\n", "4", {}, True),
        ("Paris", "paris", {}, True),
        ("Paris", "paris", {"case_sensitive": True}, False),
        ("The answer is 4.", "4", {}, False),
        ("", "4", {}, False),
        ("cafe\u0301", "caf\u00e9", {}, False),
        ("\uff14\uff12", "42", {}, False),
        ("don\u2019t", "don't", {}, False),
        ("a\u00a0b", "a b", {}, False),
        ("STRASSE", "stra\u00dfe", {}, True),
        ("\u0130", "i", {}, False),
        ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2", {}, True),
        ("\u00a0x\u2003", "x", {}, True),
    ],
)
def test_texts_are_equal_trimmed_and_folded(
    score: Callable[..., pl.DataFrame], response: str, expected: str, options: dict[str, bool], passed: bool
) -> None:
    rows = {"response": [response], "expected_response": [expected]}
    assert score("exact_match", rows, **options)["passed"].to_list() == [passed]


def test_a_missing_or_blank_reference_is_skipped_by_name(score: Callable[..., pl.DataFrame]) -> None:
    result = score("exactMatch", {"response": ["x"] * 3, "expected_response": [None, "", " \u2003\n"]})
    assert result["status"].to_list() == ["skipped"] * 3
    assert set(result["reason"]) == {"no expected_response"}
    assert result["score"].null_count() == 3


@given(st.text().filter(lambda text: text.split() != []))
def test_every_text_equals_itself(score: Callable[..., pl.DataFrame], text: str) -> None:
    rows = {"response": [text, f" {text}\n"], "expected_response": [text, text]}
    result = score("ExactMatch", rows)
    assert result["score"].to_list() == [1.0, 1.0]


@given(st.text(max_size=8), st.text(max_size=8))
def test_folded_equality_is_that_of_casefold(
    score: Callable[..., pl.DataFrame], left: str, right: str
) -> None:
    rows = {"response": [f"-{left}-"] * 2, "expected_response": [f"-{right}-", f"-{left.swapcase()}-"]}
    wanted = [
        float(left.casefold() == right.casefold()),
        float(left.casefold() == left.swapcase().casefold()),
    ]
    assert score("ExactMatch", rows)["score"].to_list() == wanted


@given(
    st.text("aA\u00df\u1e9esS\u0130i\u0307", min_size=18, max_size=40),
    st.integers(0, 40),
    st.text(max_size=1),
)
def test_long_texts_that_differ_in_one_place_are_told_apart(
    score: Callable[..., pl.DataFrame], text: str, place: int, change: str
) -> None:
    other = text.swapcase()[:place] + change + text.swapcase()[place + 1 :]
    result = score("ExactMatch", {"response": [f"-{text}-"], "expected_response": [f"-{other}-"]})
    assert result["score"].item() == float(text.casefold() == other.casefold())
