from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

GOLDEN = Path(__file__).parents[1] / "golden" / "golden-m365.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
CASES = [line for line in LINES if line["evaluator"] == "forbidden_terms"]
FOLDED = "case folds in full: STRASSE holds stra\u00dfe"
WRITTEN = "terms are shown as written, not in lower case"
RANGE = "a threshold that no score can reach is refused"
DEVIATIONS = {6: FOLDED, 8: WRITTEN, 15: RANGE}


@pytest.mark.parametrize("number", [n for n in range(len(CASES)) if n not in DEVIATIONS])
def test_known_verdicts_are_met(score: Callable[..., pl.DataFrame], number: int) -> None:
    line = CASES[number]
    rows = {"response": [line["response"]]}
    if line["score"] is None:
        with pytest.raises(ConfigError, match=r"ForbiddenTerms\.terms"):
            score("forbidden_terms", rows, **line["options"])
        return
    result = score("forbidden_terms", rows, **line["options"])
    found = (result["score"].item(), result["passed"].item(), result["reason"].item())
    assert found == (line["score"], line["passed"], line["reason"])


def test_deviations_are_as_told(score: Callable[..., pl.DataFrame]) -> None:
    def reason(number: int) -> str:
        line = CASES[number]
        found = score("ForbiddenTerms", {"response": [line["response"]]}, **line["options"])
        return found["reason"].item()

    assert reason(6) == "Found forbidden term(s): stra\u00dfe."
    assert reason(8) == "Found forbidden term(s): \u0130."
    with pytest.raises(ConfigError, match=r"ForbiddenTerms\.threshold"):
        reason(15)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("banana", []),
        ("an a.", ["a"]),
        ("a", ["a"]),
        ("(A)", ["a"]),
        ("a_b", []),
        ("a\u0301", []),
        ("\u00fcber-a", ["a", "\u00dcber"]),
        ("c++", ["c++"]),
        ("c++x", ["c++"]),
        ("xc++", []),
    ],
)
def test_whole_words_have_borders(score: Callable[..., pl.DataFrame], text: str, wanted: list[str]) -> None:
    terms = ["a", "\u00dcber", "c++"]
    result = score("ForbiddenTerms", {"response": [text]}, terms=terms, whole_words=True)
    assert json.loads(result["details_json"].item())["found"] == wanted


def test_a_term_with_an_expression_in_it_is_literal(score: Callable[..., pl.DataFrame]) -> None:
    result = score("ForbiddenTerms", {"response": ["abc", "^a.*$"]}, terms=["^a.*$"], whole_words=True)
    assert result["score"].to_list() == [1.0, 0.0]


@pytest.mark.parametrize("mark", ["\U000f0000", "$0", "\0"])
def test_no_character_of_a_text_or_term_passes_for_a_border(
    score: Callable[..., pl.DataFrame], mark: str
) -> None:
    texts = [f"xa b{mark}c", f"a b{mark}cx", f"a b {mark}c", f"-a b{mark}c-"]
    result = score("ForbiddenTerms", {"response": texts}, terms=[f"a b{mark}c"], whole_words=True)
    assert result["score"].to_list() == [1.0, 1.0, 1.0, 0.0]


def test_the_time_for_whole_words_grows_with_the_text_not_its_square(
    score: Callable[..., pl.DataFrame],
) -> None:
    text, term = "a" * 400_000, "a" * 200_000
    started = time.process_time()
    result = score("ForbiddenTerms", {"response": [text, f"{text} {term}"]}, terms=[term], whole_words=True)
    assert result["score"].to_list() == [1.0, 0.0]
    assert time.process_time() - started < 5  # the square takes half an hour


TEXTS = st.lists(st.text("aB\u00df\u1e9es \u017f", max_size=8), min_size=1, max_size=4)
TERMS = st.lists(st.text("abs\u00df", min_size=1, max_size=3), max_size=4)


@given(TEXTS, TERMS, st.booleans(), st.booleans())
def test_a_plain_loop_finds_the_same(
    score: Callable[..., pl.DataFrame], texts: list[str], terms: list[str], exact: bool, whole: bool
) -> None:
    def fold(text: str) -> str:
        return text if exact else text.casefold()

    border = (r"(?<!\w)", r"(?!\w)") if whole else ("", "")
    wanted = [
        [
            term
            for term in sorted(set(terms))
            if re.search(f"{border[0]}{re.escape(fold(term))}{border[1]}", fold(text))
        ]
        for text in texts
    ]
    rows = {"response": texts}
    result = score("ForbiddenTerms", rows, terms=terms, case_sensitive=exact, whole_words=whole)
    assert [json.loads(each)["found"] for each in result["details_json"]] == wanted
    assert result["score"].to_list() == [float(not found) for found in wanted]
