"""Foundry rows: standard names, message arrays, and text columns that hold other JSON."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.config import Reading
from assay.datasets.reader import read_documents
from assay.errors import InputError

if TYPE_CHECKING:
    import polars as pl

USER = {"role": "user", "content": "Where is it?"}
SYSTEM = {"role": "system", "content": "Be brief."}
CALL = {
    "role": "assistant",
    "content": [{"type": "tool_call", "tool_call_id": "c1", "name": "track", "arguments": {"no": 1}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "tool_result", "tool_result": 1}]}
ANSWER = {"role": "assistant", "content": [{"type": "output_text", "text": "On its way."}]}
CHAT_CALL: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}

JSON_OBJECTS = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=6,
)


def _read_text(text: str, **reading: Any) -> pl.DataFrame:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(text.encode())
        return read_documents([str(path)], Reading(**reading))[0].rows


def _read(*rows: dict[str, Any]) -> pl.DataFrame:
    return _read_text("\n".join(map(json.dumps, rows)))


def test_standard_names_and_their_aliases_fill_the_columns() -> None:
    rows = _read(
        {"id": "a", "query": "q1", "response": "r", "ground_truth": "g1", "context": "c"},
        {"testId": "b", "prompt": "q2", "expected_response": "g2", "name": "n", "category": "k"},
        {"test_case_id": "c", "query": "q3", "notes": "x", "tags": ["t", 2]},
    )
    assert rows["id"].to_list() == ["a", "b", "c"]
    assert rows["query"].to_list() == ["q1", "q2", "q3"]
    assert rows["expected_response"].to_list() == ["g1", "g2", None]
    assert rows.select("response", "context", "name", "category", "notes").row(0) == (
        "r",
        "c",
        None,
        None,
        None,
    )
    assert rows["tags"].to_list() == [None, None, ["t", "2"]]
    assert rows["source_line"].to_list() == [1, 2, 3]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('"007"', "007"),
        ("9007199254740993", "9007199254740993"),
        ("92233720368547760001", "92233720368547760001"),
        ("1.10", "1.10"),
        ("true", "true"),
        ('{"answer": "ö", "n": [1, 2.50]}', '{"answer":"ö","n":[1,2.50]}'),
        ("[]", "[]"),
        ('["a"]', '["a"]'),
        ("null", None),
        ('""', ""),
    ],
)
def test_other_json_in_a_text_column_becomes_its_compact_text(source: str, text: str | None) -> None:
    rows = _read_text(f'{{"id": {source}, "response": {source}}}\n{{"id": "x"}}')
    assert rows["response"].to_list() == [text, None]
    assert rows["id"][0] == (text or None)


def test_a_single_tag_is_a_list_of_one() -> None:
    assert _read({"tags": "a"}, {"tags": ["b", None, ""]}, {"tags": []}, {})["tags"].to_list() == [
        ["a"], ["b"], [], None,
    ]  # fmt: skip


def test_messages_split_at_the_last_user_message() -> None:
    row = _read({"messages": [SYSTEM, USER, CALL, RESULT, ANSWER]}).row(0, named=True)
    assert (row["query"], row["response"]) == ("Where is it?", "On its way.")
    assert json.loads(row["messages_json"]) == [SYSTEM, USER, CALL, RESULT, ANSWER]


@pytest.mark.parametrize(
    ("messages", "query", "response"),
    [
        ([USER, ANSWER, {"role": "user", "content": "When?"}], "When?", None),
        ([USER, CALL, RESULT], "Where is it?", ""),  # it answered by calling a tool
        ([USER, CHAT_CALL, {"role": "assistant", "content": ""}], "Where is it?", ""),
        ([USER, {"role": "assistant", "content": "a"}, CALL, ANSWER], "Where is it?", "a\nOn its way."),
        ([ANSWER], None, "On its way."),
        ([USER, {"type": "function_call", "name": "track"}, ANSWER], "Where is it?", "On its way."),
    ],
)
def test_query_and_response_of_messages(
    messages: list[dict[str, Any]], query: str | None, response: str | None
) -> None:
    assert _read({"messages": messages}).select("query", "response").row(0) == (query, response)


def test_query_and_response_may_be_arrays_each() -> None:
    rows = _read(
        {"query": [SYSTEM, USER], "response": [CALL, RESULT, ANSWER]},
        {"query": "plain", "response": [ANSWER, ANSWER]},
        {"query": [SYSTEM, USER], "response": "plain"},
    )
    assert rows["query"].to_list() == ["Where is it?", "plain", "Where is it?"]
    assert rows["response"].to_list() == ["On its way.", "On its way.\nOn its way.", "plain"]
    assert [text and json.loads(text) for text in rows["messages_json"]] == [
        [SYSTEM, USER],
        None,
        [SYSTEM, USER],
    ]


def test_tool_definitions_are_compact_json_and_tool_calls_stay_in_the_item() -> None:
    tools: list[dict[str, Any]] = [{"name": "track", "parameters": {}}]
    rows = _read(
        {"tool_definitions": tools, "tool_calls": [CALL]}, {"tool_definitions": json.dumps(tools)}, {}
    )
    assert rows["tool_definitions_json"].to_list() == ['[{"name":"track","parameters":{}}]'] * 2 + [None]
    assert json.loads(rows["item_json"][0])["tool_calls"] == [CALL]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"messages": [USER], "query": "q"}, "both messages and query; a row holds one of the two forms"),
        ({"messages": [USER], "query": "q", "response": "r"}, "both messages and query and response"),
        ({"messages": "Hi"}, "messages is text, expected a list of messages"),
        ({"messages": ["Hi"]}, r"messages\[0\] is text, expected an object with role and content"),
        ({"messages": []}, "messages is empty"),
        ({"tool_definitions": "track"}, "tool_definitions is text that is not JSON"),
    ],
)
def test_a_row_in_no_form_is_refused_with_its_line(row: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        _read({"query": "fine"}, row)
    assert caught.value.line == 2


def test_null_beside_messages_is_absent() -> None:
    assert _read({"messages": [USER, ANSWER], "query": None})["response"].to_list() == ["On its way."]


def test_a_key_first_seen_late_is_read() -> None:
    rows = _read(*({"id": n} for n in range(30_000)), {"id": "last", "ground_truth": "g"})
    assert rows["expected_response"].null_count() == 30_000
    assert rows["item_index"].to_list() == list(range(30_001))
    assert rows["expected_response"][-1] == "g"


@given(value=JSON_OBJECTS, ascii_only=st.booleans(), separators=st.sampled_from([(",", ":"), (" , ", " : ")]))
def test_any_object_survives_in_item_json_byte_for_byte(
    value: dict[str, Any], ascii_only: bool, separators: tuple[str, str]
) -> None:
    line = json.dumps(
        {f"x{key}": inner for key, inner in value.items()}, ensure_ascii=ascii_only, separators=separators
    )
    rows = _read_text(f'\n  {line}\r\n{{"id": "other"}}\n')
    assert rows["item_json"][0].encode() == line.encode()


@given(value=JSON_OBJECTS)
def test_any_value_in_any_standard_column_is_read_or_refused_by_line(value: dict[str, Any]) -> None:
    names = ["id", "query", "response", "context", "tags", "tool_definitions", "messages", "category"]
    row: dict[str, Any] = dict(zip(names, value.values(), strict=False))
    try:
        outcome = _read(row)["item_json"].to_list()
    except InputError as error:
        outcome = error.line
    assert outcome in ([json.dumps(row)], 1)


def test_files_of_the_field(field: Path) -> None:
    def load(name: str) -> pl.DataFrame:
        return _read_text((field / name).read_text("utf-8"))

    drift = load("F011/drift.jsonl")
    assert drift["response"].to_list() == ["plain", "yo", None, '{"answer":"x","n":1}', "42", None, "true"]
    assert drift["query"].to_list() == ["text", "hi", "text", "text", "text", "text", ""]
    assert load("F016/case_keys.jsonl")["query"].to_list() == ["lower", "lower only"]
    assert load("F009/late_key.jsonl")["expected_response"].null_count() == 100
    assert load("F010/null_then_string.jsonl")["context"].drop_nulls().to_list()[0] == "ctx 2000"
    assert load("F069/dups.jsonl")["id"].to_list() == ["x", "x", None, None, "1", "1", None, None]
    assert load("F024/looks_typed.jsonl")["expected_response"][:2].to_list() == [
        "2024-01-05",
        "2024-01-05T10:00:00Z",
    ]


@pytest.mark.parametrize(("prefer", "query"), [("messages", "Where is it?"), ("query", "q")])
def test_a_row_of_both_forms_is_read_as_preferred(prefer: str, query: str) -> None:
    row = {"messages": [USER, ANSWER], "query": "q", "response": "r"}
    rows = _read_text(json.dumps(row), prefer=prefer)
    assert rows["query"].to_list() == [query]
    assert rows["response"].to_list() == ["On its way." if prefer == "messages" else "r"]
    assert json.loads(rows["item_json"][0]) == row


def test_tool_calls_of_a_row_and_of_its_messages_are_the_same_items() -> None:
    chat = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"no": 1}'}}
    rows = _read(
        {"messages": [USER, CALL, RESULT, ANSWER]},
        {"query": "q", "response": "r", "tool_calls": [chat]},
    )
    calls = [json.loads(text) for text in rows["tool_calls_json"]]
    assert calls[0] == calls[1] == CALL["content"]
    assert [message["role"] for message in json.loads(rows["output_items_json"][0])] == [
        "assistant",
        "tool",
        "assistant",
    ]


def test_seeds_of_both_generations_are_the_same_seed() -> None:
    rows = _read(
        {"id": "a", "test_case_description": "An angry guest.", "desired_num_turns": 4},
        {
            "test_case_id": "b",
            "test_case_category": "mood",
            "test_case_description": "An angry guest.",
            "simulation_configuration": {"desired_num_turns": 4},
        },
        {"id": "c", "query": "q", "desired_num_turns": 4},
    )
    assert rows["seed_json"][0] == rows["seed_json"][1]
    assert json.loads(rows["seed_json"][0])["simulation_configuration"] == {"desired_num_turns": 4}
    assert rows["seed_json"][2] is None
    assert rows["id"].to_list() == ["a", "b", "c"]
    assert rows["category"].to_list() == [None, "mood", None]
