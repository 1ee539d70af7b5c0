from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.testing.batches import BatchServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Call = Callable[..., tuple[int, str, str]]

pytestmark = pytest.mark.usefixtures("api_key")


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with BatchServer(after={"reply": "Paris"}) as server:
        yield server


@pytest.fixture
def line(server: BatchServer, tmp_path: Path) -> list[object]:
    """Return what follows `assay run` for three questions to a model."""
    data = tmp_path / "questions.jsonl"
    rows = (f'{{"id":"{name}","query":"q {name}","ground_truth":"Paris"}}\n' for name in "abc")
    data.write_text("".join(rows), encoding="utf-8")
    return [data, "--model", "m", "--base-url", server.base_url, "--evaluators", "ExactMatch"]


def test_a_run_is_submitted_looked_at_and_collected(call: Call, line: list[object]) -> None:
    code, out, err = call("run", *line, "--batch", "submit")
    assert (code, "batch_1" in out, "1 job under way" in err) == (0, True, True)
    assert "assay batch collect" in err
    code, out, _ = call("batch", "status", "latest", "--format", "json")
    (told,) = json.loads(out)
    assert code == 0
    assert told == {
        "job": "batch_1",
        "asks": "target",
        "model": "m",
        "state": "made",
        "status": "completed",
        "done": 3,
        "failed": 0,
        "total": 3,
        "message": None,
    }
    code, out, err = call("batch", "collect", "latest", "--format", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["run"]["passed"] == 3
    assert call("batch", "collect", "latest", "--quiet")[0] == 0


def test_collecting_too_early_decides_nothing(call: Call, line: list[object], server: BatchServer) -> None:
    server.plans.append({"held": True})
    call("run", *line, "--batch", "submit")
    code, out, err = call("batch", "collect", "latest")
    assert (code, "in_progress" in out, "nothing is decided yet" in err) == (3, True, True)
    assert call("runs", "--format", "json")[1].strip() == "[]"


def test_new_jobs_are_made_of_what_is_left_or_not(
    call: Call, line: list[object], server: BatchServer
) -> None:
    server.plans.extend([{"status": "expired", "answered": 1}, {"status": "expired", "answered": 1}])
    call("run", *line, "--batch", "submit")
    code, out, _ = call("batch", "collect", "latest")
    assert (code, "batch_2" in out) == (3, True)
    code, _, err = call("batch", "collect", "latest", "--no-submit", "--quiet")
    assert (code, len(server.jobs)) == (3, 2)
    assert "1 requests have no answer" in err
    assert call("run", "--resume", "latest", "--quiet")[0] == 0
    assert len(server.requests) == 3


def test_the_same_command_goes_on_with_a_submission_that_was_cut_short(
    call: Call, line: list[object], server: BatchServer
) -> None:
    server.plans.append({"cut": True})
    assert call("run", *line, "--batch", "submit")[0] == 3
    assert call("run", *line, "--batch", "submit")[0] == 0
    assert len(server.jobs) == 1
    assert call("run", *line, "--batch", "submit")[0] == 0  # a run of its own
    assert len(server.jobs) == 2


def test_a_run_whose_answers_are_known_is_committed_at_once(
    call: Call, line: list[object], server: BatchServer
) -> None:
    call("run", *line, "--quiet")
    assert call("run", *line, "--batch", "submit", "--reuse", "all", "--quiet")[0] == 0
    assert (len(server.requests), server.jobs) == (3, [])
    _, out, _ = call("query", "select distinct from_ledger from samples order by 1", "--format", "json")
    assert [row["from_ledger"] for row in json.loads(out)] == [False, True]


@pytest.mark.parametrize(
    ("tokens", "problem"),
    [
        (["--max-cost", "1"], "--max-cost"),
        (["--engine", "prefect"], "--engine prefect"),
    ],
)
def test_what_jobs_cannot_do_is_refused_before_anything_is_made(
    call: Call, line: list[object], store: Path, tokens: list[str], problem: str
) -> None:
    code, _, err = call("run", *line, "--batch", "submit", *tokens)
    assert (code, problem in err, store.exists()) == (2, True, False)


def test_other_runs_are_refused(call: Call, line: list[object]) -> None:
    call("run", *line, "--quiet")
    code, _, err = call("batch", "collect", "latest")
    assert (code, "has no batch jobs" in err) == (2, True)
    code, _, err = call("batch", "status", "latest", "--no-submit")
    assert code == 2


def test_an_ordinary_run_goes_on_by_jobs(call: Call, line: list[object], server: BatchServer) -> None:
    busy: dict[str, Any] = {"status": 400, "body": {"error": {"message": "no such thing"}}}
    server.script([], after={"reply": "Paris"}, match=[("q b", busy)])
    assert call("run", *line, "--quiet")[0] == 3
    server.script([], after={"reply": "Paris"})
    assert call("run", "--resume", "latest", "--batch", "submit", "--quiet")[0] == 0
    assert server.jobs[0]["request_counts"]["total"] == 1
    assert call("batch", "collect", "latest", "--quiet")[0] == 0
