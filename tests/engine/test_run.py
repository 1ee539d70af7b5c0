from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import assay
from assay.errors import ConfigError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from tests.conftest import Loopback

KEYS = ["item_id", "turn", "trial", "evaluator"]
VOLATILE = ["run_id", "latency_ms", "started_at", "finished_at"]


def verdicts(run: Run) -> list[tuple[Any, ...]]:
    return run.scores.sort(KEYS).select("item_id", "evaluator", "score", "passed", "status").rows()


def left_in(store: Path) -> list[Path]:
    return sorted(path for path in store.rglob("*") if path.is_file()) if store.exists() else []


def test_stored_answers_are_scored_and_kept(run_rows: Callable[..., Run]) -> None:
    run = run_rows(evaluators="ExactMatch", name="n", labels=["k=v"])
    assert verdicts(run) == [
        ("a", "ExactMatch", 1.0, True, "ok"),
        ("b", "ExactMatch", 0.0, False, "ok"),
        ("c", "ExactMatch", 1.0, True, "ok"),
    ]
    assert run.samples["output_text"].to_list() == ["4", "Lyon", "Blau"]
    info = run.info
    assert (info["passed"], info["failed"], info["errored"], info["skipped"]) == (2, 1, 0, 0)
    assert (info["name"], info["labels"], info["engine"], info["status"]) == (
        "n",
        ["k=v"],
        "local",
        "complete",
    )
    assert run.summary.filter(pl.col("slice") == "all")["pass_rate"].item() == pytest.approx(2 / 3)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_size_of_a_batch_never_changes_a_table(run_rows: Callable[..., Run], size: int) -> None:
    whole = run_rows(evaluators="ExactMatch,PartialMatch,JsonEquals")
    cut = run_rows(evaluators="ExactMatch,PartialMatch,JsonEquals", batch_size=size)
    columns = ["item_id", "turn", "evaluator"]
    assert cut.scores.drop("run_id").sort(columns).equals(whole.scores.drop("run_id").sort(columns))
    assert cut.samples.drop(VOLATILE).equals(whole.samples.drop(VOLATILE))
    assert cut.summary.drop("run_id").equals(whole.summary.drop("run_id"))


def test_a_missing_answer_is_an_error_and_never_a_score(run_rows: Callable[..., Run]) -> None:
    run = run_rows(
        {"id": "a", "ground_truth": "x", "response": "x"},
        {"id": "b", "ground_truth": "x"},
        evaluators="ExactMatch",
    )
    assert verdicts(run)[1] == ("b", "ExactMatch", None, None, "error")
    assert run.scores.sort("item_id")["error_code"].to_list() == [None, "no_response"]
    assert run.exit_code == 3
    assert "1 of 2 evaluations ended in an error" in run.message


def test_trials_of_an_answer_file_are_samples_of_their_own(
    run_rows: Callable[..., Run], write_rows: Callable[..., Path], tmp_path: Path
) -> None:
    answers = [
        {"id": "a", "trial": 1, "response": "4"},
        {"id": "a", "trial": 0, "response": "5"},
        {"id": "b", "trial": 2, "response": "Paris"},
    ]
    run = run_rows(evaluators="ExactMatch", responses=write_rows(*answers, name="answers.jsonl"))
    scores = run.scores.sort("item_id", "trial")
    assert scores.select("item_id", "trial", "passed", "error_code").rows() == [
        ("a", 0, False, None),
        ("a", 1, True, None),
        ("b", 2, True, None),
        ("c", 0, None, "no_response"),
    ]
    folder = tmp_path / "store/runs" / f"run_id={run.run_id}"
    assert json.loads((folder / "request.json").read_text())["evaluations"] == 4


@pytest.mark.parametrize(("allowed", "code"), [("0", 3), ("1", 0), ("49%", 3), ("50%", 0)])
def test_errors_are_allowed_as_a_count_or_a_share(
    run_rows: Callable[..., Run], allowed: str, code: int
) -> None:
    rows = [{"id": "a", "ground_truth": "x", "response": "x"}, {"id": "b", "ground_truth": "x"}]
    assert run_rows(*rows, evaluators="ExactMatch", max_errors=allowed).exit_code == code


def test_a_null_reference_skips_the_row_and_names_the_field(run_rows: Callable[..., Run]) -> None:
    run = run_rows(
        {"id": "a", "response": "x", "ground_truth": "x"},
        {"id": "b", "response": "x"},
        evaluators="ExactMatch",
    )
    row = run.scores.row(by_predicate=pl.col("item_id") == "b", named=True)
    assert (row["status"], row["score"], row["reason"]) == ("skipped", None, "no expected_response")
    assert run.exit_code == 0


