from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.contracts.chat import ChatReply, Usage
from assay.errors import CallError, EndpointError
from evaluators.catalog import resolve_evaluation
from evaluators.pairwise import IDENTICAL, RUBRIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.contracts.chat import ChatRequest

    Score = Callable[..., pl.DataFrame]
    Script = Callable[..., Any]

QUESTIONS = ["q1", "q2", "q3", "q4"]
PAIRS = {
    "query": QUESTIONS,
    "response": [f"x{n}" for n in QUESTIONS],
    "response_b": [f"y{n}" for n in QUESTIONS],
}


class ContentChat:
    """Prefers the answer whose text holds a mark, wherever it stands; without one in either it is a tie."""

    def __init__(self, mark: str, fault: Exception | None = None, at: int = 1) -> None:
        self.mark, self.fault, self.at = mark, fault, at
        self.shown: list[dict[str, str]] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.shown.append(read_blocks(request))
        if self.fault is not None and len(self.shown) == self.at:
            raise self.fault
        first, second = (self.mark in self.shown[-1][name] for name in ("first", "second"))
        return say("tie" if first == second else "first" if first else "second")


def read_blocks(request: ChatRequest) -> dict[str, str]:
    text = str(request.messages[1]["content"])
    found = re.findall(r"<(\w+)-([0-9a-f]{16})>\n(.*?)\n</\1-\2>", text, re.DOTALL)
    return {name: held for name, _, held in found}


def say(choice: str, reason: str = "so it is") -> ChatReply:
    return ChatReply(json.dumps({"reason": reason, "label": choice}), "judge-1", usage=Usage(10, 2))


def list_figures(result: pl.DataFrame) -> dict[str, float | None]:
    aggregate = resolve_evaluation("Pairwise", {}).evaluator.aggregate
    assert aggregate is not None
    return {each.metric: each.value for each in aggregate(None, result)}


def test_a_judge_that_always_takes_the_first_gives_ties_and_a_bias_of_one(
    score: Score, scripted_chat: Script
) -> None:  # field case F052
    chat = scripted_chat(say("first"))
    result = score("Pairwise", PAIRS, chat)
    assert result["score"].to_list() == [0.5] * 4
    assert result["label"].to_list() == ["tie"] * 4
    assert list_figures(result) == {
        "win_rate": 0.0,
        "loss_rate": 0.0,
        "tie_rate": 1.0,
        "inconsistent": 1.0,
        "position_bias": 1.0,
    }
    assert len(chat.requests) == 8


def test_a_judge_that_reads_gives_the_better_answer_its_wins_and_no_bias(score: Score) -> None:  # F052
    chat: Any = ContentChat("y")
    result = score("pairwise", PAIRS, chat)
    assert result["score"].to_list() == [0.0] * 4
    assert result["passed"].to_list() == [False] * 4
    assert list_figures(result) == {
        "win_rate": 0.0,
        "loss_rate": 1.0,
        "tie_rate": 0.0,
        "inconsistent": 0.0,
        "position_bias": 0.0,
    }
    assert len(chat.shown) == 8


def test_both_orders_are_shown_without_a_word_of_whose_answer_it_is(score: Score) -> None:
    chat: Any = ContentChat("x")
    rows = {
        "query": ["q"],
        "response": ["x"],
        "response_b": ["y"],
        "context": ["c"],
        "expected_response": ["e"],
    }
    row = score("Pairwise", rows, chat).row(0, named=True)
    around = {"query": "q", "context": "c", "expected_response": "e"}
    assert chat.shown == [around | {"first": "x", "second": "y"}, around | {"first": "y", "second": "x"}]
    assert (row["score"], row["label"], row["passed"], row["threshold"]) == (1.0, "win", True, 0.5)
    assert row["reason"] == "response_first: first: so it is; response_second: second: so it is"
    assert json.loads(row["details_json"]) == {
        "choices": {"response_first": "first", "response_second": "second"},
        "consistent": True,
    }
    assert (row["prompt_sha"], row["input_tokens"], row["output_tokens"]) == (RUBRIC.sha, 20, 4)


@pytest.mark.parametrize(
    ("choices", "found"),
    [
        (("first", "second"), (1.0, True)),
        (("second", "first"), (0.0, True)),
        (("tie", "tie"), (0.5, True)),
        (("first", "first"), (0.5, False)),
        (("second", "second"), (0.5, False)),
        (("first", "tie"), (0.5, False)),
        (("tie", "first"), (0.5, False)),
    ],
)
def test_only_two_orders_that_say_the_same_decide(
    score: Score, scripted_chat: Script, choices: tuple[str, str], found: tuple[float, bool]
) -> None:
    chat = scripted_chat(*map(say, choices))
    row = score("Pairwise", {"query": ["q"], "response": ["x"], "response_b": ["y"]}, chat).row(0, named=True)
    assert (row["score"], json.loads(row["details_json"])["consistent"]) == found


@pytest.mark.parametrize("at", [1, 2])
def test_one_order_that_fails_makes_the_row_an_error_whose_other_call_counts(score: Score, at: int) -> None:
    chat: Any = ContentChat("x", CallError("timeout", "too late"), at)
    row = score("Pairwise", {"query": ["q"], "response": ["x"], "response_b": ["y"]}, chat).row(0, named=True)
    assert (row["status"], row["error_code"], row["score"]) == ("error", "timeout", None)
    assert (len(chat.shown), row["input_tokens"]) == (2, 10)


def test_a_fault_of_the_set_up_ends_the_run_whatever_else_failed(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(CallError("timeout", "too late"), EndpointError("wrong key"))
    with pytest.raises(EndpointError, match="wrong key"):
        score("Pairwise", {"query": ["q"], "response": ["x"], "response_b": ["y"]}, chat)


def test_answers_that_are_the_same_are_a_tie_without_a_call(score: Score) -> None:
    chat: Any = ContentChat("x")
    row = score("Pairwise", {"query": ["q"], "response": ["x\n"], "response_b": ["x"]}, chat).row(
        0, named=True
    )
    assert (row["score"], row["label"], row["reason"], row["judge_model"]) == (0.5, "tie", IDENTICAL, None)
    assert json.loads(row["details_json"]) == {"identical": True, "consistent": True}
    assert chat.shown == []


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ((" ", "y"), ("error", "empty_response", None)),
        ((" ", " "), ("error", "empty_response", None)),
        (("x", " "), ("skipped", "not_applicable", "the other answer is blank")),
        (("x", None), ("skipped", None, "no response_b")),
    ],
)
def test_a_blank_answer_is_compared_with_nothing(
    score: Score, answers: Sequence[str | None], found: tuple[str, str | None, str | None]
) -> None:
    chat: Any = ContentChat("x")
    rows = {"query": ["q"], "response": [answers[0]], "response_b": [answers[1]]}
    frame = score(
        "Pairwise", {name: pl.Series(values, dtype=pl.String) for name, values in rows.items()}, chat
    )
    row = frame.row(0, named=True)
    assert (row["status"], row["error_code"], row["reason"]) == found
    assert chat.shown == []


def test_figures_are_of_scored_rows_alone_and_null_without_any(score: Score) -> None:
    chat: Any = ContentChat("x")
    rows = {"query": ["q"] * 4, "response": ["x", "z", "x", " "], "response_b": ["y", "x", "x", "y"]}
    result = score("Pairwise", rows, chat)
    figures = list_figures(result)
    assert [figures[f"{name}_rate"] for name in ("win", "loss", "tie")] == pytest.approx([1 / 3] * 3)
    assert figures["inconsistent"] == 0.0
    assert set(list_figures(result.filter(status="error")).values()) == {None}
