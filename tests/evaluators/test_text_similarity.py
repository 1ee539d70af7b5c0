from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ConfigError
from evaluators.catalog import resolve_evaluation

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

ROUGE = {f"rouge_{n}": f"rouge{n}" for n in range(1, 6)} | {"rouge_l": "rougeL"}
TWINS: list[tuple[str, str, dict[str, str]]] = [
    ("bleu", "BleuScore", {}),
    ("gleu", "GleuScore", {}),
    ("meteor", "MeteorScore", {}),
    *((name, "RougeScore", {"rouge_type": kind}) for name, kind in ROUGE.items()),
]
ROWS = {
    "response": ["the cat sat on the mat", "Die Stra\u00dfe ist lang", "a b c d e f", "", "x", "x"],
    "expected_response": ["the cat sat on a mat", "DIE STRASSE IST LANG", "a b c d e f", "x", " ", None],
}


@pytest.mark.parametrize(("metric", "name", "options"), TWINS)
@pytest.mark.parametrize("mode", ["compat", "unicode"])
def test_a_metric_is_that_of_its_own_evaluator(
    score: Callable[..., pl.DataFrame], metric: str, name: str, options: dict[str, str], mode: str
) -> None:
    result = score("text_similarity", ROWS, evaluation_metric=metric, mode=mode)
    twin = score(name, ROWS, mode=mode, **options)
    columns = ["score", "reason", "details_json", "status"]
    assert result.select(columns).equals(twin.select(columns))
    assert set(result["metric"]) == {"TextSimilarity"}


@pytest.mark.parametrize(
    ("left", "right", "wanted"),
    [
        ("fuzzy wuzzy was a bear", "wuzzy fuzzy was a bear", 0.95),
        ("same", "same", 1.0),
        ("", "", 1.0),
        (" ", " ", 1.0),
        ("", "x", 0.0),
        ("abc", "xyz", 0.0),
        ("this is a test", "this is a test!", 0.9655172413793104),
    ],
)
def test_fuzzy_match_is_the_weighted_ratio(
    score: Callable[..., pl.DataFrame], left: str, right: str, wanted: float
) -> None:
    rows = {"response": [left], "expected_response": [right]}
    result = score("TextSimilarity", rows, evaluation_metric="fuzzy_match", mode="compat")
    assert result["score"].item() == pytest.approx(wanted, abs=1e-12)
    assert json.loads(result["details_json"].item()) == {
        "equals": "rapidfuzz WRatio / 100",
        "mode": "compat",
    }


@pytest.mark.parametrize("metric", ["fuzzy_match", *(metric for metric, *_ in TWINS)])
@pytest.mark.parametrize("mode", ["compat", "unicode"])
def test_the_details_of_every_metric_name_the_mode(
    score: Callable[..., pl.DataFrame], metric: str, mode: str
) -> None:
    rows = {"response": ["ab cd ef"], "expected_response": ["ab cd"]}
    result = score("TextSimilarity", rows, evaluation_metric=metric, mode=mode)
    assert json.loads(result["details_json"].item())["mode"] == mode


def test_without_a_threshold_there_is_no_verdict(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["a", "b"], "expected_response": ["a", "a"]}
    fuzzy = {"evaluation_metric": "fuzzy_match"}
    assert score("text_similarity", rows, **fuzzy)["passed"].to_list() == [None, None]
    for name in ("threshold", "pass_threshold"):
        given: dict[str, Any] = fuzzy | {name: 0.5}
        assert score("text_similarity", rows, **given)["passed"].to_list() == [True, False]


def test_a_blank_reference_is_text_in_compat_alone(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["x"], "expected_response": [" "]}
    for mode, status in (("compat", "ok"), ("unicode", "skipped")):
        result = score("text_similarity", rows, evaluation_metric="fuzzy_match", mode=mode)
        assert result["status"].item() == status


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"evaluation_metric": "rouge_6"}, "TextSimilarity.evaluation_metric"),
        ({}, "TextSimilarity.evaluation_metric"),
        ({"evaluation_metric": "bleu", "pass_threshold": 2}, "TextSimilarity.pass_threshold"),
    ],
)
def test_options_that_cannot_be_met_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_evaluation("text_similarity", options)


def test_input_and_reference_are_mappings() -> None:
    options: dict[str, Any] = {"evaluation_metric": "bleu", "input": "{{item.a}}", "reference": "{{item.b}}"}
    evaluation = resolve_evaluation("text_similarity", options)
    assert evaluation.mapping == {"response": "{{item.a}}", "expected_response": "{{item.b}}"}
