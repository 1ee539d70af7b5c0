from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from assay.contracts.chat import ChatReply, Usage
from evaluators.quality_grader import GROUNDING, RESPONSE

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    Score = Callable[..., pl.DataFrame]
    Script = Callable[..., Any]

FIRST: dict[str, object] = {
    "reason": "well answered",
    "abstention": False,
    "conversation_incomplete": False,
    "relevance": 4,
    "answer_completeness": 2,
}
SECOND: dict[str, object] = {"reason": "well founded", "groundedness": 5, "context_coverage": 3}
ROW = {"query": ["q"], "response": ["r"]}
IN_CONTEXT = ROW | {"context": ["c"]}


def first(**changes: object) -> str:
    return json.dumps(FIRST | changes)


def second(**changes: object) -> str:
    return json.dumps(SECOND | changes)


def names_of_blocks(chat: Any) -> list[list[str]]:
    texts = [str(request.messages[1]["content"]) for request in chat.requests]
    return [re.findall(r"<(\w+)-[0-9a-f]{16}>\n", text) for text in texts]


@pytest.mark.parametrize("rows", [ROW, ROW | {"context": [" \n"]}, ROW | {"context": [None]}])
def test_without_a_context_one_call_decides(
    score: Score, scripted_chat: Script, rows: dict[str, Any]
) -> None:
    chat = scripted_chat(first())
    row = score("QualityGrader", rows, chat).row(0, named=True)
    assert (row["score"], row["passed"], row["reason"]) == (1.0, True, "well answered")
    assert names_of_blocks(chat) == [["query", "response"]]
    assert row["prompt_sha"] == RESPONSE.sha
    assert json.loads(row["details_json"]) == {
        "abstention": False,
        "conversation_incomplete": False,
        "relevance": 4.0,
        "answer_completeness": 2.0,
        "groundedness": None,
        "context_coverage": None,
        "faults": [],
        "reasons": ["well answered"],
    }


def test_with_a_context_a_second_call_decides_too(score: Score, scripted_chat: Script) -> None:
    replies = [ChatReply(text, "judge-1", usage=Usage(100, 10)) for text in (first(), second())]
    chat = scripted_chat(*replies)
    row = score("builtin.quality_grader", IN_CONTEXT, chat).row(0, named=True)
    assert (row["score"], row["reason"]) == (1.0, "well answered; well founded")
    assert names_of_blocks(chat) == [["query", "response"], ["query", "response", "context"]]
    assert row["prompt_sha"] == hashlib.sha256(f"{RESPONSE.sha}{GROUNDING.sha}".encode()).hexdigest()
    details = json.loads(row["details_json"])
    assert (details["relevance"], details["groundedness"], details["context_coverage"]) == (4.0, 5.0, 3.0)
    assert (row["input_tokens"], row["output_tokens"]) == (200, 20)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"abstention": True}, "the answer abstains"),
        ({"relevance": 2}, "relevance 2 is not above 2.5"),
        ({"relevance": 2.5}, "relevance 2.5 is not above 2.5"),
        ({"answer_completeness": 1}, "answer_completeness 1 is not above 1.5"),
    ],
)
def test_an_answer_that_fails_is_not_held_against_its_context(
    score: Score, scripted_chat: Script, changes: dict[str, object], fault: str
) -> None:
    chat = scripted_chat(first(**changes))
    row = score("QualityGrader", IN_CONTEXT, chat).row(0, named=True)
    assert (row["score"], row["passed"], len(chat.requests)) == (0.0, False, 1)
    assert row["reason"] == f"{fault}; well answered"
    assert json.loads(row["details_json"])["faults"] == [fault]


@pytest.mark.parametrize(
    ("changes", "passed"),
    [
        ({"groundedness": 3, "context_coverage": 2}, True),
        ({"groundedness": 2}, False),
        ({"context_coverage": 1}, False),
        ({"context_coverage": 0}, False),
    ],
)
def test_grades_against_the_context_have_limits_of_their_own(
    score: Score, scripted_chat: Script, changes: dict[str, object], passed: bool
) -> None:
    row = score("QualityGrader", IN_CONTEXT, scripted_chat(first(), second(**changes))).row(0, named=True)
    assert (row["score"], row["passed"]) == (float(passed), passed)


def test_a_conversation_without_a_question_yet_is_skipped_after_one_call(
    score: Score, scripted_chat: Script
) -> None:
    chat = scripted_chat(ChatReply(first(conversation_incomplete=True), "judge-1", usage=Usage(100, 10)))
    row = score("QualityGrader", IN_CONTEXT, chat).row(0, named=True)
    assert (row["status"], row["score"], row["passed"]) == ("skipped", None, None)
    assert row["reason"] == "there is nothing to answer yet: well answered"
    assert (row["input_tokens"], len(chat.requests)) == (100, 1)


def test_an_answer_that_waits_for_a_result_is_skipped(score: Score, scripted_chat: Script) -> None:
    items = '[{"type":"function_call","call_id":"1","name":"f","arguments":"{}"}]'
    chat = scripted_chat(first())
    row = score("QualityGrader", ROW | {"output_items": [items]}, chat).row(0, named=True)
    assert (row["status"], chat.requests) == ("skipped", [])
    assert row["reason"].startswith("an intermediate answer")


BAD = [
    ("abstention", None, "neither true nor false under `abstention`"),
    ("abstention", 0, "neither true nor false under `abstention`"),
    ("conversation_incomplete", "maybe", "neither true nor false under `conversation_incomplete`"),
    ("relevance", None, "no number under `relevance`"),
    ("relevance", 0, "`relevance` is off the scale 1..5"),
    ("relevance", "high", "no number under `relevance`"),
    ("answer_completeness", 4, "`answer_completeness` is off the scale 0..3"),
    ("answer_completeness", True, "no number under `answer_completeness`"),
    ("reason", None, "no text under `reason`"),
]


@pytest.mark.parametrize(("member", "value", "told"), BAD)
def test_a_member_that_is_missing_or_off_is_no_verdict(
    score: Score, scripted_chat: Script, member: str, value: object, told: str
) -> None:
    chat = scripted_chat(first(**{member: value}))
    row = score("QualityGrader", ROW, chat).row(0, named=True)
    assert (row["status"], row["error_code"], row["score"]) == ("error", "unparseable", None)
    assert row["error_message"].startswith(told)
    assert len(chat.requests) == 2
    lacking = {name: each for name, each in FIRST.items() if name != member}
    assert score("QualityGrader", ROW, scripted_chat(json.dumps(lacking)))["error_code"][0] == "unparseable"


def test_a_second_call_without_a_verdict_is_an_error_and_no_pass(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(first(), second(groundedness=None))
    row = score("QualityGrader", IN_CONTEXT, chat).row(0, named=True)
    assert (row["error_code"], row["score"], len(chat.requests)) == ("unparseable", None, 3)


def test_flags_and_grades_may_be_written_as_text(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(first(abstention="False", conversation_incomplete="false", relevance="5"))
    assert score("QualityGrader", ROW, chat)["score"].to_list() == [1.0]


def test_the_schema_asks_for_every_member(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(first(), second())
    score("QualityGrader", IN_CONTEXT, chat)
    schemas = [request.json_schema for request in chat.requests]
    assert [each["required"] for each in schemas] == [list(FIRST), list(SECOND)]
    assert schemas[0]["properties"]["answer_completeness"] == {"type": "integer", "enum": [0, 1, 2, 3]}
    assert schemas[0]["properties"]["abstention"] == {"type": "boolean"}
