from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.contracts.chat import ChatReply, Usage
from assay.errors import CallError, EndpointError
from evaluators.catalog import resolve_evaluation
from evaluators.panel import Judging
from evaluators.runner import run_evaluation

if TYPE_CHECKING:
    from assay.contracts.chat import Chat, ChatRequest

ROWS = pl.DataFrame({"query": ["q"], "response": ["r"]})


class Voices:
    """Gives the grades of a list in order; None is a failed call, a text is said as it is."""

    def __init__(self, model: str, *grades: float | str | Exception) -> None:
        self.model, self.grades = model, list(grades)

    async def complete(self, request: ChatRequest) -> ChatReply:
        assert request.messages
        grade = self.grades.pop(0)
        if isinstance(grade, Exception):
            raise grade
        text = grade if isinstance(grade, str) else json.dumps({"reason": f"it is {grade}", "score": grade})
        return ChatReply(text, self.model, usage=Usage(10, 1), latency_ms=5.0)


def judge(*chats: Chat, evaluator: str = "Relevance", **settings: Any) -> dict[str, Any]:
    judging = Judging(tuple(chats), 4, lambda: None, **settings)
    result = asyncio.run(run_evaluation(resolve_evaluation(evaluator, {}), ROWS, judging))
    row = result.row(0, named=True)
    return row | {"details": json.loads(row["details_json"] or "{}")}


def test_the_median_of_repeats_counts_and_its_reason_stands() -> None:
    row = judge(Voices("m", 5, 2, 4), repeats=3)
    assert (row["score"], row["reason"], row["passed"]) == (4.0, "it is 4", True)
    details = row["details"]
    assert (details["repeats"], details["spread"], details["agreement"]) == (3, 3.0, 1 / 3)
    assert [each["score"] for each in details["verdicts"]] == [5.0, 2.0, 4.0]
    assert (row["input_tokens"], row["output_tokens"], row["latency_ms"]) == (30, 3, 15.0)


@pytest.mark.parametrize(("grades", "score"), [((1, 4), 2.5), ((3, 3, 3, 5), 3.0), ((2,) * 5, 2.0)])
def test_known_medians(grades: tuple[int, ...], score: float) -> None:
    assert judge(Voices("m", *grades), repeats=len(grades))["score"] == score


def test_a_failed_repeat_is_told_and_the_others_decide() -> None:
    row = judge(Voices("m", 4, CallError("timeout", "late"), 2), repeats=3)
    assert (row["status"], row["score"]) == ("ok", 3.0)
    assert row["details"]["verdicts"][1] == {"error": "timeout", "message": "late"}


def test_a_minority_gives_no_verdict() -> None:
    failed = CallError("timeout", "late")
    row = judge(Voices("m", failed, 5, failed), repeats=3)
    assert (row["status"], row["error_code"], row["score"]) == ("error", "timeout", None)
    assert row["input_tokens"] == 10


@pytest.mark.parametrize(
    ("vote", "grades", "score"),
    [
        ("majority", (5, 4, 1), 4.0),
        ("majority", (5, 5, 2, 2), 2.0),  # a tie of the good and the bad is no majority for the good
        ("mean", (5, 4, 1), 10 / 3),
    ],
)
def test_a_jury_votes(vote: str, grades: tuple[int, ...], score: float) -> None:
    chats = [Voices(f"m{place}", grade) for place, grade in enumerate(grades)]
    row = judge(*chats, vote=vote)
    assert row["score"] == pytest.approx(score)
    assert row["judge_model"] == "+".join(chat.model for chat in chats)
    jury = row["details"]["jury"]
    assert [(each["model"], each["score"]) for each in jury] == [
        (f"m{place}", float(grade)) for place, grade in enumerate(grades)
    ]
    assert row["details"]["vote"] == vote


def test_a_tied_jury_takes_the_worse_end_of_a_scale_where_lower_is_better() -> None:
    chats = (Voices("a", 0), Voices("b", 1))
    assert judge(*chats, evaluator="DeflectionRate")["score"] == 1.0


def test_disagreement_is_the_share_that_said_otherwise() -> None:
    row = judge(Voices("a", 4), Voices("b", 4), Voices("c", 1), Voices("d", 4))
    assert (row["details"]["disagreement"], row["details"]["spread"]) == (0.25, 3.0)


def test_a_jury_of_repeats_keeps_the_single_verdicts_of_each_judge() -> None:
    row = judge(Voices("a", 5, 3, 4), Voices("b", 1, 1, 2), Voices("c", 4, 4, 4), repeats=3)
    assert row["score"] == 4.0
    assert [each["score"] for each in row["details"]["jury"]] == [4.0, 1.0, 4.0]
    assert [len(each["verdicts"]) for each in row["details"]["jury"]] == [3, 3, 3]


def test_a_wrong_endpoint_of_one_juror_ends_the_evaluation() -> None:
    with pytest.raises(EndpointError, match="wrong key"):
        judge(Voices("a", 4), Voices("b", EndpointError("wrong key")), Voices("c", 4))


def test_a_reply_that_cannot_be_read_is_kept_with_the_row() -> None:
    row = judge(Voices("m", "no idea", "still none"))
    assert (row["error_code"], row["details"]) == ("unparseable", {"replies": ["no idea", "still none"]})
    assert (row["input_tokens"], row["judge_model"]) == (20, "m")


def test_rows_are_told_done_once_however_many_are_asked() -> None:
    done: list[None] = []
    judging = Judging((Voices("a", 1, 2), Voices("b", 3, 4)), 4, lambda: done.append(None), repeats=2)
    asyncio.run(run_evaluation(resolve_evaluation("Relevance", {}), ROWS, judging))
    assert len(done) == 1
