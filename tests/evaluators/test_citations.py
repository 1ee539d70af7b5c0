from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

GOLDEN = Path(__file__).parents[1] / "golden" / "golden-m365.jsonl"
LINES: list[dict[str, Any]] = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
CASES = [line for line in LINES if line["evaluator"] == "Citations"]
DECIDED_OTHERWISE = {
    ("bracket", "Allowed [1]."): 1.0
}  # derived from one reading of the schema; `[1]` counts here
MARK = "\ue200cite\ue202turn0search1\ue202turn0news2\ue201"


def labels(score: Callable[..., pl.DataFrame], response: str, **options: str) -> list[str]:
    result = score("Citations", {"response": [response]}, **options)
    found = json.loads(result["details_json"].item())["labels"]
    assert result["score"].item() == len(found)
    return found


@pytest.mark.parametrize("line", CASES, ids=range(len(CASES)))
def test_known_counts_are_met(score: Callable[..., pl.DataFrame], line: dict[str, Any]) -> None:
    key = (line["options"].get("citation_format", "mixed"), line["response"])
    result = score("Citations", {"response": [line["response"]]}, **line["options"])
    assert result["score"].item() == DECIDED_OTHERWISE.get(key, line["score"])
    assert result["passed"].item() is (result["score"].item() >= 1)


def test_each_mark_belongs_to_one_format_and_mixed_is_all(score: Callable[..., pl.DataFrame]) -> None:
    text = f"a [1] b [^2^] c [3](https://x.org/a_(b)) d {MARK}"
    assert labels(score, text, citation_format="bracket") == ["1", "2"]
    assert labels(score, text, citation_format="markdown") == ["3"]
    assert labels(score, text, citation_format="oai_unicode") == ["turn0search1", "turn0news2"]
    assert labels(score, text) == ["1", "2", "3", "turn0search1", "turn0news2"]


def test_a_label_counts_once_unless_occurrences_are_asked_for(score: Callable[..., pl.DataFrame]) -> None:
    text = "[2] and [1](https://x.org) and [^2^] and [1]"
    assert labels(score, text) == ["2", "1"]
    assert labels(score, text, count="occurrences") == ["2", "1", "2", "1"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[1](see page 3)", ["1"]),
        ('[1](https://x.org "A title")', ["1"]),
        ("[12][3]", ["12", "3"]),
        ("[^1] [a] [1.2] [ 1 ] [] (1)", []),
        ("[link](https://x.org)", []),
        ("\ue200cite\ue201 \ue200other\ue202x\ue201", []),
        ("", []),
    ],
)
def test_only_whole_marks_count(score: Callable[..., pl.DataFrame], text: str, found: list[str]) -> None:
    assert labels(score, text) == found


@pytest.mark.parametrize("threshold", [0, 1.5, -1, True, "1", None, float("nan"), float("inf"), 10**400])
def test_a_threshold_is_a_whole_number_from_one(
    score: Callable[..., pl.DataFrame], threshold: object
) -> None:
    with pytest.raises(ConfigError, match=r"Citations\.threshold: got .*1\.\. in whole numbers"):
        score("Citations", {"response": ["[1]"]}, threshold=threshold)


@pytest.mark.parametrize("citation_format", ["Bracket", "apa", "", None, ["bracket"]])
def test_a_format_that_nobody_knows_is_refused(
    score: Callable[..., pl.DataFrame], citation_format: object
) -> None:
    accepted = "'mixed', 'oai_unicode', 'bracket' or 'markdown'"
    with pytest.raises(ConfigError, match=rf"Citations\.citation_format: got .*{accepted}"):
        score("Citations", {"response": ["[1]"]}, citation_format=citation_format)


def test_a_whole_threshold_may_be_written_as_a_float(score: Callable[..., pl.DataFrame]) -> None:
    result = score("citations", {"response": ["[1]", "[1] [2]"]}, threshold=2.0)
    assert result["passed"].to_list() == [False, True]


def test_labels_stand_in_the_order_of_the_answer(score: Callable[..., pl.DataFrame]) -> None:
    marks = [str(n) for n in (9, 3, 12, 1, 7, 30, 2)]
    answer = " ".join(f"[{mark}]" for mark in [*marks, "3", "9"])
    assert labels(score, answer) == marks
