"""Whatever a server answers with status 200 is a reply or a failure of the row, never a crash."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.chat.answers import list_filtered, mend_text, parse_body
from assay.chat.completions import read_completion
from assay.chat.embeddings import read_embeddings
from assay.chat.failures import FailedCallError
from assay.chat.responses import read_response
from assay.chat.streaming import join_chunks, join_response, split_events
from assay.contracts.json_text import parse_json
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.contracts.chat import ChatReply

NAMES = """
choices message delta content refusal tool_calls function arguments name id index finish_reason usage x_groq
prompt_tokens prompt_tokens_details model error code status type text output item response summary reason
incomplete_details call_id data embedding
"""
WORDS = """
message reasoning function_call web_search_call response.completed response.output_item.done error failed
completed incomplete content_filter stop length text output_text refusal 429 {} \ud83d
"""
LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(WORDS.split()), st.text(max_size=5)
)


def nest(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=6)


OBJECTS: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(NAMES.split()), st.recursive(LEAVES, nest, max_leaves=12), max_size=8
)


def read_all(body: bytes) -> list[ChatReply]:
    """Read a body in every way there is and return what came of it."""
    ways: list[Callable[[dict[str, Any]], ChatReply]] = [
        lambda answer: read_completion(answer, "m", 1.0),
        lambda answer: read_response(answer, "m", 1.0),
        lambda answer: read_completion(join_chunks([answer, answer]), "m", 1.0),
        lambda answer: read_response(join_response([answer, answer]), "m", 1.0),
        lambda answer: read_embeddings(answer, 1, "m", 1.0)[0],
    ]
    replies: list[ChatReply] = []
    for read in ways:
        try:
            replies.append(read(parse_body(body)))
        except (CallError, FailedCallError) as error:
            kept = error.failure.reply if isinstance(error, FailedCallError) else error.reply
            replies += [kept] if kept else []
    return replies


@given(OBJECTS)
def test_any_object_is_read_or_refused(answer: dict[str, Any]) -> None:
    for reply in read_all(json.dumps(answer).encode()):
        stored = (
            reply.text,
            reply.model,
            reply.finish_reason,
            reply.tool_calls_json,
            reply.output_items_json,
        )
        assert all(mend_text(text) == text for text in stored if text is not None)
        for text in (reply.tool_calls_json, reply.output_items_json):
            assert text is None or isinstance(parse_json(text), list)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    read_all(body)
    split_events(body)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "html_body"),
        (b"<p>", "html_body"),
        (b"[1]", "no_choices"),
        (b'{"output":' + b"[" * 400 + b"]" * 400 + b"}", "unparseable"),
        (b'{"output":' + b"[" * 9000 + b"]" * 9000 + b"}", "html_body"),
    ],
)
def test_a_body_that_is_no_answer_has_a_name(body: bytes, code: str) -> None:
    with pytest.raises(CallError) as caught:
        parse_body(body)
    assert caught.value.code == code


def test_what_other_writers_leave_behind_is_read() -> None:
    body = '\ufeff{"a":NaN,"b":1e999,"c":"\\ud83d"}'.encode()
    assert str(parse_body(body)["a"]) == "None"
    assert parse_body(body)["b"] == float("inf")


def test_filtered_categories_are_found_at_any_depth() -> None:
    violence: Any = {"y": {"violence": {"filtered": True, "severity": "high"}}}
    answer: Any = {"x": [{"hate": {"filtered": True}}, violence], "sexual": {"filtered": False}}
    assert list_filtered(answer) == " (filtered: hate, violence)"
    assert list_filtered({"sexual": {"filtered": False}}) == ""
