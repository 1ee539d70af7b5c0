from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.api import Run
    from assay.testing import ModelServer

pytestmark = pytest.mark.usefixtures("api_key")
NOW = {"retry-after-ms": "0"}


def verdict(score: int) -> dict[str, Any]:
    return {"reply": f'{{"reason": "it is {score}", "score": {score}}}'}


@pytest.fixture
def judged(run_rows: Callable[..., Run], loopback: ModelServer) -> Callable[..., Run]:
    def run(*rows: dict[str, Any], evaluators: str, **settings: Any) -> Run:
        asked = {"judge": "j", "judge_base_url": loopback.base_url}
        return run_rows(*rows, evaluators=evaluators, **asked, **settings)

    return run


@pytest.mark.parametrize("reference", [None, "", "  "])
def test_f043_a_row_without_a_reference_is_skipped_by_the_judge_without_a_call(
    judged: Callable[..., Run], loopback: ModelServer, reference: str | None
) -> None:
    loopback.script([], after=verdict(5))
    rows = [
        {"id": "a", "query": "q", "response": "x", "ground_truth": reference},
        {"id": "b", "query": "q", "response": "x", "ground_truth": "x"},
    ]
    run = judged(*rows, evaluators="ExactMatch,Similarity")
    skipped = run.scores.filter(item_id="a").sort("evaluator")
    found = skipped.select("status", "score", "reason").rows()
    assert found == [("skipped", None, "no expected_response")] * 2
    counts = run.summary.filter(slice="all").select("skipped", "attempted", "scored").rows()
    assert counts == [(1, 1, 1)] * 2
    assert len(loopback.requests) == 1


def test_f054_what_an_agent_did_not_say_is_told_from_what_a_judge_could_not(
    judged: Callable[..., Run], loopback: ModelServer
) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        if body["model"] == "j":
            return verdict(4)
        asked = str(body["messages"])
        if "ROW-3" in asked:
            return {"status": 400, "body": {"error": {"message": "down for good"}}}
        return {"reply": "  \n" if "ROW-2" in asked else "fine answer"}

    loopback.script([], after=answer)
    rows = [{"id": str(n), "query": f"ROW-{n}", "ground_truth": "fine answer"} for n in (1, 2, 3)]
    run = judged(
        *rows, evaluators="ExactMatch,Relevance", model="agent", base_url=loopback.base_url, max_errors="9"
    )
    judge = run.scores.filter(evaluator="Relevance").sort("item_id").select("status", "error_code").rows()
    assert judge == [("ok", None), ("error", "empty_response"), ("error", "bad_request")]
    exact = run.scores.filter(evaluator="ExactMatch").sort("item_id")["score"].to_list()
    assert exact == [1.0, 0.0, None]
    told = run.statuses.filter(turn=-1).sort("item_id").select("status", "code").rows()
    assert told == [("pass", None), ("partial", "emptyAgentResponse"), ("error", "agentRequestFailed")]
    assert sum(request["body"]["model"] == "j" for request in loopback.requests) == 1


def test_f073_a_judge_that_breaks_never_makes_a_run_look_better(
    judged: Callable[..., Run], loopback: ModelServer
) -> None:
    rows = [{"id": n, "query": n, "response": f"answer {n}"} for n in ("a", "b")]
    loopback.script([], match=[("answer a", verdict(5)), ("answer b", verdict(1))])
    whole = judged(*rows, evaluators="Relevance", concurrency=1)
    loopback.script([], match=[("answer a", verdict(5)), ("answer b", {"reply": "NaN"})])
    broken = judged(*rows, evaluators="Relevance", concurrency=1)
    names = ("mean", "scored", "attempted", "errored", "coverage", "pass_rate")
    found = [run.summary.filter(slice="all").select(names).row(0) for run in (whole, broken)]
    assert found == [(3.0, 2, 2, 0, 1.0, 0.5), (5.0, 1, 2, 1, 0.5, 0.5)]
    assert (whole.exit_code, broken.exit_code) == (0, 3)
    assert broken.scores["score"].is_nan().sum() == 0
