"""LabelModel and ScoreModel: a user's own prompt, its placeholders as blocks, and what is read of a reply."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ConfigError
from evaluators.catalog import resolve_evaluation
from evaluators.score_model import ScoreModelOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

LABELS: dict[str, Any] = {
    "input": [
        {"role": "developer", "content": "You sort answers."},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "{{ item.question }}\n{{sample.output_text}}"}],
        },
        {"type": "message", "role": "assistant", "content": "good"},
    ],
    "model": "gpt-x",
    "labels": ["good", "bad"],
    "passing_labels": ["good"],
}
SCORES: dict[str, Any] = {"input": [{"role": "user", "content": "Grade {{sample.output_text}}"}]}
IMAGE: dict[str, Any] = {"input": [{"role": "user", "content": {"type": "input_image"}}]}
QUESTION = "Capital? {{item.secret}} {{sample.output_text}}"
ROWS = {
    "item": ["{}"],
    "response": ["Paris"],
    "item_question.context": [QUESTION],
}


def texts_of(chat: Any) -> tuple[str, str]:
    system, user = chat.requests[0].messages
    return str(system["content"]), str(user["content"])


def test_placeholders_are_read_as_a_mapping_and_named_as_blocks() -> None:
    evaluation = resolve_evaluation("label_model", LABELS)
    assert evaluation.mapping == {
        "item_question.context": "{{ item.question }}",
        "response": "{{sample.output_text}}",
    }
    assert evaluation.needs == ("item", "response")
    assert evaluation.fields == ("item", "response", "item_question.context")


def test_values_are_fenced_once_and_never_read_again(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat('{"reason": "right", "label": "Good"}')
    row = score("LabelModel", ROWS, chat, **LABELS).row(0, named=True)
    assert (row["score"], row["passed"], row["label"], row["reason"]) == (1.0, True, "good", "right")
    system, user = texts_of(chat)
    assert system.startswith(
        "You sort answers.\n\n`item_question`\n`response`\n\nAn example of a reply:\ngood"
    )
    code = chat.requests[0].nonce
    assert f"<item_question-{code}>\n{QUESTION}\n</item_question-{code}>" in user
    assert f"<response-{code}>\nParis\n</response-{code}>" in user
    assert "Paris" not in system


@pytest.mark.parametrize(
    ("text", "shown", "mapping"),
    [
        ("<<item.a>> {{item.a}}", "`item_a` `item_a`", {"item_a.context": "<<item.a>>"}),
        ("${data.a} ${target.output_text}", "`data_a` `response`",
         {"data_a.context": "${data.a}", "response": "${target.output_text}"}),
        ('{{item["a b"]}} {{item.a_b}}', "`item_a_b` `item_a_b_2`",
         {"item_a_b.context": '{{item["a b"]}}', "item_a_b_2.context": "{{item.a_b}}"}),
        ("\\{{item.x}} {{item}} << 3", "{{item.x}} `item` << 3", {"item.context": "{{item}}"}),
    ],
)  # fmt: skip
def test_every_form_of_placeholder_counts(
    score: Callable[..., pl.DataFrame],
    scripted_chat: Callable[..., Any],
    text: str,
    shown: str,
    mapping: dict[str, str],
) -> None:
    options: dict[str, Any] = {"input": [{"role": "user", "content": text}]}
    assert resolve_evaluation("ScoreModel", options).mapping == mapping
    chat = scripted_chat('{"reason": "r", "score": 1}')
    score("ScoreModel", {"response": ["x"], "item": ["{}"]}, chat, **options)
    assert texts_of(chat)[0].startswith(f"{shown}\n")


def test_a_score_lies_in_the_range_and_is_never_moved_into_it(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    options = {**SCORES, "range": [1, 5], "pass_threshold": 3}
    good = score("ScoreModel", ROWS, scripted_chat('{"reason": "r", "score": 3.5}'), **options)
    assert good.select("score", "passed", "threshold").rows() == [(3.5, True, 3.0)]
    for reply in ('{"reason": "r", "score": 5.1}', '{"reason": "r", "score": "high"}', '{"score": null}'):
        bad = score("ScoreModel", ROWS, scripted_chat(reply), **options)
        assert bad.select("status", "error_code", "score").rows() == [("error", "unparseable", None)]
    assert ScoreModelOptions.model_validate({**SCORES, "range": [1, 5]}).default_threshold == 3.0


def test_the_replies_of_openai_are_read(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    steps = [{"description": "d", "conclusion": "fits"}]
    reply = scripted_chat(json.dumps({"steps": steps, "result": 0.75}))
    row = score("score_model", ROWS, reply, **SCORES).row(0, named=True)
    assert (row["score"], row["reason"], json.loads(row["details_json"])) == (0.75, "fits", {"steps": steps})
    label = score("label_model", ROWS, scripted_chat('{"result": "bad", "steps": []}'), **LABELS)
    assert label.select("score", "label", "passed").rows() == [(0.0, "bad", False)]
    both = scripted_chat('{"result": "bad", "label": "good"}')
    assert score("label_model", ROWS, both, **LABELS)["error_code"].to_list() == ["unparseable"]


def test_sampling_parameters_reach_the_judge(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat('{"reason": "r", "score": 1}')
    params = {"temperature": 0.5, "seed": 7, "max_completions_tokens": 99, "reasoning_effort": "low"}
    score("ScoreModel", ROWS, chat, **SCORES, sampling_params=params)
    request = chat.requests[0]
    assert (request.temperature, request.seed, request.max_output_tokens) == (0.5, 7, 99)
    assert (request.top_p, request.params) == (None, {"reasoning_effort": "low"})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("LabelModel", {**LABELS, "passing_labels": ["fine"]}, "among the labels: good, bad"),
        ("LabelModel", {**LABELS, "labels": ["good", "Good"]}, "differ in more than case"),
        ("LabelModel", {**LABELS, "input": []}, r"LabelModel\.input"),
        ("ScoreModel", {"input": [{"role": "user", "content": "How good?"}]}, r"\{\{sample\.output_text\}\}"),
        (
            "ScoreModel",
            {"input": [{"role": "robot", "content": "{{item.a}}"}]},
            r"ScoreModel\.input\.0\.role",
        ),
        ("ScoreModel", IMAGE, "content"),
        ("ScoreModel", {**SCORES, "range": [1, 1]}, "the lower one first"),
        ("ScoreModel", {**SCORES, "range": [1]}, "a range of two numbers"),
        ("ScoreModel", {**SCORES, "sampling_params": {"heat": 1}}, "sampling_params.heat"),
    ],
)
def test_options_that_cannot_be_met_are_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve_evaluation(name, options)


def test_a_blank_answer_is_not_asked_about(
    score: Callable[..., pl.DataFrame], scripted_chat: Callable[..., Any]
) -> None:
    chat = scripted_chat("never")
    row = score("ScoreModel", {"item": ["{}"], "response": [" "]}, chat, **SCORES).row(0, named=True)
    assert (row["error_code"], chat.requests) == ("empty_response", [])
