from __future__ import annotations

import json
from collections import Counter
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.cli.output import Output
from assay.cli.summary import read_run_summary, write_summary
from assay.contracts.tables import CANARIES
from assay.engine.canaries import read_health
from assay.engine.estimate import estimate_run
from assay.errors import ConfigError
from assay.settings import make_config
from assay.store.layout import RunFolder, open_store
from assay.store.parts import scan_parts
from evaluators.canaries import parse_canaries, read_shipped, resolve_canaries
from evaluators.catalog import CATALOG
from evaluators.contract import JudgeEvaluator
from evaluators.graded import EVALUATORS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    from assay.api import Run
    from assay.testing import ModelServer

pytestmark = pytest.mark.usefixtures("api_key")
GOOD = {"evaluator": "Relevance", "name": "good", "fields": {"query": "Q", "response": "CANARY-G"}, "low": 4}
BAD = {
    "evaluator": "relevance",
    "name": "bad",
    "fields": {"query": "Q", "response": "CANARY-B"},
    "low": 1,
    "high": 2,
}
VERDICTS = {5: {"reply": '{"reason": "fine", "score": 5}'}, 1: {"reply": '{"reason": "off", "score": 1}'}}
LOOSE = ("LabelModel", "ScoreModel")  # their question is the user's own


