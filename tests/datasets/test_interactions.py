"""Rows with messages, query and response arrays, tool calls and tool definitions, unfolded to columns."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import dump_json, parse_json
from assay.datasets.faults import Faults
from assay.datasets.interactions import tool_definitions_text, unfold_definitions, unfold_interactions

if TYPE_CHECKING:
    from pathlib import Path

    from assay.datasets.interactions import Unfolded

Message = dict[str, Any]

NAMES = ("messages", "query", "response", "tool_calls")
SYSTEM: Message = {"role": "system", "content": "You serve customers of Kessalo."}
RULES: Message = {"role": "developer", "content": "Be brief."}
ASK: Message = {"role": "user", "content": "Where is order 17?"}
CALL: Message = {"type": "tool_call", "tool_call_id": "c1", "name": "track", "arguments": {"no": 17}}
CALLING: Message = {"role": "assistant", "content": [CALL]}
TOOL: Message = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "tool_result", "tool_result": 1}]}
SAID: Message = {"role": "assistant", "content": "At the port."}
NONE: list[Message] = []
SILENT: Message = {"role": "assistant", "content": NONE}
SILENT_PARTS: Message = {"role": "assistant", "parts": NONE}
FUNCTION: Message = {"name": "track", "arguments": '{"no": 17}'}
CHAT_CALL: Message = {"id": "c1", "type": "function", "function": FUNCTION}
CHAT_CALLING: Message = {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}
LOOSE_CALL: Message = {"type": "function_call", "call_id": "c1", **FUNCTION}
LOOSE_RESULT: Message = {"type": "function_call_output", "call_id": "c1", "output": 1}
DEFINITION: Message = {"name": "track", "description": "Find.", "parameters": {"type": "object"}}
CHAT_DEFINITION: Message = {"type": "function", "function": DEFINITION}


def unfold(*rows: Message, prefer: str | None = None) -> tuple[Unfolded, list[tuple[int, str]]]:
    faults = Faults("rows.jsonl")
    cells = {name: [row.get(name) for row in rows] for name in NAMES}
    unfolded = unfold_interactions(cells, range(1, len(rows) + 1), faults, prefer)
    return unfolded, [(fault.line, fault.message) for fault in faults.take()]


def unfold_row(row: Message, prefer: str | None = None) -> dict[str, Any]:
    unfolded, faults = unfold(row, prefer=prefer)
    assert faults == []
    texts = (unfolded.messages_json[0], unfolded.output_items_json[0], unfolded.tool_calls_json[0])
    history, output, calls = (text and json.loads(text) for text in texts)
    said = {"query": unfolded.queries[0], "response": unfolded.responses[0]}
    return said | {"history": history, "output": output, "calls": calls}


def expect(
    query: Any, response: Any, history: Any = None, output: Any = None, calls: Any = None
) -> dict[str, Any]:
    return {"query": query, "response": response, "history": history, "output": output, "calls": calls}


def test_messages_are_split_behind_the_last_message_of_the_user() -> None:
    messages = [SYSTEM, RULES, ASK, SAID, ASK, CHAT_CALLING, TOOL, SAID]
    canonical = [SYSTEM, RULES, ASK, SAID, ASK, CALLING, TOOL, SAID]
    assert unfold_row({"messages": messages}) == expect(
        ASK["content"], "At the port.", canonical, canonical[5:], [CALL]
    )


@pytest.mark.parametrize(
    ("answer", "response", "output", "calls"),
    [
        (NONE, None, NONE, None),
        ([CHAT_CALLING], "", [CALLING], [CALL]),
        ([LOOSE_CALL, LOOSE_RESULT], "", [CALLING, TOOL], [CALL]),
        ([TOOL], None, [TOOL], None),
        ([SAID | {"content": ""}], "", [SAID | {"content": ""}], None),
        ([SAID, CALLING, SAID], "At the port.\nAt the port.", [SAID, CALLING, SAID], [CALL]),
        ([SILENT_PARTS], None, [SILENT], None),
    ],
)
def test_an_answer_of_calls_alone_is_empty_text_and_none_is_null(
    answer: list[Message], response: str | None, output: list[Message], calls: Any
) -> None:
    assert unfold_row({"messages": [ASK, *answer]}) == expect(
        ASK["content"], response, [ASK, *output], output or None, calls
    )


def test_messages_without_a_user_are_an_answer_alone() -> None:
    assert unfold_row({"messages": [SYSTEM, SAID]}) == expect(
        None, "At the port.", [SYSTEM, SAID], [SYSTEM, SAID]
    )


def test_query_and_response_may_each_be_messages() -> None:
    texts = (ASK["content"], "At the port.")
    asked, answered = [SYSTEM, RULES, ASK], [LOOSE_CALL, LOOSE_RESULT, SAID]
    output = [CALLING, TOOL, SAID]
    rows = [
        ({"query": asked, "response": answered}, expect(*texts, asked, output, [CALL])),
        ({"query": "plain", "response": answered}, expect("plain", texts[1], None, output, [CALL])),
        ({"query": asked, "response": "plain"}, expect(texts[0], "plain", asked)),
        ({"query": asked}, expect(texts[0], None, asked)),
        ({"query": "plain", "response": [LOOSE_CALL]}, expect("plain", "", None, [CALLING], [CALL])),
    ]
    assert [unfold_row(row) for row, _ in rows] == [expected for _, expected in rows]


@pytest.mark.parametrize(
    "value",
    ["plain", "", 42, True, {"role": "user", "content": "a"}, [], ["a"], [1, None], [[]], [{"role": "user"}],
     [{"name": "Bo", "role": "admin"}], [{"type": "invoice", "total": 3}]],
)  # fmt: skip
def test_other_values_of_query_and_response_stay_as_they_are(value: Any) -> None:
    assert unfold_row({"query": value, "response": value}) == expect(value, value)


@pytest.mark.parametrize(
    "value",
    [[CALL], CALL, json.dumps([CHAT_CALL]), [CHAT_CALL], [LOOSE_CALL], [FUNCTION | {"call_id": "c1"}]],
)
def test_calls_beside_query_and_response_are_taken(value: Any) -> None:
    row = {"query": "q", "tool_calls": value}
    assert unfold_row(row | {"response": "r"}) == expect("q", "r", calls=[CALL])
    assert unfold_row(row) == expect("q", "", calls=[CALL])


def test_calls_of_the_answer_go_before_those_of_the_column() -> None:
    other = CALL | {"name": "find"}
    assert unfold_row({"messages": [ASK, CALLING], "tool_calls": [other]})["calls"] == [CALL]
    assert unfold_row({"messages": [ASK, SAID], "tool_calls": [other]})["calls"] == [other]
    assert [unfold_row({"query": "q", "tool_calls": none})["response"] for none in (NONE, "")] == [None, None]


def test_a_row_with_both_forms_is_refused_unless_one_is_preferred() -> None:
    row = {"messages": [ASK, SAID], "query": "q", "response": "r"}
    faults = unfold({"query": "q"}, row, {"messages": [ASK], "response": "r"})[1]
    end = "; a row holds one of the two forms, --prefer messages or --prefer query chooses"
    assert faults == [
        (2, f"both messages and query and response{end}"),
        (3, f"both messages and response{end}"),
    ]
    history = [ASK, SAID]
    assert unfold_row(row, "messages") == expect(ASK["content"], "At the port.", history, [SAID])
    assert unfold_row(row, "query") == expect("q", "r")


def test_the_form_that_is_not_preferred_is_not_read() -> None:
    assert unfold_row({"messages": 5, "query": "q"}, "query") == expect("q", None)
    odd = [{"role": 5, "content": "a"}, ASK]
    assert unfold_row({"messages": [ASK], "query": odd}, "messages")["query"] == ASK["content"]
    assert unfold_row({"messages": [ASK]}, "query")["query"] == ASK["content"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (
            {"messages": "Hi"},
            "messages is text, expected a list of messages with role and content; --json-column messages",
        ),
        ({"messages": []}, "messages is empty"),
        ({"messages": [ASK, {"text": "a"}]}, "messages[1] has neither role nor type"),
        ({"query": [ASK, "Hi"]}, "query[1] is text, expected an object"),
        ({"response": [SAID, {"role": "assistant", "content": 5}]}, "response[1].content is a number"),
        ({"tool_calls": "track"}, "tool_calls is text that is not JSON"),
        ({"tool_calls": [5]}, "tool_calls[0] is a number, expected an object"),
    ],
)
def test_what_cannot_be_read_is_refused_and_left_as_it_is(row: Message, fault: str) -> None:
    unfolded, faults = unfold({"query": "fine"}, row)
    assert [(line, message[: len(fault)]) for line, message in faults] == [(2, fault)]
    assert unfolded.queries == ["fine", row.get("query")]
    assert unfolded.messages_json == [None, None]
    assert not unfolded.conversions


def test_what_is_nested_too_deeply_for_the_canonical_form_is_refused() -> None:
    deep: Any = parse_json("[" * 250 + "]" * 250)
    rows = [
        {"messages": [ASK, LOOSE_RESULT | {"output": deep}]},
        {"tool_calls": [{"function": {"arguments": '{"a":' * 252 + "{}" + "}" * 252}}]},
    ]
    messages = [message for _, message in unfold(*rows)[1]]
    assert [message[:33] for message in messages] == [
        "messages is nested too deeply, be",
        "tool_calls is nested too deeply, ",
    ]


def test_conversions_are_counted_by_row_with_the_first_line_of_each() -> None:
    unfolded, _ = unfold(
        {"messages": [ASK, SAID]},
        {"messages": [ASK, CHAT_CALLING, CHAT_CALLING]},
        {"query": [ASK], "response": [LOOSE_CALL]},
        {"query": "q", "tool_calls": [CHAT_CALL]},
    )
    assert unfolded.conversions == {
        "chat-completions tool_calls": 2,
        "tool arguments given as text": 3,
        "Responses function_call": 1,
    }
    assert unfolded.first_lines == {
        "chat-completions tool_calls": 2,
        "tool arguments given as text": 2,
        "Responses function_call": 3,
    }


def test_numbers_keep_their_text() -> None:
    text = (
        '[{"role":"user","content":"a","x":1.10},{"role":"assistant","content":"b","y":92233720368547760001}]'
    )
    unfolded, _ = unfold({"messages": parse_json(text)})
    assert unfolded.messages_json == [text]


def test_rows_of_every_kind_keep_their_values(field: Path) -> None:
    rows: list[Any] = [
        parse_json(line) for line in (field / "F011/drift.jsonl").read_text("utf-8").splitlines()
    ]
    unfolded, faults = unfold(*rows)
    assert faults == []
    assert unfolded.queries == ["text", "hi", "text", "text", "text", "text", ""]
    assert unfolded.responses == ["plain", "yo", None, {"answer": "x", "n": 1}, 42, None, True]
    assert unfolded.messages_json == [None, '[{"role":"user","content":"hi"}]', *[None] * 5]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ([DEFINITION], dump_json([DEFINITION])),
        ([CHAT_DEFINITION], dump_json([DEFINITION])),
        (json.dumps([CHAT_DEFINITION]), dump_json([DEFINITION])),
        (CHAT_DEFINITION, dump_json(DEFINITION)),
        (
            [CHAT_DEFINITION | {"x": 1, "function": {"strict": True, **DEFINITION}}],
            dump_json([{**DEFINITION, "x": 1, "strict": True}]),
        ),
        ([{"type": "function", **DEFINITION}], dump_json([{"type": "function", **DEFINITION}])),
        ([5, {"function": "track"}], '[5,{"function":"track"}]'),
    ],
)
def test_tool_definitions_lose_the_wrapping_of_chat_completions(value: Any, text: str | None) -> None:
    assert tool_definitions_text(value) == text


def test_tool_definitions_of_rows_are_counted_or_refused() -> None:
    faults = Faults("rows.jsonl")
    cells: list[Any] = [None, [DEFINITION], json.dumps([CHAT_DEFINITION]), "track", "", [CHAT_DEFINITION]]
    definitions = unfold_definitions(cells, range(1, 7), faults)
    text = dump_json([DEFINITION])
    assert definitions.texts == [None, text, text, None, None, text]
    assert definitions.conversions == {"chat-completions tool definitions": 2}
    assert definitions.first_lines == {"chat-completions tool definitions": 3}
    assert [(fault.line, fault.message[:45]) for fault in faults.take()] == [
        (4, "tool_definitions is text that is not JSON: Ex")
    ]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "type", "content", "parts", "text"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(rows=st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, ANY)), max_size=4))
def test_every_row_is_unfolded_or_refused(rows: list[Message]) -> None:
    unfolded, faults = unfold(*rows)
    refused = {line for line, _ in faults}
    for row, messages in enumerate(unfolded.messages_json):
        held = rows[row].get("messages") is not None
        assert row + 1 in refused or (messages is not None) >= held
        assert messages is None or isinstance(json.loads(messages), list)
