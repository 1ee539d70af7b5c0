from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators import meteor_score
from evaluators.catalog import Catalog
from evaluators.runner import run_evaluation
from evaluators.text.meteor import Weights, score_compat
from evaluators.text.sdk_words import list_sdk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CATALOG = Catalog([meteor_score.EVALUATOR])
GOLDEN = Path(__file__).parents[1] / "golden" / "golden-foundry.jsonl"
TOKYO = "\u6771\u4eac\u306f\u9996\u90fd"
WORDS = st.sampled_from(
    ["cat", "cats", "dog", "hound", "car", "auto", "the", "Stra\u00dfe", "\u4eac", "!", "."]
)
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
HYPOTHESIS = "It is a guide to action which ensures that the military always obeys the commands of the party"
REFERENCE = "It is a guide to action that ensures that the military will forever heed Party commands"


def read_golden(evaluator: str) -> list[dict[str, Any]]:
    lines = map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["evaluator"] == f"builtin.{evaluator}"]


def score(pairs: Sequence[tuple[str | None, str | None]], **options: Any) -> pl.DataFrame:
    schema = {"response": pl.String, "expected_response": pl.String}
    frame = pl.DataFrame(pairs, schema=schema, orient="row")
    return asyncio.run(run_evaluation(CATALOG.resolve("builtin.meteor_score", options), frame, None))


def one(response: str, expected: str, **options: Any) -> float:
    return score([(response, expected)], **options)["score"][0]


def grams(tokens: list[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[at : at + size]) for at in range(len(tokens) - size + 1))


def bleu(response: list[str], expected: list[str]) -> float:
    """Score BLEU-4 with smoothing method 4 the slow way."""
    shared = [(grams(response, n) & grams(expected, n)).total() for n in (1, 2, 3, 4)]
    if not shared[0]:
        return 0.0
    zeros, logs = 0, 0.0
    for size, common in enumerate(shared, 1):
        count: float = common
        if not common and len(response) > 1:
            zeros += 1
            count = math.log(len(response)) / (5 * 2**zeros)
        logs += math.log(count / max(1, len(response) - size + 1)) if count else 0.0
    return math.exp(min(0.0, 1 - len(expected) / len(response))) * math.exp(logs / 4)


def gleu(response: list[str], expected: list[str]) -> float:
    """Score GLEU the slow way."""
    sizes = range(1, 5)
    whole = max(sum(max(len(side) - size + 1, 0) for size in sizes) for side in (response, expected))
    shared = sum((grams(response, size) & grams(expected, size)).total() for size in sizes)
    return shared / whole if whole else 0.0


def test_all_vectors_of_the_sdk_are_met() -> None:
    lines = read_golden("meteor_score")
    assert len(lines) == 111
    for line in lines:
        found = one(line["response"], line["ground_truth"], **line["options"])
        assert found == pytest.approx(line["outputs"]["meteor_score"], abs=1e-12), line


@pytest.mark.parametrize(("name", "metric"), [("bleu", bleu), ("gleu", gleu)])
def test_words_of_the_sdk_lead_to_its_other_vectors(
    name: str, metric: Callable[[list[str], list[str]], float]
) -> None:
    lines = read_golden(f"{name}_score")
    assert len(lines) == 111
    for line in lines:
        found = metric(list_sdk(line["response"]), list_sdk(line["ground_truth"]))
        assert found == pytest.approx(line["outputs"][f"{name}_score"], abs=1e-12), line


def test_the_published_example_scores_as_published() -> None:
    found = score_compat(HYPOTHESIS.lower().split(), REFERENCE.lower().split(), Weights())
    assert round(found.score, 4) == 0.6944


@pytest.mark.parametrize(
    ("response", "expected", "compat", "unicode"),
    [
        ("Paris", "Paris", 0.5, 1.0),
        ("the cats", "The cat", 1 - 0.5 / 8, 1.0),
        ("a hound", "a dog", 1 - 0.5 / 8, 1.0),
        ("geese", "goose", 0.0, 1.0),
        (TOKYO, TOKYO, 0.5, 1.0),
        ("!", "!", 0.5, 1.0),
        ("!", "?", 0.0, 0.0),
        ("no", "yes", 0.0, 0.0),
    ],
)
def test_modes_differ_where_the_original_is_wrong(
    response: str, expected: str, compat: float, unicode: float
) -> None:
    assert one(response, expected) == pytest.approx(compat)
    assert one(response, expected, mode="unicode") == pytest.approx(unicode)


def test_a_blank_reference_is_text_in_compat_and_skipped_in_unicode() -> None:
    rows = [("a", " "), ("b", None)]
    assert score(rows)["status"].to_list() == ["ok", "skipped"]
    assert score(rows, mode="unicode")["status"].to_list() == ["skipped", "skipped"]


def test_details_hold_what_was_found_and_how() -> None:
    result = score([("a cat and a dog", "a dog")])
    details = json.loads(result["details_json"][0])
    counts = {name: details[name] for name in ("tokens", "expected_tokens", "matches", "chunks")}
    assert counts == {"tokens": 5, "expected_tokens": 2, "matches": 2, "chunks": 1}
    assert (details["mode"], result["metric"][0]) == ("compat", "meteor")


@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=4),
    mode=st.sampled_from(["compat", "unicode"]),
)
def test_scores_lie_on_the_scale_and_rows_do_not_matter_to_each_other(
    pairs: list[tuple[str, str]], mode: str
) -> None:
    together = score(pairs, mode=mode)["score"].to_list()
    assert together == [one(*pair, mode=mode) for pair in pairs]
    assert all(0 <= found <= 1 for found in together if found is not None)


@given(text=TEXTS.filter(str.strip))
def test_a_text_equals_itself_in_unicode(text: str) -> None:
    assert one(text, text, mode="unicode") == 1.0