def test_two_evaluations_of_one_evaluator_are_told_apart_by_options(run_rows: Callable[..., Run]) -> None:
    first = run_rows(evaluators="ExactMatch")
    second = run_rows(evaluators="ExactMatch", options={"ExactMatch": {"case_sensitive": True}})
    assert first.scores["options_sha"][0] != second.scores["options_sha"][0]
    assert verdicts(second)[2] == ("c", "ExactMatch", 0.0, False, "ok")


def test_a_mapping_reads_other_columns(run_rows: Callable[..., Run]) -> None:
    rows = [
        {"id": "a", "answer": "x", "gold": {"text": "x"}},
        {"id": "b", "answer": "x", "gold": {"text": "y"}},
    ]
    mapping = {"response": "answer", "expected_response": "{{item.gold.text}}"}
    run = run_rows(*rows, evaluators="ExactMatch", mapping=mapping)
    assert run.scores.sort("item_id")["passed"].to_list() == [True, False]


def test_a_field_missing_in_some_rows_makes_those_rows_errors(run_rows: Callable[..., Run]) -> None:
    rows = [{"id": "a", "response": "x", "gold": "x"}, {"id": "b", "response": "x"}]
    run = run_rows(*rows, evaluators="ExactMatch", mapping={"ExactMatch.expected_response": "{{item.gold}}"})
    row = run.scores.row(by_predicate=pl.col("item_id") == "b", named=True)
    assert (row["status"], row["error_code"], row["error_message"]) == (
        "error",
        "missing_field",
        "missing item.gold",
    )
    assert verdicts(run)[0][3] is True


def test_an_empty_selection_is_refused(run_rows: Callable[..., Run]) -> None:
    with pytest.raises(ConfigError, match=r"id='zz\*' leaves none of 3 items"):
        run_rows(evaluators="ExactMatch", id="zz*")


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ({"where": "category = 'geo'"}, ["b", "c"]),
        ({"id": "[ab]"}, ["a", "b"]),
        ({"limit": 1}, ["a"]),
        ({"where": "category = 'geo'", "limit": 1}, ["b"]),
    ],
)
def test_a_selection_takes_part_of_the_items(
    run_rows: Callable[..., Run], selection: dict[str, Any], ids: list[str]
) -> None:
    run = run_rows(evaluators="ExactMatch", **selection)
    assert run.scores["item_id"].to_list() == ids
    stored = json.loads(str(run.info["config_json"]))["selection"]
    assert {key: value for key, value in stored.items() if value is not None} == selection


def test_what_failed_in_a_run_can_be_run_again(run_rows: Callable[..., Run]) -> None:
    first = run_rows(evaluators="ExactMatch", name="first")
    again = run_rows(evaluators="ExactMatch", failed_of="first")
    assert again.scores["item_id"].to_list() == ["b"]
    assert json.loads(str(again.info["config_json"]))["selection"]["failed_of"] == first.run_id


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"evaluators": "ExactMach"}, "did you mean ExactMatch"),
        (
            {"evaluators": "ExactMatch", "options": {"ExactMatch": {"case": 1}}},
            "did you mean ExactMatch.case_sensitive",
        ),
        ({"evaluators": "PartialMatch", "options": {"PartialMatch": {"threshold": 3}}}, "threshold"),
        (
            {"evaluators": "ExactMatch", "mapping": {"query": "{{item.question}}"}},
            "item has no field question",
        ),
        ({"evaluators": "ExactMatch", "mapping": {"respons": "x"}}, "did you mean response"),
        ({"evaluators": "Relevance"}, "--judge"),
        ({}, "no evaluator named"),
        ({"evaluators": "ExactMatch", "where": "categry = 'geo'"}, "category"),
        ({"evaluators": "ExactMatch", "failed_of": "latest"}, "run"),
        ({"evaluators": "ExactMatch", "labels": ["oops"]}, "k=v"),
        ({"evaluator": "ExactMatch"}, "unknown setting 'evaluator'; did you mean evaluators"),
        ({"evaluators": "ExactMatch", "engine": "prefct"}, "did you mean prefect"),
        ({"evaluators": "ExactMatch", "max_errors": "many"}, "max_errors"),
        ({"evaluators": "ExactMatch", "target": "openai"}, "--model"),
        ({"evaluators": "ExactMatch", "responses": "nowhere.csv"}, "nowhere.csv"),
    ],
)
def test_a_wrong_setting_is_one_sentence_and_leaves_nothing(
    run_rows: Callable[..., Run], tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SetupError, match=message):
        run_rows(**settings)
    assert left_in(tmp_path / "store") == []


