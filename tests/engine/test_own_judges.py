from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.api import Run
    from assay.testing import ModelServer

pytestmark = pytest.mark.usefixtures("api_key")
EXAMPLE = Path(__file__).parents[2] / "docs/examples/politeness.md"
POLITE = """---
name: Polite
labels: [polite, neutral, rude]
passing: [polite, neutral]
fields: query, response
---
Say how polite {{response}} is.
"""
GRADED = """---
name: Depth
scale: 0..10
threshold: 7
fields: response, context?
---
How deep is the answer?
"""


@pytest.fixture
def write_prompt(tmp_path: Path) -> Callable[..., str]:
    def write(text: str = POLITE, name: str = "mine.md") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def asked(loopback: ModelServer) -> dict[str, Any]:
    loopback.script([], after={"reply": '{"reason": "curt", "label": "Rude"}'})
    return {"judge": "j", "judge_base_url": loopback.base_url}


def test_a_prompt_file_is_an_evaluator_with_labels(
    run_rows: Callable[..., Run],
    asked: dict[str, Any],
    write_prompt: Callable[..., str],
    loopback: ModelServer,
) -> None:
    run = run_rows(**asked, judge_prompts=[write_prompt()])
    row = run.scores.row(0, named=True)
    found = [row[name] for name in ("evaluator", "label", "score", "passed", "threshold", "reason")]
    assert found == ["Polite", "rude", 0.0, False, 1.0, "curt"]
    system = loopback.requests[0]["body"]["messages"][0]["content"]
    assert system.startswith("Say how polite `response` is.")
    assert row["prompt_sha"] is not None


def test_a_dataset_names_a_judge_of_ones_own(
    tmp_path: Path, asked: dict[str, Any], write_prompt: Callable[..., str]
) -> None:
    items: list[dict[str, Any]] = [
        {"prompt": "a", "response": "x", "evaluators": {"Polite": {"threshold": 0}}},
        {"prompt": "b", "response": "y", "evaluators": {"ExactMatch": {}}, "expected_response": "y"},
    ]
    path = tmp_path / "evals.json"
    path.write_text(
        json.dumps({"schemaVersion": "1.6.0", "default_evaluators": {}, "items": items}), encoding="utf-8"
    )
    run = assay.run(path, store=tmp_path / "s", **asked, judge_prompts=[write_prompt()])
    rows = run.scores.filter(evaluator="Polite")
    assert sorted(rows["threshold"]) == [0.0, 1.0]


def test_scale_threshold_and_options_of_a_prompt_file_hold(
    run_rows: Callable[..., Run],
    asked: dict[str, Any],
    write_prompt: Callable[..., str],
    loopback: ModelServer,
) -> None:
    loopback.script([], after={"reply": '{"reason": "so so", "score": 6.5}'})
    place = write_prompt(GRADED)
    run = run_rows(**asked, judge_prompts=[place])
    assert run.scores.select("score", "passed").rows() == [(6.5, False)] * 3
    again = run_rows(**asked, judge_prompts=[place], options={"Depth": {"threshold": 6}})
    assert again.scores["passed"].all()


def test_a_reply_off_its_scale_is_an_error(
    run_rows: Callable[..., Run],
    asked: dict[str, Any],
    write_prompt: Callable[..., str],
    loopback: ModelServer,
) -> None:
    loopback.script([], after={"reply": '{"reason": "x", "score": 11}'})
    run = run_rows(**asked, judge_prompts=[write_prompt(GRADED)])
    assert run.scores["error_code"].to_list() == ["unparseable"] * 3
    assert "off the scale 0..10" in run.scores["error_message"][0]


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        (POLITE.replace("Polite", "Relevance"), "mine.md", "'Relevance' is that of a built-in evaluator"),
        (POLITE.replace("fields", "fieldz"), "mine.md", "unknown key of the head 'fieldz'; did you mean"),
        (POLITE, "mine.txt", "is no Markdown file"),
    ],
)
def test_a_prompt_file_that_cannot_work_is_refused_before_any_call(
    run_rows: Callable[..., Run],
    asked: dict[str, Any],
    write_prompt: Callable[..., str],
    text: str,
    name: str,
    told: str,
) -> None:
    with pytest.raises(ConfigError, match=told):
        run_rows(**asked, judge_prompts=[write_prompt(text, name)])


def test_a_prompt_file_that_changed_is_not_gone_on_with(
    run_rows: Callable[..., Run], asked: dict[str, Any], write_prompt: Callable[..., str], tmp_path: Path
) -> None:
    place = write_prompt()
    run = run_rows(**asked, judge_prompts=[place])
    write_prompt(POLITE + "Be strict.\n")
    with pytest.raises(ConfigError, match=r"mine\.md has changed since the run began"):
        assay.run(resume=run.run_id, store=tmp_path / "store")


def test_the_documented_prompt_file_works(
    run_rows: Callable[..., Run], asked: dict[str, Any], loopback: ModelServer
) -> None:
    loopback.script([], after={"reply": '{"reason": "curt", "score": 3}'})
    run = run_rows(**asked, judge_prompts=[str(EXAMPLE)])
    assert run.scores.select("evaluator", "score", "passed").rows() == [("Politeness", 3.0, False)] * 3
