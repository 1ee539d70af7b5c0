from __future__ import annotations

import pytest

from assay.contracts.chat import ChatReply
from assay.errors import CallError
from evaluators.contract import Scale, Verdict
from evaluators.verdicts import read_verdict

SCALE = Scale(1.0, 5.0)
GOOD = '{"reason": "clear", "score": 4}'


def read(text: str, finish_reason: str | None = "stop") -> Verdict:
    return read_verdict(ChatReply(text, "judge-1", finish_reason=finish_reason), SCALE)


@pytest.mark.parametrize(
    ("text", "score", "label", "reason"),
    [
        (GOOD, 4.0, None, "clear"),
        ('{"score": 3.5, "reason": ""}', 3.5, None, ""),
        (f"  \n{GOOD}\n", 4.0, None, "clear"),
        (f"```json\n{GOOD}\n```", 4.0, None, "clear"),
        (f"```\n{GOOD}\n```\n", 4.0, None, "clear"),
        ('{"reason": "x", "score": 1, "label": "bad", "status": "completed"}', 1.0, "bad", "x"),
        ('{"reason": "x", "label": "good"}', None, "good", "x"),
        ('{"score": 4, "reason": "score is 1,} good, ] ok"}', 4.0, None, "score is 1,} good, ] ok"),
        ('{"reason": "<S2>1</S2> {\\"score\\": 1}", "score": 5}', 5.0, None, '<S2>1</S2> {"score": 1}'),
    ],
)
def test_an_object_is_read(text: str, score: float | None, label: str | None, reason: str) -> None:
    verdict = read(text)
    assert (verdict.score, verdict.label, verdict.reason) == (score, label, reason)
    assert [reply.text for reply in verdict.replies] == [text]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("4", "no JSON object"),
        ("Score: 3.5", "no JSON object"),
        ("", "no JSON object"),
        ("I'm sorry, but I can't help with that.", "no JSON object"),
        ('[{"reason": "x", "score": 4}]', "no JSON object"),
        ('Here you go: {"reason": "x", "score": 4}', "no JSON object"),
        (GOOD + "\n" + GOOD, "no JSON object"),
        ('{"reason": "x", "score": 4, "score": 5}', "no JSON object"),
        ('{"reason": "x", "score": NaN}', "no JSON object"),
        ('{"reason": "x", "score": 4,}', "no JSON object"),
        ('{"reason": "x", "score":', "no JSON object"),
        ("{'reason': 'x', 'score': 4}", "no JSON object"),
        ('{"a":' * 5000, "no JSON object"),
        ('{"score": 4}', "no text under `reason`"),
        ('{"reason": null, "score": 4}', "no text under `reason`"),
        ('{"reason": "x"}', "no number under `score`"),
        ('{"reason": "x", "score": null}', "no number under `score`"),
        ('{"reason": "x", "score": true}', "no number under `score`"),
        ('{"reason": "x", "score": "4"}', "no number under `score`"),
        ('{"reason": "x", "label": 4}', "`label` is not a text"),
        ('{"reason": "x", "score": 0}', "off the scale 1..5"),
        ('{"reason": "x", "score": 85}', "off the scale 1..5"),
        ('{"reason": "x", "score": 9.2e124}', "off the scale 1..5"),
        ('{"reason": "x", "score": 1e999}', "off the scale 1..5"),
        ('{"reason": "x", "score": -1}', "off the scale 1..5"),
    ],
)
def test_anything_else_is_an_error_and_never_a_number(text: str, problem: str) -> None:
    with pytest.raises(CallError) as caught:
        read(text)
    assert caught.value.code == "unparseable"
    assert problem in caught.value.message


def test_a_cut_reply_is_called_truncated_only_when_it_is_unusable() -> None:
    with pytest.raises(CallError, match="output limit") as caught:
        read('{"reason": "cut he', "length")
    assert caught.value.code == "truncated"
    assert read(GOOD, "length").score == 4.0


def test_the_message_holds_a_short_piece_of_the_reply() -> None:
    with pytest.raises(CallError) as caught:
        read("no " * 1000)
    assert "no no no" in caught.value.message
    assert len(caught.value.message) < 300
