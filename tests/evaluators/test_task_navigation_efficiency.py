from __future__ import annotations

import asyncio
import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from evaluators import task_navigation_efficiency
from evaluators.catalog import Catalog
from evaluators.runner import run_evaluation

CATALOG = Catalog([task_navigation_efficiency.EVALUATOR])
MODES = ("exact_match", "in_order_match", "any_order_match")
STEPS = st.lists(st.sampled_from("abc"), max_size=5)


def judge(actions: object, expected: object, mode: str = "exact_match") -> dict[str, Any]:
    texts = {"actions": actions, "expected_actions": expected}
    rows = pl.DataFrame({name: [None if v is None else json.dumps(v)] for name, v in texts.items()})
    evaluation = CATALOG.resolve("builtin.task_navigation_efficiency", {"matching_mode": mode})
    row = asyncio.run(run_evaluation(evaluation, rows.cast(pl.String), None)).row(0, named=True)
    return row | json.loads(row["details_json"] or "{}")


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "tool_call_id": "1", "name": name, "arguments": arguments}


def act(*calls: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": [each]} for each in calls]


@pytest.mark.parametrize(
    "expected",
    [
        [["search", "show"], {"search": {"query": "x", "limit": "5", "where": {"b": 1, "a": [1, 2]}}}],
        {"search": {"limit": 5, "query": "x", "where": {"a": [1, 2], "b": 1}}, "show": {}},
    ],
)
def test_parameters_are_compared_as_text_in_either_json_form(expected: object) -> None:
    where = {"a": [1, 2], "b": 1}
    good = act(call("search", query="x", limit=5, where=where), call(" show "))
    assert judge(good, expected)["score"] == 1.0
    other = act(call("search", query="x", limit=6, where=where), call("show"))
    row = judge(other, expected)
    assert (row["score"], row["precision_score"], row["recall_score"], row["f1_score"]) == (
        0.0,
        0.5,
        0.5,
        0.5,
    )
    assert (
        judge(act(call("search", query="x", limit=5, where=where), call("show", more=1)), expected)["score"]
        == 0.0
    )
    assert row["reason"] == "1 of 2 expected steps among 2 taken"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": [{"type": "tool_call", "name": "a", "arguments": '{"x": 1}'}]},
        {"role": "assistant", "content": [{"type": "function_call", "name": "a", "arguments": '{"x": 1}'}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"x":1}'}}
            ],
        },
        {"type": "function_call", "call_id": "1", "name": "a", "arguments": '{"x": 1}'},
    ],
)
def test_calls_are_read_in_every_known_form(message: dict[str, Any]) -> None:
    assert judge([message], ["a"])["score"] == 1.0
    assert judge(message, [["a"], {"a": {"x": "1"}}])["score"] == 1.0
    assert judge([message], [["a"], {"a": {"x": "2"}}])["score"] == 0.0


def test_only_calls_of_the_assistant_are_steps() -> None:
    actions = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I will search."},
        *act(call("search")),
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "tool_result", "tool_result": "x"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
    ]
    assert judge(actions, ["search"])["score"] == 1.0


def test_texts_that_hold_json_are_read() -> None:
    assert judge(json.dumps(act(call("a"))), json.dumps(["a"]))["score"] == 1.0


def test_no_step_at_all_fails() -> None:
    for mode in MODES:
        row = judge([], ["a"], mode)
        assert [row[f"{name}_score"] for name in ("precision", "recall", "f1")] == [0.0] * 3
        assert (row["score"], row["status"], row["matching_mode"]) == (0.0, "ok", mode)


@pytest.mark.parametrize(
    ("actions", "expected", "message"),
    [
        (act(call("a")), [], "expected_actions are no tool names"),
        (act(call("a")), [1], "expected_actions are no tool names"),
        (act(call("a")), "a", "expected_actions is text that holds no JSON"),
        (act(call("a")), [["a"], {"a": 1}], "not one object for each tool"),
        (
            "text",
            ["a"],
            "actions is text that holds no JSON (Expecting value: line 1",
        ),
        (7, ["a"], "actions is a number, expected a list of messages"),
        ([7], ["a"], "actions"),
        ([{"role": "assistant", "content": [{"type": "tool_call"}]}], ["a"], "without a name"),
        (
            [{"role": "assistant", "content": [{"type": "tool_call", "name": "a", "arguments": "{"}]}],
            {"a": {"x": 1}},
            "arguments of a tool call in actions is not JSON",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error_of_its_row(actions: object, expected: object, message: str) -> None:
    row = judge(actions, expected)
    assert (row["status"], row["error_code"], row["score"]) == ("error", "bad_field", None)
    assert message in row["error_message"]


def test_an_unknown_mode_is_refused_and_a_missing_field_skipped() -> None:
    with pytest.raises(ConfigError, match=r"matching_mode: got 'any'.*'in_order_match'"):
        CATALOG.resolve("task_navigation_efficiency", {"matching_mode": "any"})
    assert judge(None, ["a"])["reason"] == "no actions"
    assert judge([], None)["reason"] == "no expected_actions"


@given(STEPS, STEPS.filter(bool))
def test_each_mode_allows_what_the_stricter_one_allows(taken: list[str], wanted: list[str]) -> None:
    actions = act(*map(call, taken))
    rows = [judge(actions, wanted, mode) for mode in MODES]
    scores = [row["score"] for row in rows]
    assert scores == sorted(scores)
    assert scores[0] == float(taken == wanted)
    assert scores[2] == float(rows[0]["recall_score"] == 1.0)
    assert judge(act(*map(call, wanted)), wanted)["f1_score"] == 1.0
    swapped = judge(act(*map(call, wanted)), taken) if taken else None
    assert swapped is None or swapped["f1_score"] == pytest.approx(rows[0]["f1_score"])
