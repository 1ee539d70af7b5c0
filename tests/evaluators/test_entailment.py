"""Claims against extracts: RetrievalResult with `match: entailment`, and UiPathFaithfulness."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evaluators.catalog import find_evaluator, resolve_evaluation
from evaluators.contract import JudgeEvaluator, RowEvaluator

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

RETRIEVAL = json.dumps(
    [
        {
            "capability": "Email",
            "retrievalHits": [
                {
                    "rank": 2,
                    "webUrl": "https://x.org/2",
                    "extracts": [{"text": "Budget is 5 k."}, {"text": " "}],
                },
                {"rank": 1, "webUrl": "https://x.org/1", "extracts": [{"text": "The launch is in May."}]},
                {"rank": 11, "extracts": [{"text": "far down"}]},
            ],
        }
    ]
)
WANTED: list[Any] = [
    {"retrievalExtract_contains": text} for text in ("It starts in spring", "It is expensive")
]
ENTAILMENT: dict[str, Any] = {"match": "entailment", "expected_items": WANTED}


def finding(number: int, supporting: list[int], contradicting: list[int]) -> dict[str, Any]:
    return {
        "number": number,
        "reason": f"because {number}",
        "supporting": supporting,
        "contradicting": contradicting,
    }


def findings(*each: dict[str, Any]) -> str:
    return json.dumps({"findings": each})


def claims(*texts: str) -> str:
    return json.dumps({"reason": "about a city", "claims": [{"claim": text} for text in texts]})


def block(chat: Any, call: int, name: str) -> Any:
    request = chat.requests[call]
    text = str(request.messages[1]["content"])
    return json.loads(text.split(f"<{name}-{request.nonce}>\n")[1].split(f"\n</{name}-", maxsplit=1)[0])


def test_the_judge_is_asked_once_about_all_expected_texts_and_the_best_hit_is_named(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat(findings(finding(2, [], [2]), finding(1, [1, 2], [])))
    row = score("RetrievalResult", {"retrieval": [RETRIEVAL]}, chat, **ENTAILMENT).row(0, named=True)
    details = json.loads(row["details_json"])
    assert len(chat.requests) == 1
    assert [each["text"] for each in block(chat, 0, "extracts")] == [
        "The launch is in May.",
        "Budget is 5 k.",
    ]
    assert (row["score"], row["label"], row["passed"], details["match"]) == (
        0.5,
        "not_retrieved",
        False,
        "entailment",
    )
    assert details["matched_items"] == [
        {"extractMatch": "It starts in spring", "matchedHitUrl": "https://x.org/1", "matchedHitRank": 1}
    ]
    assert details["missing_items"] == [{"extractMatch": "It is expensive", "reason": "because 2"}]
    assert row["prompt_sha"] is not None


def test_nothing_to_compare_asks_nobody(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat("never")
    empty = score("RetrievalResult", {"retrieval": ["[]", None]}, chat, **ENTAILMENT)
    assert empty.select("score", "label").unique().rows() == [(0.0, "not_retrieved")]
    counted = {"match": "entailment", "min_expected_count": 2}
    assert score("RetrievalResult", {"retrieval": [RETRIEVAL]}, chat, **counted)["score"].to_list() == [1.0]
    assert chat.requests == []


def test_the_options_choose_the_form() -> None:
    contains = resolve_evaluation("RetrievalResult", {"expected_items": WANTED})
    asking = resolve_evaluation("RetrievalResult", ENTAILMENT)
    assert isinstance(contains.evaluator, RowEvaluator)
    assert isinstance(asking.evaluator, JudgeEvaluator)
    assert (asking.label, asking.threshold) == (contains.label, contains.threshold)
    assert find_evaluator("RetrievalResult").version == 1


@pytest.mark.parametrize(
    "reply",
    [
        findings(finding(1, [1], [])),
        findings(finding(1, [1], []), finding(1, [1], [])),
        findings(finding(1, [3], []), finding(2, [], [])),
        findings(finding(1, [True], []), finding(2, [], [])),
        '{"findings": "both"}',
        '{"findings": [1, 2]}',
    ],
)
def test_findings_that_do_not_fit_the_claims_are_an_error(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any], reply: str
) -> None:
    chat = scripted_chat(reply)
    row = score("RetrievalResult", {"retrieval": [RETRIEVAL]}, chat, **ENTAILMENT).row(0, named=True)
    assert (row["status"], row["error_code"], len(chat.requests)) == ("error", "unparseable", 2)


def faithfulness(score: Callable[..., pl.DataFrame], chat: Any, **fields: str | None) -> dict[str, Any]:
    rows = {"response": ["Paris has 2 M people and a king."]} | {
        name: [text] for name, text in fields.items()
    }
    row = score("faithfulness", rows, chat).row(0, named=True)
    return row | {"details": json.loads(row["details_json"] or "{}")}


def test_a_claim_is_grounded_by_a_source_for_it_and_none_against_it(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    judged = findings(finding(1, [1], []), finding(2, [1], [2]), finding(3, [], []))
    chat = scripted_chat(claims("a", "b", "c"), judged)
    row = faithfulness(score, chat, context='["one", "two"]')
    assert row["score"] == pytest.approx(1 / 3)
    assert row["reason"] == "2 of 3 claims are not grounded: b; c"
    assert [each["grounded"] for each in row["details"]["claims"]] == [True, False, False]
    assert (row["details"]["sources"], row["details"]["sources_count"]) == ("context", 2)
    assert [each["text"] for each in block(chat, 1, "claims")] == ["a", "b", "c"]
    assert "Paris has" in str(chat.requests[0].messages[1]["content"])


def test_no_claims_score_one_and_no_sources_zero_and_both_are_told(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    row = faithfulness(score, scripted_chat(claims()), context="one")
    assert (row["score"], row["reason"], row["details"]["claims_count"]) == (
        1.0,
        "the answer makes no claims",
        0,
    )
    row = faithfulness(score, scripted_chat(claims("a", " ")), context=" ", retrieval="[]")
    assert (row["score"], row["reason"]) == (0.0, "no sources for 1 claims")
    assert row["details"]["sources"] == "none"


@pytest.mark.parametrize(
    ("fields", "source", "texts"),
    [
        ({"retrieval": RETRIEVAL, "context": "c"}, "retrieval",
         ["The launch is in May.", "Budget is 5 k.", "far down"]),
        ({"retrieval": "[]", "context": "c"}, "context", ["c"]),
        ({"output_items": '[{"role": "tool", "content": "sunny"}]'}, "tool_results", ["sunny"]),
    ],
)  # fmt: skip
def test_sources_are_what_was_retrieved_else_the_context_else_tool_results(
    score: Callable[..., pl.DataFrame],
    scripted_chat: Callable[..., Any],
    fields: dict[str, str],
    source: str,
    texts: list[str],
) -> None:
    chat = scripted_chat(claims("a"), findings(finding(1, [1], [])))
    row = faithfulness(score, chat, **fields)
    assert (row["score"], row["details"]["sources"]) == (1.0, source)
    assert [each["text"] for each in block(chat, 1, "extracts")] == texts
