from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ConfigError
from evaluators.catalog import find_evaluator, resolve_evaluation
from evaluators.rubric_grader import Dimension, build_question, weigh_grades

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    Score = Callable[..., pl.DataFrame]
    Script = Callable[..., Any]

TONE: dict[str, Any] = {
    "dimension_id": "tone",
    "description": "The answer is\n polite.",
    "weight": 3,
    "always_applicable": True,
}
FACTS: dict[str, Any] = {"dimension_id": "facts", "description": "All facts hold."}
ROW = {"query": ["q"], "response": ["r"]}


def reply(**grades: object) -> str:
    return json.dumps(
        {"dimensions": {name: {"reason": f"so is {name}", "score": s} for name, s in grades.items()}}
    )


def weigh(pairs: list[tuple[float, float | None]]) -> float | None:
    dimensions = [
        Dimension(dimension_id=f"d{place}", description="d", weight=weight)
        for place, (weight, _) in enumerate(pairs)
    ]
    return weigh_grades(dimensions, {f"d{place}": score for place, (_, score) in enumerate(pairs)})


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(1, 5)], 1.0),
        ([(1, 1), (7, 1)], 0.0),
        ([(2, 3)], 0.5),
        ([(1, 2), (3, 4)], 10 / 16),
        ([(11, 3), (10, 5), (14, 5)], 59 / 70),
        ([(9, 2), (5, 1), (2, 1), (50, None)], 9 / 64),
        ([(1, None), (3, 4), (9, None)], 0.75),
        ([(1e308, 5), (1e308, 1)], 0.5),
        ([(1e-320, 5), (1e-320, 5)], 1.0),
    ],
)
def test_the_score_is_the_weighted_share_of_the_way_from_1_to_5(
    pairs: list[tuple[float, float | None]], expected: float
) -> None:
    assert weigh(pairs) == pytest.approx(expected, abs=1e-12)
    assert weigh([(weight, None) for weight, _ in pairs]) is None


