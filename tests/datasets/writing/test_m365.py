"""Eval documents written: valid under the published schema, with everything else in extensions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import JsonValue, Number, dump_json, parse_json
from assay.datasets.m365_schema import find_deviations
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.datasets.writing.conftest import Workshop

SHARED = Path(__file__).parents[4] / "shared" / "schemas" / "m365"
SCHEMA = SHARED / "eval-document.1.11.0.schema.json"
DATA = Path(__file__).parents[3] / "data"

ODD = st.sampled_from(["\u2028", "\r\n", "😀"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | ODD
NUMBERS = st.integers() | st.sampled_from(["1.50", "-0.0", "1E400"]).map(Number)
VALUES: st.SearchStrategy[Any] = st.one_of(
    st.none() | NUMBERS | TEXTS,
    st.lists(NUMBERS | TEXTS, max_size=2),
    st.dictionaries(TEXTS, NUMBERS, max_size=2),
)
NAMES = st.sampled_from(["Relevance", "PartialMatch", "Own_1"])
EVALUATORS = st.dictionaries(NAMES, st.fixed_dictionaries({}, optional={"threshold": st.just(1)}), max_size=2)
KEYS = st.sampled_from(["testId", "id", "name", "category", "query", "owner", "thread"])
EXTENSIONS = st.dictionaries(KEYS, VALUES, max_size=2)
LABELS = dict.fromkeys(("testId", "id", "category", "notes", "name", "description"), TEXTS)
TURN = st.fixed_dictionaries(
    {"prompt": TEXTS.filter(bool)},
    optional={
        "response": TEXTS,
        "expected_response": TEXTS,
        "context": TEXTS,
        "evaluators": EVALUATORS,
        "tags": st.lists(TEXTS, max_size=2),
        "extensions": EXTENSIONS,
        "allowed_tools": st.lists(st.just("plugin_tool"), max_size=1),
    },
)
THREAD = st.fixed_dictionaries(
    {"turns": st.lists(TURN, min_size=1, max_size=2)},
    optional={"tags": st.lists(TEXTS, max_size=2), "extensions": EXTENSIONS, "conversation_id": TEXTS},
)
LABELLED = st.fixed_dictionaries({}, optional=LABELS)
ITEMS = st.tuples(TURN | THREAD, LABELLED).map(lambda pair: pair[0] | pair[1])
ROOTS = st.fixed_dictionaries(
    {"schemaVersion": st.just("1.8.0"), "items": st.lists(ITEMS, min_size=1, max_size=2)},
    optional={"default_evaluators": EVALUATORS, "metadata": st.just({"owner": "Mia"}), "own": VALUES},
)


def _leaves(value: JsonValue) -> Iterator[str]:
    """Every scalar of a value but nulls, as it is spelt."""
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            yield from _leaves(member)
    elif value is not None:
        yield dump_json(value)


@given(root=ROOTS)
def test_a_document_comes_back_with_the_same_rows(workshop: Any, list_rows: Any, root: Any) -> None:
    with workshop() as shop:
        written = shop.convert(shop.put("doc.json", root), "m365")
        before, after = list_rows(written.before), list_rows(written.after)
        assert [row | {"item_json": ""} for row in after] == [row | {"item_json": ""} for row in before]
        assert written.after.defaults == written.before.defaults
        document = parse_json(written.text)
        assert find_deviations(document) == []
        assert isinstance(document, dict)
        assert all(document[key] == root[key] for key in ("metadata", "own") if key in root)


@pytest.mark.parametrize("form", ["m365", "foundry", "uipath"])
@given(root=ROOTS)
def test_nothing_of_an_item_vanishes_unsaid(workshop: Any, form: str, root: dict[str, Any]) -> None:
    with workshop() as shop:
        written = shop.convert(shop.put("doc.json", root), form)
        (path,) = written.out.rglob("eval-sets/*.json") if form == "uipath" else [written.out]
        text = path.read_bytes().decode()
        lines = text.removesuffix("\n").split("\n") if form == "foundry" else [text]
        there = set(_leaves([parse_json(line) for line in lines if line]))
        missing = set(_leaves(root["items"])) - there - {'""'}
        # A number under an id is the text of it, and an empty id is none.
        assert written.losses.gone or [leaf for leaf in missing if f'"{leaf}"' not in there] == []


def _items(written: Any) -> Any:
    return json.loads(written.text)["items"]


def test_the_fields_of_a_row_that_have_no_place_stand_in_extensions(bench: Workshop) -> None:
    row = {
        "id": 7,
        "query": "q",
        "ground_truth": "g",
        "context": ["a", "b"],
        "response": None,
        "category": "c",
        "tags": ["x"],
        "priority": Number("1.50"),
        "tool_definitions": [{"name": "f"}],
    }
    written = bench.convert(bench.put("rows.jsonl", [row]), "m365")
    aside = {"context": ["a", "b"], "priority": 1.5, "tool_definitions": [{"name": "f"}]}
    assert _items(written) == [
        {
            "prompt": "q",
            "expected_response": "g",
            "context": '["a","b"]',
            "tags": ["x"],
            "extensions": {"testId": "7", "category": "c", **aside},
        }
    ]
    assert '"priority": 1.50' in written.text
    assert written.account == {"(context)": 1, "(priority)": 1, "(tool_definitions)": 1}
    assert written.after.rows.select("id", "category").row(0) == ("7", "c")


def _said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_questions_and_answers_in_turn_become_a_thread(bench: Workshop) -> None:
    messages = [_said("user", "a"), _said("assistant", "b"), _said("user", "c")]
    row = {"id": "m", "messages": messages, "ground_truth": "d", "context": "e"}
    written = bench.convert(bench.put("rows.jsonl", [row]), "m365")
    turns = [{"prompt": "a", "response": "b"}, {"prompt": "c", "expected_response": "d", "context": "e"}]
    assert _items(written) == [{"turns": turns, "extensions": {"testId": "m"}}]
    assert written.account == {}


@pytest.mark.parametrize(
    "messages",
    [
        [_said("system", "s"), _said("user", "q")],
        [_said("user", "p"), _said("user", "q")],
        [_said("user", "q"), _said("assistant", [{"type": "tool_call", "name": "f", "arguments": {}}])],
        [message for _ in range(20) for message in (_said("user", "p"), _said("assistant", "r"))]
        + [_said("user", "q")],
    ],
)
def test_messages_that_say_more_stay_as_they_are(bench: Workshop, messages: list[Any]) -> None:
    written = bench.convert(bench.put("rows.jsonl", [{"messages": messages}]), "m365")
    (item,) = _items(written)
    assert (item["prompt"], item["extensions"]) == ("q", {"messages": messages})
    assert written.account == {"(messages)": 1}


def test_an_item_that_asks_nothing_is_left_out_and_named(bench: Workshop) -> None:
    rows = [{"id": "a", "query": ""}, {"id": "b", "response": "r"}, {"query": "q"}]
    written = bench.convert(bench.put("rows.jsonl", rows), "m365")
    assert (_items(written), written.account) == ([{"prompt": "q"}], {"item without a question": 2})


def test_a_document_needs_an_item(bench: Workshop) -> None:
    with pytest.raises(InputError, match="no item that an M365 document can hold"):
        bench.convert(bench.put("rows.jsonl", [{"id": "a"}]), "m365")


def test_a_document_without_a_version_gets_one_and_keeps_its_items(bench: Workshop) -> None:
    item = {"prompt": "q", "owner": "Mia", "testId": "", "id": "B", "extensions": {"testId": "A"}}
    written = bench.convert(bench.put("doc.json", [item]), "m365")
    assert _items(written) == [{"prompt": "q", "extensions": {"owner": "Mia", "testId": "", "id": "B"}}]
    assert written.losses.gone[0].field == "extensions.testId"
    assert written.after.rows["id"].to_list() == ["B"]


def test_a_label_of_the_item_replaces_that_of_extensions_and_says_so(bench: Workshop) -> None:
    item = {"prompt": "q", "notes": "new", "extensions": {"notes": "old"}}
    document = {"schemaVersion": "1.11.0", "items": [item]}
    written = bench.convert(bench.put("doc.json", document), "m365")
    assert _items(written) == [{"prompt": "q", "extensions": {"notes": "new"}}]
    assert written.account == {"extensions.notes": 1, "(notes)": 1}


def test_an_exact_match_of_a_uipath_project_becomes_one_of_a_document(bench: Workshop) -> None:
    written = bench.convert(DATA / "uipath" / "refund-agent", "m365")
    document = json.loads(written.text)
    assert document["default_evaluators"] == {"ExactMatch": {"case_sensitive": True}}
    assert document["name"] == "Refund decisions"
    assert written.losses.gone == []


def test_evaluators_without_a_counterpart_are_named(bench: Workshop) -> None:
    written = bench.convert(DATA / "uipath" / "ticket-agent", "m365")
    assert [loss.field for loss in written.losses.gone] == [
        "evaluator ExactMatch route",
        "evaluator Mentions reference",
        "evaluator Whole output",
    ]


SOURCES = (
    "m365/support-desk.json",
    "m365/knowledge.json",
    "foundry/support.jsonl",
    "foundry/conversations.jsonl",
    "csv/faq.csv",
    "uipath/ticket-agent",
    "uipath/refund-agent",
)


@pytest.mark.parametrize("source", SOURCES)
def test_every_sample_becomes_a_valid_document(bench: Workshop, source: str) -> None:
    document = json.loads(bench.convert(DATA / source, "m365").text)
    assert find_deviations(document) == []
    jsonschema = pytest.importorskip("jsonschema")
    if SCHEMA.is_file():
        schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
        assert list(jsonschema.Draft202012Validator(schema).iter_errors(document)) == []


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared is not there")
def test_every_published_example_stays_as_it_is(bench: Workshop) -> None:
    for path in sorted((SHARED / "examples" / "valid").glob("*.json")):
        written = bench.convert(path, "m365", name=path.stem)
        before = json.loads(path.read_text(encoding="utf-8"))
        assert json.loads(written.text) == before | {"schemaVersion": "1.11.0"}
        assert written.account == {}
