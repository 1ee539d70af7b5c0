from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from evaluators import regex_match
from evaluators.catalog import Catalog
from evaluators.regex_search import INVALID, NO_MATCH, PLACEHOLDER, Searcher
from evaluators.runner import run_evaluation, run_evaluations

CATALOG = Catalog([regex_match.EVALUATOR])
DISASTER = r"(a|a)*b"
ATOMS = st.sampled_from(
    [r"\w", r"\d+", "[a-c]", "a|b", "(?:ab)*", "^", "$", r"\bé", "x{2,3}", ".", r"\s", "(?i:ß)"]
)


def match(patterns: Any, answers: list[str | None], expected: str | None = None) -> pl.DataFrame:
    evaluation = CATALOG.resolve("builtin.regex_match", {"patterns": patterns})
    rows = pl.DataFrame({"response": answers}).with_columns(expected_response=pl.lit(expected, pl.String))
    return asyncio.run(run_evaluation(evaluation, rows, None))


def test_the_first_pattern_that_is_found_is_named() -> None:
    result = match(["b", "a"], ["ab", "xa", "x", "", None])
    assert result["score"].to_list() == [1.0, 1.0, 0.0, 0.0, None]
    assert result["status"].to_list() == ["ok", "ok", "ok", "ok", "skipped"]
    details = [json.loads(text) for text in result["details_json"].drop_nulls()]
    assert details[:2] == [{"match_found": True, "matched_pattern_index": n} for n in (0, 1)]
    assert details[2:] == [{"match_found": False}] * 2


def test_one_pattern_may_stand_alone_and_an_empty_answer_matches_nothing() -> None:
    assert match("^x?$", ["x", "xy", ""])["score"].to_list() == [1.0, 0.0, 0.0]


def test_the_expected_answer_is_put_in_literally() -> None:
    for expected in ("3.5", r"\d", "a{{ground_truth}}b", "(", "50 %"):
        result = match([f"^=<{PLACEHOLDER}>$"], [f"=<{expected}>", "=<3x5>", "=<7>"], expected)
        assert result["score"].to_list() == [1.0, 0.0, 0.0]
    assert set(match([PLACEHOLDER], ["x"], None)["reason"]) == {"no expected_response"}
    assert set(match([PLACEHOLDER], ["x"], " ")["status"]) == {"skipped"}
    assert match(["x"], ["x"], None)["status"].to_list() == ["ok"]


def test_a_pattern_that_never_ends_is_an_error_of_its_row_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_match, "LIMIT", 0.1)
    result = match([DISASTER], ["b", "a" * 40, "c", "a" * 50 + "b"])
    assert result["score"].to_list() == [1.0, None, 0.0, 1.0]
    assert result["status"].to_list() == ["ok", "error", "ok", "ok"]
    assert result["error_code"].to_list() == [None, "regex_timeout", None, None]
    assert "CPU time" in result["error_message"][1]


def test_a_pattern_that_the_expected_answer_breaks_is_an_error_of_its_row() -> None:
    result = match([f"[{PLACEHOLDER}-x]"], ["m"], "z")
    assert result["error_code"].to_list() == [INVALID]
    assert "with the expected answer put in" in result["error_message"][0]


def test_a_search_that_dies_is_an_error_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regex_match, "_SEARCHING", ("-c", "raise SystemExit('no room')"))
    result = match(["a"], ["a", "b"])
    assert result["status"].to_list() == ["error"] * 2
    assert "the search ended with 1: no room" in result["error_message"][0]


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["a", "("], r"RegexMatch\.patterns\.1: got '\('.*of Python: missing \)"),
        (["a{99999999999999999999}"], "patterns"),
        (["*"], "nothing to repeat"),
        ([""], "at least 1 character"),
        ([], "at least 1 item"),
        (5, "a valid list"),
        (None, "a valid list"),
    ],
)
def test_what_is_no_pattern_is_refused_before_any_row(patterns: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        match(patterns, ["a"])


def test_rows_with_patterns_of_their_own_are_searched_together() -> None:
    count = 200
    uses = [CATALOG.resolve("RegexMatch", {"patterns": [rf"^{n}\Z", "never"]}) for n in range(count)]
    rows = pl.DataFrame({"response": [str(n) for n in range(count)]})
    result = asyncio.run(
        run_evaluations(uses, rows.with_columns(use=pl.int_range(count, dtype=pl.UInt32)), None)
    )
    assert result["score"].to_list() == [1.0] * count


@given(
    st.lists(st.lists(ATOMS, min_size=1, max_size=3).map("".join), min_size=1, max_size=3),
    st.lists(st.text("abcxé ß1\n", max_size=6), max_size=5),
)
def test_a_search_agrees_with_pythons_own(patterns: list[str], answers: list[str]) -> None:
    found = [any(re.search(pattern, text) for pattern in patterns) if text else False for text in answers]
    assert match(patterns, [*answers, "end"])["score"].to_list()[: len(answers)] == list(map(float, found))


def test_a_searcher_takes_what_is_no_pattern_and_counts_places() -> None:
    searcher = Searcher(1.0)
    assert searcher.search(["("], "x", None) == INVALID
    assert searcher.search(["b", "x"], "x", None) == 1
    assert searcher.search(["b"], "x", None) == NO_MATCH


def test_options_come_back_from_their_json() -> None:
    options: dict[str, Any] = {"patterns": "a"}
    evaluation = CATALOG.resolve("regex_match", options)
    assert evaluation.options_json == '{"patterns":["a"]}'
    assert CATALOG.resolve("regex_match", json.loads(evaluation.options_json)) == evaluation
