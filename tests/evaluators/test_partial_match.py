from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

GOLDEN = Path(__file__).parents[1] / "golden"
WORDS = ["Paris", "paris", "PARIS", "Stra\u00dfe", "STRASSE", "don't", "1,000.5", "caf\u00e9", "cafe\u0301"]
CHARACTERS = ["\u6771", "\u4eac", "\u30c6", "\u0e01\u0e49", "\U0001f44d\U0001f3fd", "\U0001f1e9\U0001f1ea"]
TOKENS = st.lists(st.sampled_from(WORDS + CHARACTERS), max_size=10)
CAPITAL = "\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd\u3067\u3059"
CANDIDATE = "\u3053\u308c \u306f \u30c6\u30b9\u30c8 \u5019\u88dc \u306e \u5fdc\u7b54"
REFERENCE = "\u3053\u308c \u306f \u30c6\u30b9\u30c8 \u306e \u6b63\u89e3"
SEPARATORS = st.sampled_from([" ", ", ", " \u2013 ", "\n", "\u3002", " (", "\u00a0"])


def read_golden(file: str, evaluator: str) -> list[dict[str, Any]]:
    text = (GOLDEN / file).read_text(encoding="utf-8")
    return [line for line in map(json.loads, text.splitlines()) if line["evaluator"] == evaluator]


def one(score: Callable[..., pl.DataFrame], response: str, expected: str, **options: Any) -> dict[str, Any]:
    rows = {"response": [response], "expected_response": [expected]}
    row = score("PartialMatch", rows, **options).row(0, named=True)
    return row | json.loads(row["details_json"])


def f1_of(left: list[str], right: list[str]) -> float:
    """Score two bags of tokens the slow way."""
    bags = Counter(map(fold, left)), Counter(map(fold, right))
    shared = (bags[0] & bags[1]).total()
    if bags[0] == bags[1]:
        return 1.0
    if not shared:
        return 0.0
    precision, recall = shared / bags[0].total(), shared / bags[1].total()
    return 2 * precision * recall / (precision + recall)


def fold(token: str) -> str:
    return token.casefold().replace("e\u0301", "\u00e9")


def test_the_f1_vectors_of_the_sdk_are_met(score: Callable[..., pl.DataFrame]) -> None:
    lines = read_golden("golden-foundry.jsonl", "builtin.f1_score")
    rows = {
        "response": [line["response"] for line in lines],
        "expected_response": [line["ground_truth"] for line in lines],
    }
    result = score("PartialMatch", rows, mode="compat")
    assert len(lines) == 111
    assert result["score"].to_list() == pytest.approx(
        [line["outputs"]["f1_score"] for line in lines], abs=1e-12
    )


def test_the_m365_candidate_vectors_are_met_and_nulls_are_skipped(score: Callable[..., pl.DataFrame]) -> None:
    lines = read_golden("golden-m365.jsonl", "AzureF1Score")
    rows = {name: [line[name] for line in lines] for name in ("response", "expected_response")}
    result = score("PartialMatch", rows, mode="compat")
    wanted = [line["score"] for line in lines]
    assert len(lines) == 30
    assert [s is None for s in wanted] == [s == "skipped" for s in result["status"]]
    known = [s for s in wanted if s is not None]
    assert result["score"].drop_nulls().to_list() == pytest.approx(known, abs=1e-12)
    assert result["passed"].to_list() == [line["passed"] for line in lines]


@pytest.mark.parametrize(
    ("response", "expected", "wanted"),
    [
        ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", 1.0),
        (CAPITAL, CAPITAL, 1.0),
        (CANDIDATE, REFERENCE, 0.7),  # 7 shared of 11 and 9 characters; by words it would be 0.7273
        ("M\u00fcller", "M\u00f6ller", 0.0),
        ("Gr\u00fc\u00dfe", "Gr\u00f6\u00dfe", 0.0),
        ("cafe\u0301", "caf\u00e9", 1.0),
        ("\uff14\uff12", "42", 0.0),
        ("don\u2019t", "don't", 0.0),
        ("a\u00a0b", "a b", 1.0),
        ("STRASSE", "stra\u00dfe", 1.0),
        ("\u0130", "i", 0.0),
        ("x x x y", "x y y", 4 / 7),
        ("!?", " !?\n", 1.0),
        ("!?", "...", 0.0),
        ("", "x", 0.0),
    ],
)
def test_words_of_every_script_are_compared(
    score: Callable[..., pl.DataFrame], response: str, expected: str, wanted: float
) -> None:
    assert one(score, response, expected)["score"] == pytest.approx(wanted, abs=1e-12)


def test_precision_recall_and_mode_stand_in_the_details(score: Callable[..., pl.DataFrame]) -> None:
    row = one(score, "the CEO is Jane Smith", "Jane Smith")
    assert (row["precision"], row["recall"], row["mode"]) == (0.4, 1.0, "unicode")
    row = one(score, "the CEO is Jane Smith", "Jane Smith", mode="compat")
    assert (row["precision"], row["recall"], row["mode"]) == (0.5, 1.0, "compat")


def test_case_counts_when_asked(score: Callable[..., pl.DataFrame]) -> None:
    assert one(score, "Open", "open", case_sensitive=True)["score"] == 0.0
    assert one(score, "Open The", "open", case_sensitive=True, mode="compat")["score"] == 0.0
    assert one(score, "Open", "Open", case_sensitive=True)["score"] == 1.0


def test_half_is_enough_to_pass(score: Callable[..., pl.DataFrame]) -> None:
    row = one(score, "Jane Smith", "a b c d Jane Smith", mode="unicode")
    assert (row["score"], row["threshold"], row["passed"]) == (0.5, 0.5, True)


@pytest.mark.parametrize(("mode", "status", "value"), [("unicode", "skipped", None), ("compat", "ok", 0.0)])
def test_a_blank_reference_is_text_only_in_compat_mode(
    score: Callable[..., pl.DataFrame], mode: str, status: str, value: float | None
) -> None:
    result = score("PartialMatch", {"response": ["x"], "expected_response": ["  "]}, mode=mode)
    assert (result["status"].item(), result["score"].item()) == (status, value)


@given(TOKENS, TOKENS, SEPARATORS)
def test_scores_agree_with_counting_by_hand(
    score: Callable[..., pl.DataFrame], left: list[str], right: list[str], separator: str
) -> None:
    # The closing mark keeps texts from being blank, and makes texts without tokens differ or agree.
    response, expected = (separator.join(tokens) + "." for tokens in (left, right))
    assert one(score, response, expected)["score"] == pytest.approx(f1_of(left, right), abs=1e-12)


@given(st.text(), st.text(), st.sampled_from(["unicode", "compat"]))
def test_sides_can_be_swapped(score: Callable[..., pl.DataFrame], left: str, right: str, mode: str) -> None:
    rows = {"response": [f"{left}.", f"{right}."], "expected_response": [f"{right}.", f"{left}."]}
    first, second = score("PartialMatch", rows, mode=mode)["score"]
    assert first == second


@given(st.text().filter(lambda text: text.split() != []))
def test_every_text_matches_itself(score: Callable[..., pl.DataFrame], text: str) -> None:
    assert one(score, text, text)["score"] == 1.0