@pytest.fixture
def write_canaries(tmp_path: Path) -> Callable[..., str]:
    def write(*canaries: dict[str, Any]) -> str:
        path = tmp_path / "canaries.jsonl"
        path.write_text("\n".join(json.dumps(each) for each in canaries), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def judged(
    run_rows: Callable[..., Run], write_canaries: Callable[..., str], loopback: ModelServer
) -> Callable[..., Run]:
    """Run the rows and two canaries with a judge that finds all good but what holds CANARY-B."""
    loopback.script([], after=VERDICTS[5], match=[("CANARY-B", VERDICTS[1])])

    def run(*canaries: dict[str, Any], **settings: Any) -> Run:
        place = write_canaries(*(canaries or (GOOD, BAD)))
        given: dict[str, Any] = {"evaluators": "Relevance", "judge": "j", "canaries": place}
        return run_rows(**(given | {"judge_base_url": loopback.base_url} | settings))

    return run


def read_canaries(run: Run) -> pl.DataFrame:
    return scan_parts(RunFolder(open_store(run.store, create=False), run.run_id), CANARIES).collect()


def describe_health(run: Run) -> str:
    return read_health(RunFolder(open_store(run.store, create=False), run.run_id)).describe()


def test_canaries_are_asked_with_every_batch_and_kept_beside_the_scores(
    judged: Callable[..., Run], loopback: ModelServer
) -> None:
    run = judged(batch_size=2)
    rows = read_canaries(run)
    assert Counter(rows.select("evaluator", "canary", "passed", "expected", "score").iter_rows()) == {
        ("Relevance", "good", True, "4..", 5.0): 2,
        ("Relevance", "bad", True, "1..2", 1.0): 2,
    }
    assert (run.scores.height, run.scores["score"].to_list()) == (3, [5.0] * 3)
    assert run.info["judge_health"] == "ok"
    assert describe_health(run) == "judge health: ok: 4 canaries green"
    assert len(loopback.requests) == 7


def test_canaries_are_under_way_together_with_the_rows(
    judged: Callable[..., Run], loopback: ModelServer
) -> None:
    asked, met = Event(), list[bool]()

    def hold(_: dict[str, Any]) -> dict[str, Any]:
        met.append(asked.wait(5))
        return VERDICTS[5]

    def note(_: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        return VERDICTS[1]

    loopback.script([], after=VERDICTS[5], match=[("CANARY-B", note), ("France", hold)])
    assert judged(concurrency=8).info["judge_health"] == "ok"
    assert met == [True]


def test_a_red_canary_makes_the_judge_unhealthy_and_is_named(judged: Callable[..., Run]) -> None:
    run = judged(GOOD, BAD | {"name": "off_topic", "fields": {"query": "Q", "response": "x"}}, batch_size=2)
    assert run.info["judge_health"] == "unhealthy"
    found = "Relevance off_topic (5, expected 1..2) 2 times"
    assert describe_health(run) == f"judge health: unhealthy: 2 of 4 canaries red: {found}"
    assert (run.exit_code, run.scores["passed"].all()) == (0, True)


def test_the_summary_says_how_the_judge_is(
    judged: Callable[..., Run], capsys: pytest.CaptureFixture[str]
) -> None:
    run = judged(GOOD, BAD | {"fields": {"query": "Q", "response": "x"}})
    summary = read_run_summary(open_store(run.store, create=False), run.run_id)
    told = "judge health: unhealthy: 1 of 2 canaries red: Relevance bad (5, expected 1..2)"
    for form in ("table", "md"):
        write_summary(summary, Output(format=form))
        assert f"\n{told}\n" in capsys.readouterr().out
    write_summary(summary, Output(format="json"))
    document = json.loads(capsys.readouterr().out)
    assert document["run"]["judge_health"] == "unhealthy"
    assert (
        document["canaries"].items() >= {"state": "unhealthy", "green": 1, "red": 1, "undecided": 0}.items()
    )
    assert document["canaries"]["found"] == {"Relevance bad (5, expected 1..2)": 1}


def test_a_canary_may_expect_a_label(judged: Callable[..., Run], loopback: ModelServer) -> None:
    pair = {"fields": {"query": "Q", "response": "1", "response_b": "2"}, "evaluator": "Pairwise"}
    loopback.script([], after={"reply": '{"reason": "r", "label": "first"}'})
    ask = [{**pair, "name": name, "label": name} for name in ("win", "tie")]
    run = judged(
        *ask, {**pair, "name": "half", "low": 0.5}, evaluators="Pairwise", mapping={"response_b": "x y"}
    )
    found = "Pairwise win (tie, expected win)"
    assert describe_health(run) == f"judge health: unhealthy: 1 of 3 canaries red: {found}"


def test_what_a_canary_costs_is_part_of_the_run(judged: Callable[..., Run], loopback: ModelServer) -> None:
    spent = {"usage": {"prompt_tokens": 100, "completion_tokens": 10}}
    loopback.script([], after=VERDICTS[5] | spent)
    run = judged(judge="gpt-4o-mini", max_cost=1.0)
    assert (run.info["input_tokens"], run.info["output_tokens"]) == (500, 50)
    assert run.info["cost_usd"] == pytest.approx(5 * (100 * 0.15 + 10 * 0.6) / 1e6)
    assert read_canaries(run)["cost_usd"].sum() == pytest.approx(2 / 5 * float(str(run.info["cost_usd"])))


@pytest.mark.parametrize(
    ("step", "health", "told"),
    [
        (
            {"status": 400, "body": {"error": {"message": "no"}}},
            "ok",
            "ok: 1 canary green; 1 undecided (bad_request)",
        ),
        (
            {"reply": "neither"},
            "unhealthy",
            "unhealthy: 1 of 2 canaries red: Relevance bad (unparseable, expected 1..2)",
        ),
        (
            {"reply": "no", "finish": "content_filter"},
            "unhealthy",
            "unhealthy: 1 of 2 canaries red: Relevance bad (content_filter, expected 1..2)",
        ),
    ],
)
def test_a_failure_that_passes_is_counted_apart_and_any_other_is_red(
    judged: Callable[..., Run], loopback: ModelServer, step: dict[str, Any], health: str, told: str
) -> None:
    loopback.script([], after=VERDICTS[5], match=[("CANARY-B", step)])
    run = judged()
    assert (run.info["judge_health"], describe_health(run)) == (health, f"judge health: {told}")


def test_without_a_decided_canary_nobody_knows(judged: Callable[..., Run], loopback: ModelServer) -> None:
    refused = {"status": 400, "body": {"error": {"message": "no"}}}
    loopback.script([], after=VERDICTS[5], match=[("CANARY", refused)])
    run = judged()
    assert run.info["judge_health"] is None
    assert describe_health(run) == "judge health: not known: 2 undecided (bad_request 2 times)"
    without = judged(canaries=None)
    assert (without.info["judge_health"], describe_health(without)) == (None, "")
    assert read_canaries(without).height == 0


def test_a_resumed_run_asks_no_canary_again(judged: Callable[..., Run], loopback: ModelServer) -> None:
    match = [("France", {"status": 400, "body": {"error": {"message": "no"}}})]
    loopback.script([], after=VERDICTS[5], match=[*match, ("CANARY-B", VERDICTS[1])])
    run = judged(max_errors=1, batch_size=2)
    begun = len(loopback.requests)
    loopback.script([], after=VERDICTS[5])
    again = assay.run(store=run.store, resume=run.run_id)
    asked = [json.dumps(each["body"]) for each in loopback.requests[begun:]]
    assert (len(asked), "France" in asked[0]) == (1, True)
    assert (again.info["judge_health"], read_canaries(again).height) == ("ok", 4)


def test_an_answer_of_an_earlier_run_says_nothing_of_the_judge_of_today(
    judged: Callable[..., Run], loopback: ModelServer
) -> None:
    judged()
    begun = len(loopback.requests)
    loopback.script([], after=VERDICTS[5])
    run = judged(reuse="all")
    asked = [json.dumps(each["body"]) for each in loopback.requests[begun:]]
    assert sorted("CANARY" in each for each in asked) == [True, True]
    assert run.info["judge_health"] == "unhealthy"


def test_repeats_and_juries_are_asked_as_about_any_row(
    judged: Callable[..., Run], loopback: ModelServer
) -> None:
    run = judged(judge_repeats=3)
    assert (read_canaries(run).height, len(loopback.requests)) == (2, 15)
    assert run.info["judge_health"] == "ok"


def test_canaries_of_judges_that_are_not_planned_are_left_out(
    judged: Callable[..., Run], loopback: ModelServer
) -> None:
    run = judged(GOOD | {"evaluator": "Coherence"})
    assert (read_canaries(run).height, len(loopback.requests), run.info["judge_health"]) == (0, 3, None)


def test_a_plan_counts_canaries_as_a_stage(
    write_rows: Callable[..., Path], write_canaries: Callable[..., str], tmp_path: Path, loopback: ModelServer
) -> None:
    settings: Any = {"judge": "j", "judge_base_url": loopback.base_url, "evaluators": "Relevance,ExactMatch"}
    settings |= {"store": tmp_path / "store", "batch_size": 2, "canaries": write_canaries(GOOD, BAD)}
    stages = estimate_run(make_config([str(write_rows())], settings)).stages.select("stage", "rows", "calls")
    counts = {name: (rows, calls) for name, rows, calls in stages.iter_rows()}
    assert counts["judge canaries"] == (4, 4)
    assert counts["evaluators without a model"] == (3, 0)
    assert loopback.requests == []


def test_the_built_in_canaries_fit_their_judges() -> None:
    probes = resolve_canaries(read_shipped(), CATALOG)
    watched = Counter(probe.judge.name for probe in probes)
    judges = {each.name for each in CATALOG.evaluators if isinstance(each, JudgeEvaluator)}
    assert watched == dict.fromkeys(judges - {*LOOSE}, 2)
    assert {each.name for each in EVALUATORS} <= watched.keys()
    for probe in probes:
        bounds = (probe.canary.low, probe.canary.high)
        assert all(bound is not None and bound in probe.judge.scale for bound in bounds), probe.canary.name


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "holds no canary; write one per line"),
        ("{", "c.jsonl:1: no JSON: "),
        ("[]", "c.jsonl:1: no JSON object; a canary is such as"),
        ({"name": None}, "c.jsonl:1: name: give a valid string"),
        ({"fields": {}}, "c.jsonl:1: fields: give "),
        ({"lo": 1}, "c.jsonl:1: unknown key of a canary 'lo'; did you mean low"),
        ({"low": None}, "c.jsonl:1: give either `low` and `high` or a `label`"),
        ({"label": "x"}, "c.jsonl:1: give either `low` and `high` or a `label`"),
        ({"high": 2}, "c.jsonl:1: give a `low` that is not above `high`"),
        ({"evaluator": "Relevanze"}, "c.jsonl:1: unknown evaluator 'Relevanze'; did you mean Relevance"),
        ({"evaluator": "ExactMatch"}, "c.jsonl:1: ExactMatch asks no judge"),
        ({"options": {"bogus": 1}}, "c.jsonl:1: unknown option 'Relevance.bogus'"),
        (
            {"fields": {"query": "q", "respons": "r"}},
            "unknown field of Relevance 'respons'; did you mean response",
        ),
        ({"fields": {"query": "q"}}, "c.jsonl:1: Relevance needs response; add it to `fields`"),
    ],
)
def test_a_line_that_is_no_canary_is_refused_with_its_place(line: str | dict[str, Any], told: str) -> None:
    text = line if isinstance(line, str) else json.dumps(GOOD | line)
    with pytest.raises(ConfigError) as caught:
        resolve_canaries(parse_canaries(text, "c.jsonl"), CATALOG)
    assert told in str(caught.value)


