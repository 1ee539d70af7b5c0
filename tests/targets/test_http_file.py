"""The TOML file of an HTTP target, and the paths, templates and events that it speaks of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import CallError, ConfigError
from assay.targets.http_file import read_http_file
from assay.targets.http_replies import read_answer, read_events
from assay.targets.json_paths import parse_path
from assay.targets.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.contracts.json_text import JsonValue
    from assay.targets.http_file import HttpFile

URL = 'url = "http://127.0.0.1/ask"\n'
SSE = f'{URL}stream = "sse"\n'


def read(folder: Path, text: str) -> HttpFile:
    path = folder / "agent.toml"
    path.write_text(text, encoding="utf-8")
    return read_http_file(str(path))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("url = ", "not TOML"),
        ("", "url is missing; expected a text"),
        ("url = 5", "url has the wrong type; expected a text"),
        (f"{URL}metod = 'GET'", "unknown key 'metod'; did you mean method?"),
        (f"{URL}method = 'FETCH'", "unknown method 'FETCH'"),
        (f"{URL}[response]\noutput = 'x'", "[response]: unknown key 'output'; did you mean output_"),
        (f"{URL}[response]\noutput_text = 'a..b'", "[response] output_text: malformed path 'a..b'; accepted"),
        (f"{URL}[stream]\ndetla = 'x'", "[stream]: unknown key 'detla'; did you mean delta?"),
        (f"{URL}stream = 'ws'", "unknown format 'ws'; known: sse"),
        (f"{URL}body = '{{{{qury}}}}'", "body: unknown placeholder 'qury'; did you mean query"),
        (f"{URL}body = {{ a = '{{{{query' }}", "malformed placeholder at '{{query'"),
        (f"{URL}body = 'plain text'", "body: holds what is not JSON"),
        (f"{URL}body = {{ a = 2020-01-01 }}", "body: holds what is not JSON"),
        (f"{URL}body = {{ a = nan }}", "body: holds what is not JSON"),
        (f"{URL}[headers]\nX = 'a\\n'\nY = 5", "[headers] Y: Y has the wrong type"),
        (f'{URL}[headers]\nX = "a\\nb"', "[headers] X: a value holds ASCII characters alone"),
        (f"{URL}[headers]\n'a b' = 'x'", "[headers] a b: no name of a header"),
        (f"{URL}[headers]\nX = '${{NOT_SET}}'", "the environment variable 'NOT_SET' is not set"),
        ('url = "127.0.0.1/ask"', "url: cannot be used; accepted: http:// or https://"),
        ('url = "http://me:pw@127.0.0.1/"', "url: cannot be used"),
        ('url = "http://127.0.0.1:99999/"', "url: cannot be used"),
        ('url = "http://{{item.host}}/"', "url: a placeholder may stand in path and parameters"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_at_once(tmp_path: Path, text: str, part: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert part in str(caught.value)


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: No such file"):
        read_http_file("nowhere.toml")


def test_a_value_that_no_header_can_hold_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENT_KEY", "marked\nsecret")
    with pytest.raises(ConfigError, match="the value of AGENT_KEY holds characters") as caught:
        read(tmp_path, f"{URL}[headers]\nX = '${{AGENT_KEY}}'")
    assert "marked" not in str(caught.value)


DATA: JsonValue = {"a": [{"b": 1}, {"c": 2}, {"b": [3]}], "key with space": {"x.y": None}, "e": []}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a[0].b", 1),
        ("$.a[-1].b[0]", 3),
        ('["key with space"]["x.y"]', None),
        ("a[*].b", [1, [3]]),
        ("$", DATA),
        ("a[3]", None),
        ("a.b", None),
        ("e[*]", None),
        ("a[*].b[*]", [3]),
    ],
)
def test_a_path_leads_to_a_value_or_nowhere(path: str, found: JsonValue) -> None:
    assert parse_path(path, "x").read(DATA) == found


def test_paths_fill_the_whole_reply(tmp_path: Path) -> None:
    text = f"""{URL}
        [response]
        output_text = "result.parts[*].say"
        tool_calls = "result.calls"
        citations = 'result["the sources"]'
        retrieval_executions = "$.steps[-1].found"
        model = "meta.model"
        input_tokens = "meta.in"
        output_tokens = "meta.out"
    """
    call = {"name": "f", "arguments": {"a": 1}}
    result = {"parts": [{"say": "one"}, {}, {"say": "two"}], "calls": [call], "the sources": ["s"]}
    steps = [{"found": 0}, {"found": [{"queries": ["q"]}]}]
    answer = {
        "result": result,
        "steps": steps,
        "meta": {"model": "m-1", "in": 3, "out": 2},
        "text": "not this",
    }
    reply = read_answer(read(tmp_path, text), json.dumps(answer), 1.0)
    assert (reply.text, reply.model, reply.retrieval_json) == ("one\ntwo", "m-1", '[{"queries":["q"]}]')
    assert json.loads(reply.tool_calls_json or "") == [{"type": "tool_call", **call}]
    assert json.loads(reply.output_items_json or "")[-1]["citations"] == ["s"]
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 2)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"output_text": "a", "answer": "b"}, "a"),
        ({"choices": [{"message": {"content": "c"}}]}, "c"),
        (
            {
                "output": [
                    {
                        "type": "message",
                        "content": [{"type": "output_text", "text": "d"}],
                        "role": "assistant",
                    }
                ]
            },
            "d",
        ),
        ({"response": "x" * 200_000}, "x" * 200_000),
    ],
)
def test_usual_places_of_the_text_need_no_path(tmp_path: Path, answer: Any, text: str) -> None:
    assert read_answer(read(tmp_path, URL), json.dumps(answer), 1.0).text == text


def test_a_named_path_that_leads_nowhere_is_told_with_the_body(tmp_path: Path) -> None:
    text = f'{URL}\n[response]\noutput_text = "data.said"'
    with pytest.raises(CallError) as caught:
        read_answer(read(tmp_path, text), '{"text": "elsewhere"}', 1.0)
    assert caught.value.message == 'no text in the answer (looked for data.said): {"text": "elsewhere"}'


@pytest.mark.parametrize(
    ("toml", "stream", "text"),
    [
        (SSE, b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: {"delta":"b"}\n\n', "ab"),
        (SSE, b'\xef\xbb\xbfdata: {"answer":"a"}\r\r: ping\revent: x\r\rdata:{"answer":" b"}', "a b"),
        (SSE, b"data: two\ndata: lines\n\ndata:  and\n\n", "two\nlines and"),
        (SSE, b'data: {"choices":[{"message":{"content":"whole"}}]}\n\n', "whole"),
        (f'{URL}[stream]\ndelta = "d.t"', b'data:{"d":{"t":"x"}}\n\ndata:{"d":{},"text":"y"}\n\n', "x"),
        (
            f'{SSE}[response]\noutput_text = "f"',
            b'data: {"x":1}\n\ndata: {"f":"z"}\n\ndata: {"x":2}\n\n',
            "z",
        ),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_events_make_the_text_wherever_the_stream_is_cut(
    tmp_path: Path, toml: str, stream: bytes, text: str, size: int
) -> None:
    reader = EventReader()
    pieces = [stream[start : start + size] for start in range(0, len(stream), size)]
    events = [event for piece in pieces for event in reader.feed(piece)] + reader.finish()
    assert read_events(read(tmp_path, toml), events, 1.0).text == text


@pytest.mark.parametrize(
    ("events", "text", "model"),
    [
        (['{"delta":"a"}', '{"model":"m-1"}', '{"model":null}'], "a", "m-1"),
        (['{"delta":"a","model":"m-1"}', '{"model":"m-2"}'], "a", "m-2"),
    ],
)
def test_what_is_no_text_comes_from_the_last_event_that_has_it(
    tmp_path: Path, events: Sequence[str], text: str, model: str
) -> None:
    reply = read_events(read(tmp_path, SSE), events, 1.0)
    assert (reply.text, reply.model) == (text, model)
