from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from evaluators.groundedness import NO_SOURCE, RUBRIC

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    Score = Callable[..., pl.DataFrame]
    Script = Callable[..., Any]

GOOD = '{"reason": "all of it is there", "score": 4}'
HITS = [
    {"capability": "search", "retrievalHits": [{"rank": 1, "webUrl": "u", "extracts": [{"text": "dry"}]}]}
]
ITEMS: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "content": [{"type": "tool_call", "tool_call_id": "1", "name": "w", "arguments": {}}],
    },
    {
        "role": "tool",
        "tool_call_id": "1",
        "content": [{"type": "tool_result", "tool_result": {"sky": "blue"}}],
    },
    {"role": "assistant", "content": "It is blue."},
]
RETRIEVED = '[{"rank":1,"url":"u","extracts":["dry"]}]'
RESULTS = '[{"name":"w","arguments":{},"result":{"sky":"blue"}}]'
PLACES: dict[str, tuple[str, str]] = {
    "context": ("the sky is blue", "the sky is blue"),
    "retrieval": (json.dumps(HITS), RETRIEVED),
    "output_items": (json.dumps(ITEMS), RESULTS),
    "expected_response": ("blue", "blue"),
}


def blocks(chat: Any) -> dict[str, str]:
    text = str(chat.requests[0].messages[1]["content"])
    return {
        name: held
        for name, _, held in re.findall(r"<(\w+)-([0-9a-f]{16})>\n(.*?)\n</\1-\2>", text, re.DOTALL)
    }


def row_of(**fields: str | None) -> dict[str, list[str | None]]:
    return {name: [text] for name, text in ({"response": "r", "query": "q"} | fields).items()}


@pytest.mark.parametrize(
    ("fields", "source", "shown"),
    [
        (["context", "retrieval", "output_items", "expected_response"], "context", "the sky is blue"),
        (["retrieval", "expected_response"], "retrieval", RETRIEVED),
        (["output_items", "expected_response"], "tool_results", RESULTS),
        (["retrieval", "output_items"], "retrieval+tool_results", f"{RETRIEVED}\n{RESULTS}"),
        (["expected_response"], "expected_response", "blue"),
    ],
)
def test_the_first_source_that_is_there_is_shown_and_named(
    score: Score, scripted_chat: Script, fields: list[str], source: str, shown: str
) -> None:
    chat = scripted_chat(GOOD)
    row = score("Groundedness", row_of(**{name: PLACES[name][0] for name in fields}), chat).row(0, named=True)
    assert (row["score"], row["passed"], row["threshold"]) == (4.0, True, 3.0)
    assert json.loads(row["details_json"]) == {"source": source}
    assert blocks(chat) == {"query": "q", "response": "r", "source": shown}
    assert row["prompt_sha"] == RUBRIC.sha


@pytest.mark.parametrize(
    "fields",
    [
        {"context": " \n"},
        {"context": "", "retrieval": "[]", "output_items": "[]"},
        {"retrieval": '[{"retrievalHits":[{"extracts":[{"text":" "}]},{"extracts":[]}]}]'},
        {"output_items": '[{"role":"tool","content":[{"type":"tool_result","tool_result":""}]}]'},
        {"output_items": '[{"role":"assistant","content":"said"}]', "expected_response": "  "},
    ],
)
def test_what_holds_nothing_is_no_source_and_without_one_the_row_is_skipped(
    score: Score, scripted_chat: Script, fields: dict[str, str]
) -> None:
    chat = scripted_chat(GOOD)
    row = score("groundedness", row_of(**fields), chat).row(0, named=True)
    assert (row["status"], row["reason"], row["score"], row["passed"]) == ("skipped", NO_SOURCE, None, None)
    assert chat.requests == []


def test_an_answer_that_waits_for_a_result_is_skipped(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(GOOD)
    rows = row_of(context="c", response="", output_items=json.dumps(ITEMS[:1]))
    row = score("Groundedness", rows, chat).row(0, named=True)
    assert row["status"] == "skipped"
    assert row["reason"].startswith("an intermediate answer")
    assert chat.requests == []


def test_a_blank_answer_is_an_error_and_a_missing_question_is_none(
    score: Score, scripted_chat: Script
) -> None:
    chat = scripted_chat(GOOD)
    rows = {"response": [" ", "r"], "context": ["c", "c"]}
    assert score("builtin.groundedness", rows, chat)["error_code"].to_list() == ["empty_response", None]
    assert blocks(chat) == {"response": "r", "source": "c"}


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ('{"reason": "x"}', "no JSON object with `score`"),
        ('{"reason": "x", "score": null}', "no number under `score`"),
        ('{"reason": "x", "score": true}', "no number under `score`"),
        ('{"reason": "x", "score": 6}', "`score` is off the scale 1..5"),
        ('{"reason": 1, "score": 4}', "`reason` is not a text"),
        ("grounded", "no JSON object with `score`"),
    ],
)
def test_a_reply_without_a_grade_is_asked_for_once_more_and_then_an_error(
    score: Score, scripted_chat: Script, reply: str, told: str
) -> None:
    chat = scripted_chat(reply)
    row = score("Groundedness", row_of(context="c"), chat).row(0, named=True)
    assert (row["error_code"], row["score"], len(chat.requests)) == ("unparseable", None, 2)
    assert row["error_message"].startswith(told)
    mended = scripted_chat(reply, GOOD)
    again = score("Groundedness", row_of(context="c"), mended).row(0, named=True)
    assert (again["score"], json.loads(again["details_json"])) == (
        4.0,
        {"source": "context", "asked_again": told},
    )


def test_retrieval_of_another_form_is_an_error_of_its_row(score: Score, scripted_chat: Script) -> None:
    chat = scripted_chat(GOOD)
    rows = {"response": ["r", "r"], "retrieval": ['{"a":1}', json.dumps(HITS)]}
    assert score("Groundedness", rows, chat)["error_code"].to_list() == ["bad_field", None]
