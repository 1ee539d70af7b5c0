"""UiPath projects whose evaluators ask a judge, run as they lie on the disk."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import assay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")

OLDER = {
    "semantic": {"category": 1, "type": 5, "prompt": "0-100\n{{ActualOutput}}", "model": "same-as-agent"},
    "trajectory": {"category": 3, "type": 7, "prompt": "{{AgentRunHistory}} {{ExpectedAgentBehavior}}"},
    "faithful": {"category": 1, "type": 9, "prompt": "Are the claims grounded?", "model": "m"},
}
TYPES = {
    "semantic": "uipath-llm-judge-output-semantic-similarity",
    "strict": "uipath-llm-judge-output-strict-json-similarity",
    "trajectory": "uipath-llm-judge-trajectory-similarity",
}
DEFAULTS = {"expectedOutput": {"answer": "Paris"}, "expectedAgentBehavior": "looks it up"}
JUDGED: list[tuple[str, dict[str, Any]]] = [
    ("You list the claims", {"reason": "r", "claims": []}),
    ("numbered keys", {"findings": [{"number": 1, "reason": "r", "finding": "similar"}]}),
]


def answer(body: dict[str, Any]) -> dict[str, Any]:
    if body["model"] == "agent":
        return {"reply": '{"answer": "The city of Paris"}'}
    told = str(body["messages"][0]["content"])
    found = next((reply for words, reply in JUDGED if words in told), {"reason": "r", "score": 80})
    return {"reply": json.dumps(found)}


@pytest.fixture
def run_project(tmp_path: Path, loopback: Loopback) -> Callable[..., Run]:
    def run(evaluators: dict[str, Any], root: dict[str, Any], **evaluation: Any) -> Run:
        item = {"id": "1", "name": "one", "inputs": {"q": "Capital of France?"}, **evaluation}
        files = {f"evaluators/{name}": {"id": name, "name": name, **own} for name, own in evaluators.items()}
        files["eval-sets/set"] = {**root, "evaluatorRefs": [*evaluators], "evaluations": [item]}
        for name, content in files.items():
            path = tmp_path / "evals" / f"{name}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content), encoding="utf-8")
        loopback.script([], after=answer)
        asked: dict[str, Any] = {"model": "agent", "judge": "judge", "base_url": loopback.base_url}
        return assay.run(tmp_path / "evals" / "eval-sets" / "set.json", store=tmp_path / "store", **asked)

    return run


def scores_of(run: Run) -> dict[str, tuple[Any, ...]]:
    columns = run.scores.select(pl.col("evaluator").str.split(":").list.get(0), "status", "score")
    return {name: tuple(rest) for name, *rest in columns.rows()}


def test_an_older_set_runs_with_a_judge(run_project: Callable[..., Run], loopback: Loopback) -> None:
    expected = {"expectedOutput": {"answer": "Paris"}, "expectedAgentBehavior": "looks it up"}
    run = run_project(OLDER, {}, **expected)
    assert scores_of(run) == {
        "UiPathSemanticSimilarity": ("ok", 0.8),
        "UiPathTrajectory": ("ok", 0.8),
        "UiPathFaithfulness": ("ok", 1.0),
    }
    asked = [str(request["body"]["messages"]) for request in loopback.requests]
    assert any("looks it up" in text and "run_history" in text for text in asked)


def test_an_older_evaluation_without_a_behaviour_is_skipped_by_the_trajectory(
    run_project: Callable[..., Run],
) -> None:
    run = run_project({"trajectory": OLDER["trajectory"]}, {}, expectedOutput={"answer": "Paris"})
    assert scores_of(run) == {"UiPathTrajectory": ("skipped", None)}
    assert run.scores["reason"].to_list() == ["no expected_response"]


def test_a_set_of_today_runs_with_a_judge(run_project: Callable[..., Run]) -> None:
    evaluators = {
        name: {
            "version": "1.0",
            "evaluatorTypeId": type_id,
            "evaluatorConfig": {"name": name, "model": "m", "temperature": 0.0, "maxTokens": 500}
            | {"defaultEvaluationCriteria": DEFAULTS},
        }
        for name, type_id in TYPES.items()
    }
    run = run_project(evaluators, {"version": "1.0"}, evaluationCriterias=dict.fromkeys(TYPES))
    assert scores_of(run) == {
        "UiPathSemanticSimilarity": ("ok", 0.8),
        "UiPathStrictJsonSimilarity": ("ok", 0.5),
        "UiPathTrajectory": ("ok", 0.8),
    }
