from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from assay.contracts.tables import SAMPLES, SCORES, conform
from transforms.statuses import derive_statuses

VERDICTS = {
    "pass": ("ok", True),
    "fail": ("ok", False),
    "error": ("error", None),
    "skipped": ("skipped", None),
}


def sample(turn: int, status: str = "ok", code: str | None = None) -> dict[str, Any]:
    key = {"run_id": "r", "item_id": "a", "turn": turn, "trial": 0}
    return {**key, "status": status, "error_code": code, "attempts": 1, "from_ledger": False}


def score(turn: int, evaluator: str, state: str, code: str | None = None) -> dict[str, Any]:
    status, passed = VERDICTS[state]
    return {
        "run_id": "r", "item_id": "a", "turn": turn, "trial": 0, "level": "turn", "evaluator": evaluator,
        "options_sha": "o", "metric": evaluator, "evaluator_version": 1, "status": status, "passed": passed,
        "error_code": code,
    }  # fmt: skip


def derive(samples: list[dict[str, Any]], scores: list[dict[str, Any]]) -> dict[int, tuple[Any, Any]]:
    asked = conform(pl.DataFrame(samples, infer_schema_length=None), SAMPLES).lazy()
    given = pl.DataFrame(scores, schema_overrides={"error_code": pl.String, "passed": pl.Boolean})
    frame = derive_statuses(asked, (conform(given, SCORES) if scores else SCORES.empty()).lazy()).collect()
    return {turn: (status, code) for turn, status, code in frame.select("turn", "status", "code").rows()}


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "fail"], "fail"),
        (["pass", "error"], "partial"),
        (["error", "error"], "partial"),
        (["fail", "error"], "partial"),
        (["pass", "skipped"], "pass"),
        (["skipped"], None),
    ],
)
def test_a_turn_takes_the_worst_of_its_evaluators(states: list[str], expected: str | None) -> None:
    scores = [score(0, f"E{place}", state) for place, state in enumerate(states)]
    found = derive([sample(0)], scores)
    assert (found[0][0], found[-1][0]) == (expected, expected)


def test_a_turn_without_an_answer_is_an_error_whatever_the_evaluators_say() -> None:
    found = derive([sample(0, "error", "server_error")], [score(0, "E", "error", "server_error")])
    assert found == {-1: ("error", "agentRequestFailed"), 0: ("error", "agentRequestFailed")}


def test_a_conversation_with_an_error_is_one_and_what_follows_was_skipped() -> None:  # field case F054
    samples = [sample(0), sample(1, "error", "timeout"), sample(2, "skipped", "turn_skipped")]
    found = derive(samples, [score(0, "E", "pass")])
    assert [found[turn][0] for turn in (0, 1, 2, -1)] == ["pass", "error", "error", "error"]
    assert found[2][1] == "turnSkipped"


def test_a_conversation_with_a_partial_turn_and_a_fail_is_partial() -> None:  # field case F054
    scores = [score(0, "E", "pass"), score(1, "E", "error", "unparseable"), score(2, "E", "fail")]
    found = derive([sample(0), sample(1), sample(2)], scores)
    assert [found[turn][0] for turn in (0, 1, 2, -1)] == ["pass", "partial", "fail", "partial"]
    assert found[-1][1] == "judgeOutputUnparseable"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("empty_response", "emptyAgentResponse"), ("rate_limited", "judgeRateLimited"), ("x", "evaluatorError")],
)
def test_codes_are_those_of_the_eval_document(ours: str, theirs: str) -> None:
    assert derive([sample(0)], [score(0, "E", "error", ours)])[0] == ("partial", theirs)


def test_what_was_never_asked_has_no_status() -> None:
    assert derive([sample(0, "skipped", "budget")], [score(0, "E", "skipped")])[0] == (None, None)
