from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from assay.testing import ModelServer

pytestmark = pytest.mark.usefixtures("api_key")
VERDICT = {"reply": '{"reason": "fine", "score": 4}'}


@pytest.fixture
def judged(run_rows: Callable[..., Run], loopback: ModelServer) -> Callable[..., list[tuple[Any, ...]]]:
    loopback.script([], after=VERDICT)

    def run(
        only_if: dict[str, str] | None = None, evaluators: str = "ExactMatch,Relevance", **settings: Any
    ) -> list[tuple[Any, ...]]:
        given = {"only_if": only_if} if only_if is not None else {}
        done = run_rows(
            evaluators=evaluators, judge="j", judge_base_url=loopback.base_url, **given, **settings
        )
        columns = ("item_id", "status", "score", "reason", "error_code")
        return done.scores.filter(evaluator="Relevance").sort("item_id").select(columns).rows()

    return run


def test_the_judge_is_asked_only_where_the_string_evaluator_left_it_open(
    judged: Callable[..., list[tuple[Any, ...]]], loopback: ModelServer
) -> None:
    settled = "only if ExactMatch is fail: it is pass"
    assert judged({"Relevance": "ExactMatch:fail"}) == [
        ("a", "skipped", None, settled, "not_due"),
        ("b", "ok", 4.0, "fine", None),
        ("c", "skipped", None, settled, "not_due"),
    ]
    assert len(loopback.requests) == 1


def test_several_states_and_aliases_are_taken(judged: Callable[..., list[tuple[Any, ...]]]) -> None:
    rows = judged({"builtin.relevance": "exact_match:fail,pass"}, evaluators="ExactMatch,Relevance")
    assert [row[1] for row in rows] == ["ok", "ok", "ok"]


def test_a_condition_may_wait_for_a_judge_that_waits_itself(
    judged: Callable[..., list[tuple[Any, ...]]], loopback: ModelServer
) -> None:
    rows = judged(
        {"Relevance": "Coherence:pass", "Coherence": "ExactMatch:fail"},
        evaluators="Relevance,Coherence,ExactMatch",
    )
    assert [row[1] for row in rows] == ["skipped", "ok", "skipped"]
    assert rows[0][3] == "only if Coherence is pass: it is skipped"
    assert len(loopback.requests) == 2


def test_an_error_of_the_other_evaluator_is_a_state(
    run_rows: Callable[..., Run], loopback: ModelServer
) -> None:
    loopback.script([], after={"reply": "no verdict"})
    run = run_rows(
        evaluators="Coherence,Relevance",
        judge="j",
        judge_base_url=loopback.base_url,
        only_if={"Relevance": "Coherence:pass,fail"},
    )
    relevance = run.scores.filter(evaluator="Relevance")
    assert relevance["reason"].to_list() == ["only if Coherence is pass or fail: it is error"] * 3


def test_the_summary_counts_what_was_settled_and_takes_means_of_the_rest(
    run_rows: Callable[..., Run], loopback: ModelServer
) -> None:
    loopback.script([], after=VERDICT)
    asked = {"judge": "j", "judge_base_url": loopback.base_url, "only_if": {"Relevance": "ExactMatch:fail"}}
    run = run_rows(evaluators="ExactMatch,Relevance", **asked)
    row = run.summary.filter(evaluator="Relevance", slice="all").row(0, named=True)
    counts = ("passed", "failed", "errored", "skipped", "settled", "scored", "attempted", "mean", "coverage")
    assert [row[name] for name in counts] == [1, 0, 0, 2, 2, 1, 1, 4.0, 1.0]
    assert run.summary.filter(evaluator="ExactMatch", slice="all")["settled"].item() == 0


def test_a_file_names_the_condition_among_the_options(tmp_path: Path, loopback: ModelServer) -> None:
    item = {"prompt": "q", "response": "x", "expected_response": "x"}
    evaluators = {"ExactMatch": {}, "Relevance": {"only_if": "ExactMatch:fail"}}
    document = {"schemaVersion": "1.2.0", "items": [{**item, "evaluators": evaluators}]}
    path = tmp_path / "evals.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    run = assay.run(path, store=tmp_path / "store", judge="j", judge_base_url=loopback.base_url)
    states = dict(run.scores.select("evaluator", "error_code").rows())
    assert states["Relevance"] == "not_due"


@pytest.mark.parametrize(
    ("only_if", "evaluators", "told"),
    [
        ({"Relevance": "Exact:fail"}, "ExactMatch,Relevance", r"--only-if: unknown evaluator 'Exact'"),
        ({"Relevance": "ExactMatch"}, "ExactMatch,Relevance", r"--only-if: only_if 'ExactMatch': write"),
        ({"Relevance": "ExactMatch:bad"}, "ExactMatch,Relevance", r"states are pass, fail, error, skipped"),
        ({"Relevance": "ExactMatch:fail"}, "Relevance", r"does not run .* --evaluators \+ExactMatch"),
        ({"Relevance": "Relevance:fail"}, "Relevance", r"Relevance waits for Relevance"),
        ({"Coherence": "ExactMatch:fail"}, "ExactMatch,Relevance", r"--only-if: Coherence does not run here"),
        (
            {"Relevance": "Coherence:pass", "Coherence": "Relevance:pass"},
            "Relevance,Coherence",
            r"waits for .* waits for",
        ),
    ],
)
def test_a_condition_that_can_never_be_told_is_refused(
    judged: Callable[..., list[tuple[Any, ...]]], only_if: dict[str, str], evaluators: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        judged(only_if, evaluators=evaluators)


def test_runs_with_and_without_a_condition_are_told_apart(
    run_rows: Callable[..., Run], loopback: ModelServer
) -> None:
    loopback.script([], after=VERDICT)
    asked = {"evaluators": "ExactMatch,Relevance", "judge": "j", "judge_base_url": loopback.base_url}
    runs = [run_rows(**asked), run_rows(**asked, only_if={"Relevance": "ExactMatch:fail"})]
    hashes = [run.scores.filter(evaluator="Relevance")["options_sha"].unique().to_list() for run in runs]
    assert hashes[0] != hashes[1]
