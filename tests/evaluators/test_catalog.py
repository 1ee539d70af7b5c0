from __future__ import annotations

import math
from typing import Any

import pytest

from assay.contracts.json_text import parse_json
from assay.errors import ConfigError
from evaluators.catalog import CATALOG, find_evaluator, resolve_evaluation


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("ExactMatch", "ExactMatch"),
        ("exactMatch", "ExactMatch"),
        ("partial_match", "PartialMatch"),
        ("uipath-contains", "UiPathContains"),
        ("citations", "Citations"),
        ("uipath-exact-match", "JsonEquals"),
        ("builtin.relevance", "Relevance"),
        ("builtin.coherence", "Coherence"),
    ],
)
def test_an_evaluator_is_found_by_name_and_alias(name: str, canonical: str) -> None:
    assert find_evaluator(name).name == canonical
    assert CATALOG.label(name) == canonical


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("PartialMach", "PartialMatch"),
        ("EXACTMATCH", "ExactMatch"),
        ("uipath-tool-call-everything", "known: "),
        ("", "known: "),
    ],
)
def test_an_unknown_name_is_refused_with_its_place_and_what_resembles_it(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_evaluation(name, {}, where="items[3].evaluators")
    assert str(caught.value).startswith(f"items[3].evaluators: unknown evaluator {name!r}; ")
    assert hint in str(caught.value)


def test_two_uses_of_one_evaluator_are_told_apart_by_their_instance() -> None:
    strict = resolve_evaluation("exact_match:Strict: a", {"case_sensitive": True})
    assert strict.label == CATALOG.label("exact_match:Strict: a") == "ExactMatch:Strict: a"
    assert strict.evaluator.name == "ExactMatch"
    assert strict.options_json == '{"case_sensitive":true,"normalise":"none"}'
    with pytest.raises(ConfigError, match="unknown evaluator 'Exact'"):
        resolve_evaluation("Exact:ExactMatch", {})


def test_options_json_holds_all_options_sorted_without_the_threshold() -> None:
    evaluation = resolve_evaluation("PartialMatch", {"threshold": 0.25, "mode": "compat"})
    assert evaluation.options_json == '{"case_sensitive":false,"mode":"compat"}'
    assert evaluation.threshold == 0.25


def test_needs_and_fields_follow_the_options() -> None:
    free, bound = resolve_evaluation("Contains", {}), resolve_evaluation("Contains", {"search_text": "x"})
    assert (free.needs, bound.needs) == (("response", "expected_response"), ("response",))
    assert free.fields == bound.fields == ("response", "expected_response")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "PartialMatch",
            {"mode": "fuzzy"},
            "PartialMatch.mode: got 'fuzzy', accepted is 'compat' or 'unicode'",
        ),
        (
            "ExactMatch",
            {"case_sensitive": "no"},
            "ExactMatch.case_sensitive: got 'no', accepted is a valid boolean",
        ),
        (
            "ExactMatch",
            {"case_sensitive": 1},
            "ExactMatch.case_sensitive: got 1, accepted is a valid boolean",
        ),
        ("ExactMatch", {"case_sensitve": True}, "did you mean ExactMatch.case_sensitive"),
        ("Relevance", {"treshold": 3}, "did you mean Relevance.threshold"),
        ("Contains", {"search_text": 4}, "Contains.search_text: got 4, accepted is a valid string"),
        ("Citations", {"citation_format": "auto"}, "Citations.citation_format: got 'auto'"),
    ],
)
def test_a_wrong_option_is_refused_by_name(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_evaluation(name, options, where="evals.json")
    assert str(caught.value).startswith("evals.json: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "threshold", "accepted"),
    [
        ("PartialMatch", 3, "0..1"),
        ("PartialMatch", -0.1, "0..1"),
        ("Relevance", 6, "1..5"),
        ("Relevance", 0, "1..5"),
        ("Coherence", "3", "1..5"),
        ("Coherence", True, "1..5"),
        ("Coherence", None, "1..5"),
        ("Coherence", [3], "1..5"),
        ("Coherence", math.nan, "1..5"),
    ],
)
def test_a_threshold_off_the_scale_is_refused(name: str, threshold: Any, accepted: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_evaluation(name, {"threshold": threshold})
    wanted = f"{name}.threshold: got {threshold!r}, accepted is a number within {accepted}"
    assert str(caught.value) == wanted


def test_the_ends_of_the_scale_are_thresholds() -> None:
    assert resolve_evaluation("Relevance", {"threshold": 1}).threshold == 1.0
    assert resolve_evaluation("Relevance", {"threshold": parse_json("5.0")}).threshold == 5.0
    assert resolve_evaluation("PartialMatch", {"threshold": 0}).threshold == 0.0
    assert resolve_evaluation("Relevance", {}).threshold == 3.0