def test_a_missing_name_and_one_that_comes_twice_are_refused() -> None:
    lines = [json.dumps(each) for each in (GOOD, BAD, GOOD)]
    with pytest.raises(ConfigError, match=r"c\.jsonl:4: Relevance has a canary 'good' already"):
        resolve_canaries(parse_canaries("\r\n".join([lines[0], "", *lines[1:]]), "c.jsonl"), CATALOG)
    with pytest.raises(ConfigError, match=r"c\.jsonl:1: no name; a canary is such as"):
        parse_canaries(json.dumps({key: value for key, value in GOOD.items() if key != "name"}), "c.jsonl")


def test_json_fields_may_be_written_as_json_and_labels_be_expected() -> None:
    calls: list[dict[str, Any]] = [{"type": "tool_call", "name": "w", "arguments": {}}]
    canary: dict[str, Any] = {
        "evaluator": "ToolSelection",
        "name": "n",
        "fields": {"query": "q", "tool_calls": calls},
        "label": "Yes",
    }
    (probe,) = resolve_canaries(parse_canaries(json.dumps(canary), "c.jsonl"), CATALOG)
    assert json.loads(probe.fields["tool_calls"] or "") == calls
    assert (probe.fields["response"], probe.canary.expected) == (None, "Yes")
    assert [probe.canary.holds(1.0, label) for label in ("yes", "no", None)] == [True, False, False]


def test_a_bad_file_ends_a_run_before_anything_is_read_or_asked(
    judged: Callable[..., Run], loopback: ModelServer, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"--canaries .*none.jsonl: cannot be read: .*write built-in"):
        judged(canaries=tmp_path / "none.jsonl")
    with pytest.raises(ConfigError, match="unknown evaluator 'Nobody'"):
        judged(GOOD | {"evaluator": "Nobody"})
    assert loopback.requests == []
    assert not (tmp_path / "store").exists()
