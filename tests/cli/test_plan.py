"""`assay plan`: what it prints, in which forms, and that it touches nothing."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.engine.estimate import COLUMNS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Loopback

ROWS = [{"id": name, "query": f"q {name}", "response": "4", "ground_truth": "4"} for name in "abc"]
STAGES = ["target gpt-4o-mini", "judge Relevance", "evaluators without a model", "total"]


@pytest.fixture
def tokens(tmp_path: Path, loopback: Loopback) -> list[str]:
    """Return a command line whose models are at a server that counts."""
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    models = ["--model", "gpt-4o-mini", "--judge", "gpt-4o", "--base-url", loopback.base_url]
    return ["plan", str(path), "--evaluators", "ExactMatch,Relevance", *models]


def test_a_plan_shows_stages_money_and_where_the_figures_come_from(
    call: Any, tokens: list[str], store: Path, loopback: Loopback
) -> None:
    code, out, err = call(*tokens)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "3 items of rows.jsonl (foundry)"
    assert lines[2].split() == [*COLUMNS]
    assert [line.split("  ")[0] for line in lines[3:7]] == STAGES
    assert "assumed, for want of earlier calls: answers of 50 / 250 / 800 tokens" in out
    assert "prices of 20" in out
    assert loopback.requests == []
    assert not store.exists()


def test_a_plan_as_json_is_one_document(call: Any, tokens: list[str]) -> None:
    code, out, _ = call(*tokens, "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert [row["stage"] for row in document["stages"]] == STAGES[:-1]
    assert document["total"]["calls"] == 6
    assert document["items"] == 3
    assert any("prices of" in note for note in document["notes"])


def test_a_plan_as_csv_has_its_notes_elsewhere(call: Any, tokens: list[str], tmp_path: Path) -> None:
    code, out, err = call(*tokens, "--format", "csv")
    assert code == 0
    assert [row["stage"] for row in csv.DictReader(io.StringIO(out))] == STAGES
    assert "prices of" in err
    assert call(*tokens, "--format", "csv", "-q")[2] == ""
    assert call(*tokens, "-o", tmp_path / "plan.md", "-q") == (0, "", "")
    assert (tmp_path / "plan.md").read_text().count("| judge Relevance |") == 1


def test_a_plan_refuses_what_a_run_refuses(call: Any, tokens: list[str], tmp_path: Path) -> None:
    line = ["mine" if word == "gpt-4o" else word for word in tokens] + ["--max-cost", "1"]
    code, _, err = call(*line)
    assert code == 2
    assert "'mine'" in err
    assert "--prices FILE" in err
    prices = tmp_path / "prices.json"
    prices.write_text('{"models": {"mine": {"input": 0, "output": 0}}}', encoding="utf-8")
    code, out, _ = call(*line, "--prices", prices)
    assert code == 0
    assert "prices.json" in out


def test_a_plan_of_stored_answers_without_a_judge_is_free(call: Any, tokens: list[str]) -> None:
    code, out, _ = call(*tokens[:2], "--evaluators", "ExactMatch")
    assert code == 0
    assert "no model is called" in out


def test_a_plan_of_a_run_that_goes_on_tells_what_is_left(
    call: Any, tokens: list[str], loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = {"reply": '{"reason": "good", "score": 5}'}
    loopback.script([], match=[("You grade one answer", verdict)])
    with monkeypatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "k")
        assert call("run", *tokens[1:])[0] == 0
    code, out, _ = call("plan", "--resume", "latest", "--format", "json")
    assert code == 0
    assert (json.loads(out)["total"]["hits"], json.loads(out)["total"]["calls"]) == (6, 0)
    assert len(loopback.requests) == 6
