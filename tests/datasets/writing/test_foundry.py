"""JSON lines written: rows as they were, documents as rows, and what a row has no place for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import JsonValue, Number, dump_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.datasets.writing.conftest import Workshop

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"', "a\nb", "a\r\nb", "\u2028", "😀", "\0", "=1+1", '{"a":1}', " "]
)
NUMBERS = st.integers() | st.sampled_from(["1.50", "-0.0", "1E400", "0.1e-7"]).map(Number)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SPOKEN = st.text("ab \n", min_size=1, max_size=4)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": SPOKEN}),
    min_size=1,
    max_size=4,
)
FREE = st.sampled_from(["language", "meta", "Ünïcode", "a,b", "", "extensions", "evaluators", "turns"])
LABELS = st.fixed_dictionaries(
    {},
    optional={
        "id": TEXTS,
        "testId": TEXTS,
        "name": TEXTS | st.none(),
        "category": TEXTS,
        "notes": VALUES,
        "tags": st.lists(TEXTS, max_size=2) | TEXTS | st.none(),
        "ground_truth": VALUES,
        "expected_response": TEXTS,
        "context": VALUES,
        "tool_definitions": st.lists(st.fixed_dictionaries({"name": SPOKEN}), max_size=2),
    },
)
ASKED = st.fixed_dictionaries({}, optional={"query": TEXTS | st.none(), "prompt": TEXTS, "response": VALUES})
TOLD = st.fixed_dictionaries({"messages": MESSAGES})
ROWS = st.lists(
    st.tuples(ASKED | TOLD, LABELS, st.dictionaries(FREE, VALUES, max_size=3)).map(
        lambda parts: parts[2] | parts[1] | parts[0]
    ),
    min_size=1,
    max_size=4,
)
RENAMED = {"prompt": "query", "expected_response": "ground_truth", "testId": "id"}


def _rename(row: dict[str, Any]) -> dict[str, Any]:
    return {name if (name := RENAMED.get(key, key)) not in row else key: row[key] for key in row}


@given(rows=ROWS)
def test_rows_come_back_as_they_were_under_the_standard_names(
    workshop: Any, list_rows: Any, rows: list[dict[str, Any]]
) -> None:
    with workshop() as shop:
        written = shop.convert(shop.put("rows.jsonl", rows), "foundry")
        before, after = list_rows(written.before), list_rows(written.after)
        assert [row | {"item_json": ""} for row in after] == [row | {"item_json": ""} for row in before]
        assert [row["item_json"] for row in after] == [dump_json(_rename(row)) for row in rows]
        assert written.account == {}


def test_a_row_with_standard_names_is_written_byte_for_byte(bench: Workshop) -> None:
    text = '{ "query" : "\\u00e9", "n": 1.10,"x":{"b":1e5, "a":null}}\n'
    assert bench.convert(bench.put("rows.jsonl", text), "foundry").text == text


def test_members_over_several_lines_become_one_line(bench: Workshop) -> None:
    path = bench.put("one.json", '[{"prompt": "q",\n "extensions": {"n": 1.50}}]')
    assert bench.convert(path, "foundry").text == '{"query":"q","n":1.50}\n'


def test_texts_that_hold_json_by_their_name_are_opened(bench: Workshop) -> None:
    path = bench.put("rows.csv", 'id,messages\n1,"[{""role"":""user"",""content"":""hi""}]"\n')
    written = bench.convert(path, "foundry")
    assert json.loads(written.text) == {"id": "1", "messages": [{"role": "user", "content": "hi"}]}
    assert written.after.rows["query"].to_list() == ["hi"]


ITEM: dict[str, Any] = {
    "prompt": "When is my order due?",
    "expected_response": "Friday",
    "context": "Orders leave on Monday.",
    "response": "On Friday.",
    "testId": "A-1",
    "scores": {"exactMatch": {"match": False, "result": "fail"}},
    "evaluators": {"ExactMatch": {}},
    "extensions": {"category": "orders", "owner": "Mia", "query": "not one", "name": "Due"},
}


def _document(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"schemaVersion": "1.11.0", **fields, "items": list(items)}


def test_an_item_of_a_document_gets_the_standard_names_and_keeps_the_rest(bench: Workshop) -> None:
    document = _document(ITEM, description="d", default_evaluators={"PartialMatch": {}})
    written = bench.convert(bench.put("doc.json", document), "foundry")
    assert json.loads(written.text) == {
        "id": "A-1",
        "name": "Due",
        "category": "orders",
        "query": "When is my order due?",
        "response": "On Friday.",
        "ground_truth": "Friday",
        "context": "Orders leave on Monday.",
        "scores": {"exactMatch": {"match": False, "result": "fail"}},
        "evaluators": {"ExactMatch": {}},
        "owner": "Mia",
        "extensions": {"query": "not one"},
    }
    assert written.account == {
        "evaluator PartialMatch of the file": 1,
        "description of the file": 1,
        "evaluators of items": 1,
    }


def test_the_empty_answer_of_a_failed_call_is_no_answer(bench: Workshop) -> None:
    failure = {"status": "error", "error": {"code": "x", "message": "m"}}
    item = {"prompt": "q", "response": "", **failure}
    written = bench.convert(bench.put("doc.json", _document(item)), "foundry")
    assert json.loads(written.text) == {"query": "q", **failure}
    assert written.after.rows["response"].to_list() == [None]


THREAD: dict[str, Any] = {
    "name": "Returns",
    "tags": ["x"],
    "turns": [
        {"prompt": "Can I return it?", "response": "Yes.", "expected_response": "yes"},
        {"prompt": "Until when?", "expected_response": "30 days", "context": "c"},
    ],
}


def test_a_conversation_becomes_messages_and_hidden_fields_are_named(bench: Workshop) -> None:
    written = bench.convert(bench.put("doc.json", _document(THREAD)), "foundry")
    assert json.loads(written.text) == {
        "name": "Returns",
        "tags": ["x"],
        "ground_truth": "30 days",
        "context": "c",
        "messages": [
            {"role": "user", "content": "Can I return it?"},
            {"role": "assistant", "content": "Yes."},
            {"role": "user", "content": "Until when?"},
        ],
        "turns": THREAD["turns"],
    }
    assert written.account == {"expected_response of turns": 1}
    assert written.after.rows["query"].to_list() == ["Until when?"]


def test_a_conversation_that_lacks_an_answer_is_left_out_and_named(bench: Workshop) -> None:
    silent = {"name": "No", "turns": [{"prompt": "a"}, {"prompt": "b", "response": "c"}]}
    written = bench.convert(bench.put("doc.json", _document(silent, ITEM)), "foundry")
    assert written.account == {"conversation without all its answers": 1, "evaluators of items": 1}
    assert [loss.first for loss in written.losses] == ["line 1", "A-1"]
    assert written.after.rows.height == 1


def test_a_thread_of_one_turn_is_a_row(bench: Workshop) -> None:
    thread = {"name": "One", "turns": [{"prompt": "a", "response": "b", "tags": ["t"]}], "tags": ["s"]}
    written = bench.convert(bench.put("doc.json", _document(thread)), "foundry")
    assert json.loads(written.text) == {
        "name": "One",
        "tags": ["s"],
        "query": "a",
        "response": "b",
        "turns": [{"prompt": "a", "response": "b", "tags": ["t"]}],
    }
    assert written.account == {"tags of turns": 1}


def test_an_evaluation_keeps_inputs_and_criteria(bench: Workshop) -> None:
    evaluation = {
        "id": "e",
        "name": "n",
        "inputs": {"a": Number("1.50")},
        "expectedOutput": {"b": 2},
        "evaluationCriterias": {},
        "context": "c",
    }
    path = bench.put("evaluations/eval-sets/set.json", {"version": "1.0", "evaluations": [evaluation]})
    written = bench.convert(path, "foundry")
    assert written.text == (
        '{"id":"e","name":"n","query":"{\\"a\\":1.50}","ground_truth":"{\\"b\\":2}","context":"c",'
        '"inputs":{"a":1.50},"expectedOutput":{"b":2},"evaluationCriterias":{}}\n'
    )


def _leaves(value: JsonValue) -> Iterator[str]:
    """Every scalar of a value but nulls, as it is spelt."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _leaves(member)
    elif value is not None:
        yield dump_json(value)


@pytest.mark.parametrize("form", ["m365", "uipath"])
@given(rows=ROWS)
def test_nothing_of_a_row_vanishes_unsaid(workshop: Any, form: str, rows: list[dict[str, Any]]) -> None:
    with workshop() as shop:
        first: dict[str, Any] = {"query": "q", "inputs": {"a": "b"}, "extensions": {"c": "d"}, "id": 7}
        written = shop.convert(shop.put("rows.jsonl", [first, *rows]), form)
        (path,) = written.out.rglob("eval-sets/*.json") if form == "uipath" else [written.out]
        text = path.read_bytes().decode()
        missing = set(_leaves([first, *rows])) - set(_leaves(parse_json(text)))
        missing -= {'"user"', '"assistant"'}  # a thread needs no roles
        # An id may have been a number, a label a list: their texts are there, or their JSON in a text.
        lost = [leaf for leaf in missing if leaf.strip('"') not in text and dump_json(leaf)[1:-1] not in text]
        assert written.losses.gone or lost == []
