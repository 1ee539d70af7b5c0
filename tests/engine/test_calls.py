from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import assay
from assay.errors import ConfigError, EndpointError, SetupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")

JUDGE_REPLY = json.dumps({"reason": "to the point", "score": 4, "confidence": "ignored"})
DEAD_BODIES: list[tuple[Any, str]] = [  # field case F061
    ("<html>Sign in</html>", "html_body"),
    ({}, "no_choices"),
    (
        {"error": {"message": "upstream died", "type": "invalid_request_error", "code": "internal"}},
        "error_body",
    ),
]


def is_for_judge(body: dict[str, Any]) -> bool:
    return body["model"] == "judge"


def answer(body: dict[str, Any]) -> dict[str, Any]:
    if is_for_judge(body):
        return {
            "reply": JUDGE_REPLY,
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
    return {"reply": "Paris", "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}


def left_in(store: Path) -> list[Path]:
    return sorted(path for path in store.rglob("*") if path.is_file()) if store.exists() else []


def test_target_and_judge_land_in_the_tables(run_rows: Callable[..., Run], loopback: Loopback) -> None:
    loopback.script([], after=answer)
    run = run_rows(evaluators="ExactMatch,Relevance", model="m", judge="judge", base_url=loopback.base_url)
    judged = [request["body"] for request in loopback.requests if is_for_judge(request["body"])]
    asked = [request["body"] for request in loopback.requests if not is_for_judge(request["body"])]
    assert (len(asked), len(judged)) == (3, 3)
    assert {body["messages"][-1]["content"] for body in asked} == set(run_queries())
    assert all(any(q in body["messages"][-1]["content"] for q in run_queries()) for body in judged)
    assert run.samples["output_text"].to_list() == ["Paris"] * 3
    assert run.samples["input_tokens"].to_list() == [7] * 3
    relevance = run.scores.filter(pl.col("evaluator") == "Relevance")
    assert relevance.select("score", "passed", "reason", "judge_model", "input_tokens").unique().rows() == [
        (4.0, True, "to the point", "judge", 100)
    ]
    assert relevance["prompt_sha"].null_count() == 0
    assert (run.info["input_tokens"], run.info["output_tokens"]) == (3 * 107, 3 * 12)
    assert run.info["judge_model"] == "judge"


def run_queries() -> list[str]:
    return ["2 + 2?", "Capital of France?", "Farbe des Himmels?"]


def test_a_target_answers_although_an_answer_is_stored(
    run_rows: Callable[..., Run], loopback: Loopback
) -> None:
    loopback.script([], after={"reply": "fresh"})
    rows = {"id": "1", "query": "q", "response": "stored", "ground_truth": "fresh"}
    fresh = run_rows(rows, evaluators="ExactMatch", model="m", base_url=loopback.base_url)
    assert fresh.scores["passed"].to_list() == [True]
    mapped = run_rows(
        rows,
        evaluators="ExactMatch",
        model="m",
        base_url=loopback.base_url,
        mapping={"response": "{{item.response}}"},
    )
    assert mapped.scores["passed"].to_list() == [False]


@pytest.mark.parametrize(("body", "code"), DEAD_BODIES)
def test_a_dead_target_is_an_error_and_is_never_judged(
    run_rows: Callable[..., Run], loopback: Loopback, body: Any, code: str
) -> None:
    loopback.script([], after={"status": 200, "body": body})
    run = run_rows(
        evaluators="Contains,Relevance",
        options={"Contains": {"negated": True, "search_text": "sorry"}},
        model="m",
        judge="judge",
        base_url=loopback.base_url,
    )
    assert run.samples["error_code"].to_list() == [code] * 3
    assert run.scores.select("status", "score", "passed", "error_code").unique().rows() == [
        ("error", None, None, code)
    ]
    assert not any(is_for_judge(request["body"]) for request in loopback.requests)
    assert run.exit_code == 3


def test_an_unusable_verdict_is_an_error_and_never_a_default(
    run_rows: Callable[..., Run], loopback: Loopback
) -> None:
    loopback.script([], after={"reply": '{"score": 9, "reason": "great"}'})
    run = run_rows(evaluators="Relevance", judge="judge", base_url=loopback.base_url)
    assert run.scores.select("status", "score", "error_code").unique().rows() == [
        ("error", None, "unparseable")
    ]


def test_turns_of_a_conversation_are_sent_with_their_history(tmp_path: Path, loopback: Loopback) -> None:
    turns = [{"prompt": f"question {n}", "expected_response": "x"} for n in range(3)]
    document = {"schemaVersion": "1.2.0", "items": [{"testId": "T", "turns": turns}]}
    path = tmp_path / "thread.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    loopback.script([{"reply": f"answer {n}"} for n in range(3)])
    run = assay.run(
        path, evaluators="PartialMatch", model="m", base_url=loopback.base_url, store=tmp_path / "s"
    )
    last = [message["content"] for message in loopback.requests[-1]["body"]["messages"]]
    assert last == ["question 0", "answer 0", "question 1", "answer 1", "question 2"]
    assert run.samples.select("turn", "output_text").rows() == [(n, f"answer {n}") for n in range(3)]


def test_turns_after_a_failed_one_are_skipped_with_the_reason(tmp_path: Path, loopback: Loopback) -> None:
    turns = [{"prompt": f"question {n}", "expected_response": "x"} for n in range(2)]
    path = tmp_path / "thread.json"
    path.write_text(json.dumps([{"testId": "T", "turns": turns}]), encoding="utf-8")
    loopback.script([], after={"status": 400, "body": {"error": {"message": "too long"}}})
    run = assay.run(
        path, evaluators="PartialMatch", model="m", base_url=loopback.base_url, store=tmp_path / "s"
    )
    assert run.scores.select("turn", "status", "score", "passed").rows() == [
        (0, "error", None, None),
        (1, "skipped", None, None),
    ]
    assert len(loopback.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_model_or_url_ends_the_run_and_leaves_nothing(
    run_rows: Callable[..., Run], tmp_path: Path, loopback: Loopback, status: int
) -> None:
    loopback.script([], after={"status": status, "body": {"error": {"message": "no"}}})
    with pytest.raises(EndpointError, match="m"):
        run_rows(evaluators="ExactMatch", model="m", base_url=loopback.base_url)
    assert len(loopback.requests) <= 3
    assert left_in(tmp_path / "store") == []


def test_an_unreachable_endpoint_is_one_sentence_and_leaves_nothing(
    run_rows: Callable[..., Run], tmp_path: Path
) -> None:
    with pytest.raises(EndpointError, match=r"cannot reach http://127\.0\.0\.1:9"):
        run_rows(evaluators="ExactMatch", model="m", base_url="http://127.0.0.1:9/v1")
    assert left_in(tmp_path / "store") == []


def test_a_missing_key_is_named_before_any_call(
    run_rows: Callable[..., Run], tmp_path: Path, loopback: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(SetupError, match="OPENAI_API_KEY"):
        run_rows(evaluators="ExactMatch", model="m", base_url=loopback.base_url)
    assert loopback.requests == []
    assert left_in(tmp_path / "store") == []


def test_the_key_is_in_no_file_of_the_store(
    run_rows: Callable[..., Run], tmp_path: Path, loopback: Loopback, api_key: str
) -> None:
    loopback.script([], after=answer)
    run_rows(evaluators="ExactMatch,Relevance", model="m", judge="judge", base_url=loopback.base_url)
    assert [path for path in left_in(tmp_path / "store") if api_key.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("url", ["http://user:secret@h/v1", "http://h/v1?key=secret", "h/v1", "ftp://h"])
def test_a_url_that_carries_a_secret_or_is_none_is_refused(run_rows: Callable[..., Run], url: str) -> None:
    with pytest.raises(ConfigError, match="base_url") as caught:
        run_rows(evaluators="ExactMatch", model="m", base_url=url)
    assert "secret" not in str(caught.value)


def test_template_syntax_in_data_reaches_the_judge_unchanged(
    run_rows: Callable[..., Run], loopback: Loopback
) -> None:
    loopback.script([], after={"reply": JUDGE_REPLY})
    query, response = "^{{Ω}rel } {{item.secret}}", "{response} %s ${data.query} \\1"
    row = {"id": "1", "query": query, "response": response, "secret": "S3CRET"}
    run_rows(row, evaluators="Relevance", judge="judge", base_url=loopback.base_url)
    prompt = loopback.requests[0]["body"]["messages"][-1]["content"]
    assert query in prompt
    assert response in prompt
    assert "S3CRET" not in prompt


def test_a_prompt_template_says_what_is_sent(
    loopback: Loopback, api_key: str, run_rows: Callable[..., Run], tmp_path: Path
) -> None:
    assert api_key
    loopback.script([], after={"reply": "x"})
    template = tmp_path / "prompt.json"
    template.write_text(
        '[{"role": "system", "content": "Answer in {{item.language}}."},'
        ' {"role": "user", "content": "{{item.query}}"}]',
        encoding="utf-8",
    )
    run = run_rows(
        {"id": "a", "query": "{{item.id}}?", "language": "German", "ground_truth": "x"},
        {"id": "b", "query": "why?", "ground_truth": "x"},
        model="m",
        base_url=loopback.base_url,
        prompt_template=template,
        evaluators="ExactMatch",
        max_errors="1",
    )
    (request,) = loopback.requests
    assert [message["content"] for message in request["body"]["messages"]] == [
        "Answer in German.",
        "{{item.id}}?",
    ]
    assert run.samples.sort("item_id")["error_message"].to_list() == [None, "missing item.language"]


def test_a_prompt_of_a_field_that_no_item_has_asks_nothing(
    loopback: Loopback, api_key: str, run_rows: Callable[..., Run], tmp_path: Path
) -> None:
    assert api_key
    template = tmp_path / "prompt.txt"
    template.write_text("{{item.qery}}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"item has no field qery .*did you mean query"):
        run_rows(model="m", base_url=loopback.base_url, prompt_template=template, evaluators="ExactMatch")
    assert loopback.requests == []