def test_dimensions_are_graded_weighed_and_told(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(reply(tone=5, facts=2))
    row = score("RubricGrader", ROW, chat, dimensions=[TONE, FACTS]).row(0, named=True)
    assert row["score"] == pytest.approx((3 * 4 + 1) / 16)
    assert (row["passed"], row["threshold"]) == (True, 0.5)
    assert row["reason"] == "tone 5: so is tone; facts 2: so is facts"
    assert json.loads(row["details_json"]) == {
        "dimensions": [
            {"dimension_id": "tone", "weight": 3.0, "score": 5.0, "reason": "so is tone"},
            {"dimension_id": "facts", "weight": 1.0, "score": 2.0, "reason": "so is facts"},
        ]
    }


def test_the_judge_is_told_of_every_dimension_but_not_of_weights(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(reply(tone=5, facts=2))
    row = score("builtin.rubric", ROW | {"context": ["c"]}, chat, dimensions=[TONE, FACTS]).row(0, named=True)
    request = chat.requests[0]
    system, user = (str(message["content"]) for message in request.messages)
    assert "- `tone`: The answer is polite.\n- `facts`: All facts hold.\n" in system
    assert "weight" not in system
    assert re.findall(r"<(\w+)-[0-9a-f]{16}>\n", user) == ["query", "response", "context"]
    grades = request.json_schema["properties"]["dimensions"]
    assert grades["required"] == ["tone", "facts"]
    kinds = {name: each["properties"]["score"] for name, each in grades["properties"].items()}
    assert kinds == {
        "tone": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
        "facts": {"type": ["integer", "null"], "enum": [1, 2, 3, 4, 5, None]},
    }
    dimensions = (Dimension(**TONE), Dimension(**FACTS))
    assert row["prompt_sha"] == build_question(dimensions).sha


@pytest.mark.parametrize("absent", [None, "not applicable", "N/A"])
def test_a_dimension_that_does_not_apply_does_not_count(
    score: Score, scripted_chat: Script, absent: str | None
) -> None:
    chat = scripted_chat(reply(tone=3, facts=absent))
    row = score("rubric", ROW, chat, dimensions=[TONE, FACTS]).row(0, named=True)
    assert (row["score"], row["passed"]) == (0.5, True)
    assert json.loads(row["details_json"])["dimensions"][1]["score"] is None
    assert "facts not applicable: so is facts" in row["reason"]


def test_a_row_on_which_no_dimension_applies_is_skipped(score: Score, scripted_chat: Script) -> None:
    row = score("rubric", ROW, scripted_chat(reply(facts=None)), dimensions=[FACTS]).row(0, named=True)
    assert (row["status"], row["score"], row["passed"]) == ("skipped", None, None)
    assert row["reason"] == "no dimension applies: facts not applicable: so is facts"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (reply(tone=None, facts=3), "`tone`: no number under `score`"),
        (reply(tone="not applicable", facts=3), "`tone`: no number under `score`"),
        (reply(tone=3), "no object under `facts`"),
        (reply(tone=3, facts=0), "`facts`: `score` is off the scale 1..5 in whole numbers"),
        (reply(tone=3.5, facts=1), "`tone`: `score` is off the scale 1..5 in whole numbers"),
        (reply(tone=3, facts=True), "`facts`: no number under `score`"),
        (
            '{"dimensions": {"tone": {"reason": "x", "score": 3}, "facts": {"reason": "x"}}}',
            "`facts`: no number",
        ),
        (
            '{"dimensions": {"tone": {"score": 3}, "facts": {"reason": "x", "score": 3}}}',
            "`tone`: no text under",
        ),
        ('{"dimensions": "3 and 4"}', "no object under `dimensions`"),
        ('{"tone": 3, "facts": 4}', "no JSON object with `dimensions`"),
    ],
)
def test_a_dimension_without_a_grade_leaves_no_verdict(
    score: Score, scripted_chat: Script, said: str, told: str
) -> None:
    chat = scripted_chat(said)
    row = score("rubric", ROW, chat, dimensions=[TONE, FACTS]).row(0, named=True)
    assert (row["error_code"], row["score"], len(chat.requests)) == ("unparseable", None, 2)
    assert row["error_message"].startswith(told)
    mended = score("rubric", ROW, scripted_chat(said, reply(tone=1, facts=1)), dimensions=[TONE, FACTS])
    assert mended["score"].to_list() == [0.0]


@pytest.mark.parametrize(
    ("dimensions", "place"),
    [
        ([], "RubricGrader.dimensions"),
        ([TONE, TONE], "'tone' is not"),
        ([TONE | {"weight": 0}], "RubricGrader.dimensions.0.weight"),
        ([TONE | {"weight": -1.5}], "RubricGrader.dimensions.0.weight"),
        ([TONE | {"weight": float("inf")}], "RubricGrader.dimensions.0.weight"),
        ([TONE | {"dimension_id": "a b"}], "RubricGrader.dimensions.0.dimension_id"),
        ([{"dimension_id": "a"}], "RubricGrader.dimensions.0.description is required"),
        ([TONE | {"scale": 5}], "RubricGrader.dimensions.0.scale"),
    ],
)
def test_dimensions_that_cannot_be_weighed_are_refused(dimensions: list[Any], place: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(place)):
        resolve_evaluation("rubric", {"dimensions": dimensions})


def test_it_needs_an_answer_and_dimensions(score: Score, scripted_chat: Script) -> None:
    assert find_evaluator("RubricGrader").needs == ("response",)
    with pytest.raises(ConfigError, match="dimensions is required"):
        resolve_evaluation("builtin.rubric", {})
    chat = scripted_chat(reply(facts=3))
    assert score("rubric", {"response": [" "]}, chat, dimensions=[FACTS])["error_code"].to_list() == [
        "empty_response"
    ]
