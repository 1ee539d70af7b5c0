"""UiPath's judges: prompts of their own, scales, the sum of strict JSON, histories and chunks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evaluators.uipath_prompts import PERCENT, SHARE, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

SIDES = {"response": ["{{ExpectedOutput}} 8"], "expected_response": ["eight"]}


def told(chat: Any, call: int = 0) -> tuple[str, str]:
    system, user = chat.requests[call].messages[:2]
    return str(system["content"]), str(user["content"])


def grade(score: float) -> str:
    return json.dumps({"reason": "r", "score": score})


@pytest.mark.parametrize("name", ["UiPathSemanticSimilarity", "semantic-similarity", "llm-as-a-judge"])
def test_a_score_out_of_a_hundred_is_stored_as_a_share(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any], name: str
) -> None:
    row = score(name, SIDES, scripted_chat(grade(85))).row(0, named=True)
    assert (row["score"], row["passed"], row["threshold"], row["reason"]) == (0.85, True, 0.5, "r")


def test_a_prompt_of_ones_own_names_blocks_and_what_it_does_not_name_is_shown_too(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat(grade(100))
    options = {"prompt": "Compare.\nActual: {{ActualOutput}}\n{{Other}}", "model": "m", "temperature": 0.3}
    score("UiPathSemanticSimilarity", SIDES, chat, **options)
    system, user = told(chat)
    assert system.startswith("Compare.\nActual: `response`\n{{Other}}\n")
    code = chat.requests[0].nonce
    assert f"<response-{code}>\n{{{{ExpectedOutput}}}} 8\n</response-{code}>" in user
    assert f"<expected_response-{code}>\neight\n" in user
    assert chat.requests[0].temperature == 0.3


@pytest.mark.parametrize(
    ("prompt", "scale"),
    [
        (None, PERCENT),
        ("on a scale of 0-100", PERCENT),
        ("a score between 0 and 1.", SHARE),
        ("from 0.0 to 1.0, never 1.5", SHARE),
        ("0-1, or 0-100 where that is easier", PERCENT),
        ("0-10", PERCENT),
        ("0 - 1.5", PERCENT),
    ],
)
def test_a_prompt_that_speaks_of_nothing_but_0_to_1_is_taken_at_its_word(
    prompt: str | None, scale: object
) -> None:
    assert JudgeSettings(prompt=prompt).scale == scale


def test_parts_of_the_outputs_may_be_chosen(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat(grade(50))
    rows = {"response": ['{"a": "x", "b": 1}'], "expected_response": ['{"a": "y", "c": 2}']}
    score("UiPathSemanticSimilarity", rows, chat, target_output_key="a")
    assert ">\nx\n<" in told(chat)[1]
    row = score("UiPathSemanticSimilarity", rows, chat, target_output_key=["a", "b"]).row(0, named=True)
    assert (row["error_code"], "expected_response has no 'b'" in row["error_message"]) == (
        "missing_field",
        True,
    )


def strict(score: Callable[..., pl.DataFrame], chat: Any, got: object, wanted: object) -> dict[str, Any]:
    rows = {"response": [json.dumps(got)], "expected_response": [json.dumps(wanted)]}
    row = score("uipath-llm-judge-output-strict-json-similarity", rows, chat).row(0, named=True)
    return row | {"details": json.loads(row["details_json"] or "{}")}


def test_the_sum_of_strict_json_is_done_here(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    entries = [
        {"number": 2, "reason": "other", "finding": "wrong"},
        {"number": 1, "reason": "near", "finding": "similar"},
    ]
    chat = scripted_chat(json.dumps({"findings": entries}))
    got = {"same": 1, "near": "a", "off": 2, "more": 0, "much": 0}
    row = strict(score, chat, got, {"same": 1, "near": "b", "off": 3, "lost": 4})
    assert row["score"] == pytest.approx(1 - (0.5 + 1 + 1 + 2 * 0.1) / 4)
    assert row["reason"] == (
        "near: similar; off: wrong; lost: missing; more: not expected; much: not expected"
    )
    assert row["details"]["keys"]["near"] == {"finding": "similar", "reason": "near"}
    assert row["details"]["extra_keys"] == ["more", "much"]
    assert '"key":"near"' in told(chat)[1]
    assert '"key":"same"' not in told(chat)[1]


def test_strict_json_asks_only_where_there_is_something_to_ask(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat("never")
    assert strict(score, chat, {"a": [1], "b": 2}, {"b": 2, "a": [1]})["score"] == 1.0
    assert strict(score, chat, "no JSON", {"a": 1, "b": 2})["score"] == 0.0
    assert strict(score, chat, {f"k{n}": n for n in range(30)}, {"a": 1, "b": 2})["score"] == 0.0
    nothing = strict(score, chat, {"a": 1}, {})
    assert (nothing["status"], nothing["reason"]) == ("skipped", "no keys are expected")
    assert chat.requests == []


def test_a_finding_for_every_key_is_needed(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    for entry in ({"number": 2, "finding": "match"}, {"number": 1, "finding": "fine"}, {"number": 1}):
        row = strict(score, scripted_chat(json.dumps({"findings": [entry]})), {"a": 1}, {"a": 2})
        assert (row["status"], row["error_code"]) == ("error", "unparseable")


ITEMS = '[{"role":"assistant","content":[{"type":"tool_call","name":"search"}]}]'


@pytest.mark.parametrize(
    ("fields", "history"),
    [
        ({"output_items": ITEMS, "messages": '[{"role":"user","content":"q"}]'}, "output_items"),
        ({"output_items": "[]", "messages": '[{"role":"user","content":"q"}]'}, "messages"),
        ({"tool_calls": '[{"name":"a"}]'}, "tool_calls"),
        ({"output_items": "[]", "response": "done"}, "none"),
    ],
)
def test_an_empty_history_is_judged_by_messages_and_output(
    score: Callable[..., pl.DataFrame],
    scripted_chat: Callable[..., Any],
    fields: dict[str, str],
    history: str,
) -> None:
    chat = scripted_chat(grade(40))
    rows = {"expected_response": ["searches first"]} | {name: [text] for name, text in fields.items()}
    row = score("UiPathTrajectory", rows, chat).row(0, named=True)
    assert (row["score"], json.loads(row["details_json"])) == (0.4, {"history": history})
    shown = told(chat)[1]
    assert ("<run_history-" in shown) == (history != "none")
    assert ("<final_output-" in shown) == ("response" in fields)


def test_the_trajectory_shows_input_behaviour_and_instructions(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat(grade(100))
    rows = {
        "query": ["ask"],
        "response": ["done"],
        "expected_response": ["be kind"],
        "item": ['{"simulationInstructions": "the shop is closed"}'],
    }
    prompt = "{{UserOrSyntheticInput}} {{SimulationInstructions}} {{ExpectedBehavior}} {{AgentRunHistory}}"
    score("uipath-llm-judge-trajectory-simulation", rows, chat, prompt=prompt)
    system, user = told(chat)
    assert system.startswith("`user_input` `simulation_instructions` `expected_behavior` `run_history`\n")
    for text in ("ask", "the shop is closed", "be kind", "done"):
        assert f">\n{text}\n</" in user


def test_neither_history_nor_output_is_an_error_and_no_zero(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat("never")
    row = score("trajectory", {"expected_response": ["x"], "output_items": ["[]"]}, chat).row(0, named=True)
    assert (row["error_code"], row["score"], chat.requests) == ("empty_response", None, [])
    skipped = score("trajectory", {"expected_response": [""], "response": ["x"]}, chat)
    assert skipped["reason"].to_list() == ["no expected_response"]


def grades(*scores: float) -> str:
    entries = [{"number": n, "reason": "r", "score": each} for n, each in enumerate(scores, start=1)]
    return json.dumps({"grades": entries})


def test_context_precision_is_the_mean_of_retrievals_each_against_its_own_query(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    hits = [{"extracts": [{"text": "one"}]}, {"extracts": [{"text": "two"}]}]
    retrieval: list[dict[str, Any]] = [
        {"queries": [{"queryString": "own"}], "retrievalHits": hits},
        {"retrievalHits": hits[:1]},
        {"retrievalHits": []},
    ]
    chat = scripted_chat(grades(100, 50), grades(0))
    rows = {"query": ["asked"], "retrieval": [json.dumps(retrieval)]}
    row = score("context-precision", rows, chat).row(0, named=True)
    assert (row["score"], row["reason"]) == (0.375, "3 chunks of 2 retrievals")
    assert ">\nown\n</query-" in told(chat)[1]
    assert ">\nasked\n</query-" in told(chat, 1)[1]
    details = json.loads(row["details_json"])["retrievals"]
    assert [[chunk["score"] for chunk in each["chunks"]] for each in details] == [[1.0, 0.5], [0.0]]


def test_nothing_retrieved_is_not_applicable(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    row = score("context-precision", {"query": ["q"], "retrieval": ["[]"]}, scripted_chat("never"))
    assert row["status"].to_list() == ["skipped"]
    assert "nothing was retrieved" in row["reason"][0]