def test_a_needed_column_that_no_item_has_is_refused_with_the_columns_there_are(
    run_rows: Callable[..., Run],
) -> None:
    with pytest.raises(
        ConfigError, match=r"ExactMatch needs expected_response.*the data has: id, response, gold"
    ):
        run_rows({"id": "a", "response": "x", "gold": "x"}, evaluators="ExactMatch")


def test_items_without_answers_and_without_a_target_are_refused(run_rows: Callable[..., Run]) -> None:
    with pytest.raises(ConfigError, match="no item has a stored response"):
        run_rows({"id": "a", "query": "q", "ground_truth": "x"}, evaluators="ExactMatch")


@pytest.mark.usefixtures("api_key")
def test_a_mapping_is_refused_before_any_call(run_rows: Callable[..., Run], loopback: Loopback) -> None:
    mapping = {"query": "{{item.question}}", "response": "{{sample.output_text}}"}
    with pytest.raises(ConfigError, match=r"mapping query: item has no field question \(fields: id, query\)"):
        run_rows(
            {"id": "1", "query": "q"},
            evaluators="ExactMatch",
            mapping=mapping,
            model="m",
            base_url=loopback.base_url,
        )
    assert loopback.requests == []


def test_sql_answers_over_two_runs(run_rows: Callable[..., Run], tmp_path: Path) -> None:
    run_rows(evaluators="ExactMatch")
    run_rows(evaluators="ExactMatch,PartialMatch")
    sql = "select evaluator, count(*) filter (where passed) as n from scores group by 1 order by 1"
    assert assay.query(sql, store=tmp_path / "store").rows() == [("ExactMatch", 4), ("PartialMatch", 2)]


ODD_ANSWERS = ['{"a":"\\ud83d"}', "[" * 100_000, '{"a":' * 900 + "1" + "}" * 900, '{"a": null}']


@pytest.mark.parametrize("answer", ODD_ANSWERS)
def test_no_answer_can_end_a_run(
    run_rows: Callable[..., Run], write_rows: Callable[..., Path], answer: str
) -> None:
    answers = write_rows(
        {"id": "a", "response": answer}, {"id": "b", "response": '{"a":1}'}, name="answers.jsonl"
    )
    rows = [{"id": name, "ground_truth": "1"} for name in "ab"]
    mapping = {"JsonEquals.response": "{{sample.output_object.a}}"}
    run = run_rows(
        *rows, evaluators="ExactMatch,JsonEquals", batch_size=1, mapping=mapping, responses=answers
    )
    assert run.scores.height == 4
    good = run.scores.filter(pl.col("item_id") == "b").sort("evaluator")
    assert good.select("score", "status").rows() == [(0.0, "ok"), (1.0, "ok")]


def test_an_evaluation_may_read_its_answer_from_the_item(run_rows: Callable[..., Run]) -> None:
    rows = [
        {"id": "a", "alt": "x", "ground_truth": "x"},
        {"id": "b", "response": "y", "alt": "z", "ground_truth": "y"},
    ]
    run = run_rows(*rows, evaluators="ExactMatch", mapping={"ExactMatch.response": "{{item.alt}}"})
    assert run.scores.sort("item_id").select("passed", "status").rows() == [(True, "ok"), (False, "ok")]
    assert run.exit_code == 0


def test_a_mapped_answer_is_the_one_that_is_shown(run_rows: Callable[..., Run]) -> None:
    row = {"id": "a", "response": "stored", "alt": "mapped", "ground_truth": "x"}
    run = run_rows(row, evaluators="ExactMatch", mapping={"response": "alt"})
    assert run.samples["output_text"].to_list() == ["mapped"]


def test_a_past_run_tells_its_exit_code(run_rows: Callable[..., Run], tmp_path: Path) -> None:
    run_rows(
        {"id": "a", "ground_truth": "x", "response": "x"},
        {"id": "b", "ground_truth": "x"},
        evaluators="ExactMatch",
    )
    again = assay.get_run(store=tmp_path / "store")
    assert (again.exit_code, "1 of 2" in again.message) == (3, True)


def test_a_run_inside_a_running_loop_is_a_run(run_rows: Callable[..., Run]) -> None:
    async def notebook() -> Run:
        return run_rows(evaluators="ExactMatch")

    assert asyncio.run(notebook()).scores.height == 3
