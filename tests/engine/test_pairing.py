from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from assay.engine.estimate import estimate_run
from assay.engine.prepare import prepare
from assay.errors import ConfigError
from assay.settings import make_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from assay.testing import ModelServer

pytestmark = pytest.mark.usefixtures("api_key")
ROW = {"query": "q?", "ground_truth": "e"}


def prefer(mark: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a judge that prefers the answer which holds a mark."""

    def judge(body: dict[str, Any]) -> dict[str, Any]:
        shown = body["messages"][1]["content"]
        first = re.search(r"<first-\w+>\n(.*?)\n</first", shown, re.DOTALL)
        assert first is not None
        return {"reply": json.dumps({"reason": "r", "label": "first" if mark in first[1] else "second"})}

    return judge


@pytest.fixture
def answer(run_rows: Callable[..., Run]) -> Callable[..., Run]:
    """Run rows with stored answers by id, without a judge."""

    def run(*rows: dict[str, Any], **settings: Any) -> Run:
        return run_rows(*(ROW | row for row in rows), evaluators="ExactMatch", **settings)

    return run


@pytest.fixture
def compare(run_rows: Callable[..., Run], loopback: ModelServer) -> Callable[..., Run]:
    loopback.script([], after=prefer("new"))

    def run(*rows: dict[str, Any], **settings: Any) -> Run:
        asked = {"judge": "j", "judge_base_url": loopback.base_url, "against": "latest"} | settings
        return run_rows(*(ROW | row for row in rows), **asked)

    return run


def list_pairs(run: Run) -> dict[str, tuple[Any, ...]]:
    rows = run.scores.filter(evaluator="Pairwise").select("item_id", "status", "score", "reason")
    return {row[0]: row[1:] for row in rows.iter_rows()}


def test_answers_are_compared_with_those_of_another_run(
    answer: Callable[..., Run], compare: Callable[..., Run], loopback: ModelServer
) -> None:
    old = answer({"id": "a", "response": "old a"}, {"id": "b", "response": "old b"})
    run = compare({"id": "a", "response": "new a"}, {"id": "b", "response": "newer b"})
    assert [pair[:2] for pair in list_pairs(run).values()] == [("ok", 1.0), ("ok", 1.0)]
    assert run.scores["evaluator"].unique().to_list() == ["Pairwise"]
    assert json.loads(str(run.info["config_json"]))["against"] == old.run_id
    figures = run.summary.filter(slice="all").select("metric", "mean").rows()
    assert {"win_rate": 1.0, "position_bias": 0.0}.items() <= dict(figures).items()
    asked = json.dumps([request["body"] for request in loopback.requests])
    assert (len(loopback.requests), old.run_id in asked) == (4, False)


def test_a_row_without_a_partner_is_skipped_with_the_reason(
    answer: Callable[..., Run], compare: Callable[..., Run], loopback: ModelServer
) -> None:
    old = answer(
        {"id": "a", "response": "old"}, {"id": "b", "response": "old", "query": "other?"}, {"id": "c"}
    )
    rows = [{"id": name, "response": "new", "response_b": "stored"} for name in "abcd"]
    pairs = list_pairs(compare(*rows))
    assert pairs.pop("a")[:2] == ("ok", 1.0)
    whose = f"no partner: run {old.run_id}"
    assert pairs == {
        "b": ("skipped", None, f"{whose} asked it otherwise"),
        "c": ("skipped", None, f"{whose} has no answer to it"),
        "d": ("skipped", None, f"{whose} does not have it"),
    }
    assert len(loopback.requests) == 2


def test_what_cannot_be_compared_is_counted_in_a_warning_before_any_call(
    answer: Callable[..., Run], write_rows: Callable[..., Path], tmp_path: Path, loopback: ModelServer
) -> None:
    old = answer({"id": "a", "response": "x"}, {"id": "b", "response": "x", "query": "other?"})
    path = write_rows(*({"id": name, "response": "y", **ROW} for name in "abcd"))
    store = str(tmp_path / "store")
    settings: Any = {"judge": "j", "judge_base_url": loopback.base_url, "store": store, "batch_size": 1}
    settings["against"] = "latest"
    prepared = prepare(make_config([str(path)], settings))
    (told,) = prepared.request.warnings
    assert told.startswith(f"--against {old.run_id}: turns that are not compared: asked otherwise there (")
    assert told.endswith("): 1; not there: 2")
    assert loopback.requests == []


def test_each_trial_meets_its_own_and_the_first_where_there_is_none(
    run_rows: Callable[..., Run], compare: Callable[..., Run], loopback: ModelServer
) -> None:
    loopback.script([{"reply": "old 0"}, {"reply": "old 1"}])
    asked: dict[str, Any] = {"model": "m", "base_url": loopback.base_url, "concurrency": 1}
    run_rows({"id": "a", **ROW}, evaluators="ExactMatch", trials=2, **asked)
    loopback.script([{"reply": f"new {n}"} for n in range(3)], after=prefer("new"))
    begun = len(loopback.requests)
    run = compare({"id": "a"}, trials=3, **asked)
    assert run.scores.sort("trial")["score"].to_list() == [1.0] * 3
    shown = [each["body"]["messages"][1]["content"] for each in loopback.requests[begun + 3 :]]
    pairs = {tuple(sorted(re.findall(r"(?:old|new) \d", text))) for text in shown}
    assert pairs == {("new 0", "old 0"), ("new 1", "old 1"), ("new 2", "old 0")}


def test_parts_cut_otherwise_are_found_all_the_same(
    answer: Callable[..., Run], compare: Callable[..., Run]
) -> None:
    answer(*({"id": f"{n}", "response": f"old {n}"} for n in range(5)), batch_size=2)
    run = compare(*({"id": f"{n}", "response": f"new {n}"} for n in range(4, -1, -1)), batch_size=3)
    assert {pair[:2] for pair in list_pairs(run).values()} == {("ok", 1.0)}


def test_a_row_without_an_answer_of_its_own_is_an_error_whatever_the_other_run_has(
    answer: Callable[..., Run], compare: Callable[..., Run]
) -> None:
    answer({"id": "a", "response": "old"}, {"id": "b", "response": "old"})
    run = compare({"id": "a", "response": "new"}, {"id": "b"}, {"id": "c"})
    codes = dict(run.scores.select("item_id", "error_code").iter_rows())
    assert codes == {"a": None, "b": "no_response", "c": "no_response"}


def test_a_mapping_of_ones_own_goes_before_the_other_run(
    answer: Callable[..., Run], compare: Callable[..., Run], loopback: ModelServer
) -> None:
    answer({"id": "a", "response": "old"})
    rows = [{"id": "b", "response": "new", "other": "stored"}, {"id": "c", "response": "new"}]
    run = compare(*rows, mapping={"Pairwise.response_b": "{{item.other}}"})
    codes = dict(run.scores.select("item_id", "error_code").iter_rows())
    assert (codes, len(loopback.requests)) == ({"b": None, "c": "missing_field"}, 2)


@pytest.mark.parametrize(
    ("evaluators", "expected"),
    [
        ("ExactMatch", ["ExactMatch", "Pairwise"]),
        ("+ExactMatch", ["ExactMatch", "Pairwise"]),
        ("pairwise", ["Pairwise"]),
        ("Pairwise:mine", ["Pairwise:mine"]),
    ],
)
def test_pairwise_is_added_to_whatever_runs(
    answer: Callable[..., Run], compare: Callable[..., Run], evaluators: str, expected: list[str]
) -> None:
    answer({"id": "a", "response": "old"})
    run = compare({"id": "a", "response": "new"}, evaluators=evaluators)
    assert run.scores["evaluator"].sort().to_list() == expected


def test_without_another_run_the_item_holds_the_other_answer(compare: Callable[..., Run]) -> None:
    run = compare({"id": "a", "response": "new", "response_b": "o"}, against=None, evaluators="Pairwise")
    assert list_pairs(run)["a"][:2] == ("ok", 1.0)
    with pytest.raises(ConfigError, match=r"needs response_b, .* --against RUN"):
        compare({"id": "a", "response": "new"}, against=None, evaluators="Pairwise")


def test_a_run_that_is_not_there_and_a_missing_judge_are_refused(
    answer: Callable[..., Run], compare: Callable[..., Run]
) -> None:
    answer({"id": "a", "response": "old"})
    with pytest.raises(ConfigError, match="run 'never': no such run"):
        compare({"id": "a", "response": "new"}, against="never")
    with pytest.raises(ConfigError, match="Pairwise asks a judge"):
        answer({"id": "a", "response": "new"}, against="latest")


def test_a_plan_counts_both_orders_of_every_pair(
    answer: Callable[..., Run], write_rows: Callable[..., Path], tmp_path: Path, loopback: ModelServer
) -> None:
    answer({"id": "a", "response": "old"}, {"id": "b", "response": "same"})
    path = write_rows({"id": "a", "response": "new", **ROW}, {"id": "b", "response": "same", **ROW})
    settings: Any = {"judge": "j", "judge_base_url": loopback.base_url, "store": tmp_path / "store"}
    settings["against"] = "latest"
    stage = (
        estimate_run(make_config([str(path)], settings))
        .stages.filter(stage="judge Pairwise")
        .row(0, named=True)
    )
    assert (stage["rows"], stage["calls"], len(loopback.requests)) == (2, 2, 0)
