"""Graders of OpenAI that ask a model, in a run: templates of their prompts are filled as mappings are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.api import Run
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")


def grade_rows(run_rows: Callable[..., Run], loopback: Loopback, text: str, **settings: Any) -> Run:
    options = {
        "input": [{"role": "user", "content": text}],
        "labels": ["yes", "no"],
        "passing_labels": ["yes"],
    }
    asked = {"evaluators": "label_model", "options": {"LabelModel": options}, "judge": "judge"}
    return run_rows(**asked | {"base_url": loopback.base_url} | settings)


def test_values_of_items_reach_the_judge(run_rows: Callable[..., Run], loopback: Loopback) -> None:
    loopback.script([], after={"reply": json.dumps({"reason": "r", "label": "yes"})})
    run = grade_rows(run_rows, loopback, "Is {{item.response}} right? It is {{item.ground_truth}}.")
    assert run.scores["passed"].to_list() == [True] * 3
    texts = [request["body"]["messages"][1]["content"] for request in loopback.requests]
    assert sorted("Lyon\n</item_response-" in text for text in texts) == [False, False, True]
    assert sorted("Paris\n</item_ground_truth-" in text for text in texts) == [False, False, True]


def test_the_answer_of_a_target_reaches_the_judge(run_rows: Callable[..., Run], loopback: Loopback) -> None:
    said = {"m": "Paris", "judge": json.dumps({"reason": "r", "label": "no"})}
    loopback.script([], after=lambda body: {"reply": said[body["model"]]})
    run = grade_rows(run_rows, loopback, "Is {{sample.output_text}} right?", model="m")
    assert run.scores.select("label", "score", "passed").unique().rows() == [("no", 0.0, False)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{item.grond_truth}}", "did you mean ground_truth"),
        ("{{robot.x}}", "unknown root robot"),
        ("{{sample.output_text}}", r"sample\.\* needs a target"),
    ],
)
def test_placeholders_that_nothing_fills_are_refused(
    run_rows: Callable[..., Run], loopback: Loopback, text: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        grade_rows(run_rows, loopback, text)
    assert loopback.requests == []


def test_a_formula_may_count_on_a_judge(run_rows: Callable[..., Run], loopback: Loopback) -> None:
    loopback.script([], after={"reply": json.dumps({"reason": "r", "score": 0.5})})
    shown = "Is {{item.response}} right?"
    graders: dict[str, Any] = {
        "m": {"type": "score_model", "input": [{"role": "user", "content": shown}]},
        "s": {"type": "string_check", "input": "{{item.response}}", "reference": "4", "operation": "eq"},
    }
    options = {"MultiGrader": {"graders": graders, "calculate_output": "m + s"}}
    run = grade_rows(run_rows, loopback, "", evaluators="multi", options=options)
    assert run.scores["score"].to_list() == [1.5, 0.5, 0.5]
    texts = [request["body"]["messages"][1]["content"] for request in loopback.requests]
    assert any(">\nLyon\n</item_response-" in text for text in texts)
