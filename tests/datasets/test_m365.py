"""M365 eval documents: forms, threads, labels, and pointers in errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.documents import parse_uses
from assay.datasets.faults import Faults
from assay.datasets.files import Source
from assay.datasets.m365 import read
from assay.errors import InputError

if TYPE_CHECKING:
    from assay.contracts.documents import Document

FULL = """{
  "schemaVersion": "1.2.0",
  "description": "Expense policy",
  "default_evaluators": {"Relevance": {}, "PartialMatch": {"threshold": 0.60}},
  "items": [
    {"prompt": "Per diem?", "expected_response": "200 EUR", "testId": "EXP-1", "notes": "bug 7",
     "evaluators": {"Citations": {"citation_format": "mixed"}}},
    {
      "name": "Dinner",
      "category": "policy", "tags": ["expense"],
      "turns": [
        { "prompt": "Dinner was 250.", "response": "Too much." },
        {"prompt": "And now?", "context": "Ask a manager.",
         "evaluators": {"ExactMatch": {}}, "evaluators_mode": "replace"}
      ]
    }
  ]
}"""


def _read(text: str) -> Document:
    document, faults = _read_all(text)
    faults.raise_any()
    return document


def _read_all(text: str) -> tuple[Document, Faults]:
    faults = Faults("evals.json", "item")
    return read(Source(Path("evals.json"), "evals.json", text, "sha"), faults), faults


def _item(**fields: Any) -> str:
    return json.dumps({"schemaVersion": "1.6.0", "items": [fields]})


def test_items_and_turns_become_rows() -> None:
    rows = _read(FULL).rows
    assert rows["item_index"].to_list() == [0, 1, 1]
    assert rows["turn"].to_list() == [0, 0, 1]
    assert rows["turn_count"].to_list() == [1, 2, 2]
    assert rows["query"].to_list() == ["Per diem?", "Dinner was 250.", "And now?"]
    assert rows["expected_response"].to_list() == ["200 EUR", None, None]
    assert rows["response"].to_list() == [None, "Too much.", None]
    assert rows["context"].to_list() == [None, None, "Ask a manager."]
    assert rows["source_line"].to_list() == [6, 12, 13]


def test_turns_carry_the_labels_of_their_thread() -> None:
    rows = _read(FULL).rows
    assert rows["id"].to_list() == ["EXP-1", None, None]
    assert rows["name"].to_list() == [None, "Dinner", "Dinner"]
    assert rows["category"].to_list() == [None, "policy", "policy"]
    assert rows["tags"].to_list() == [None, ["expense"], ["expense"]]
    assert rows["notes"].to_list() == ["bug 7", None, None]


def test_item_json_is_the_source_of_the_item_or_of_the_turn_with_its_thread() -> None:
    texts = _read(FULL).rows["item_json"]
    assert texts[0] in FULL
    assert texts[1].startswith('{ "prompt": "Dinner was 250.", "response": "Too much." ,"thread":{')
    turn = json.loads(texts[2])
    assert turn["evaluators_mode"] == "replace"
    assert turn["thread"]["name"] == "Dinner"
    assert "turns" not in turn["thread"]


def test_evaluators_keep_options_place_and_mode() -> None:
    document = _read(FULL)
    assert document.defaults is not None
    assert [(use.evaluator, use.where) for use in document.defaults] == [
        ("Relevance", "default_evaluators.Relevance"),
        ("PartialMatch", "default_evaluators.PartialMatch"),
    ]
    assert getattr(document.defaults[1].options["threshold"], "text", "") == "0.60"
    first, second, third = document.rows["evaluators_json"]
    assert second is None
    assert [use.where for use in parse_uses(first)] == ["items[0].evaluators.Citations"]
    assert [use.where for use in parse_uses(third)] == ["items[1].turns[1].evaluators.ExactMatch"]
    assert document.rows["evaluators_mode"].to_list() == ["extend", "extend", "replace"]


@pytest.mark.parametrize(
    "text",
    [
        '[{"prompt": "a", "expected_response": "b"}]',
        '{"prompts": ["a"], "expected_responses": ["b"]}',
        '{"items": [{"prompt": "a", "expected_response": "b"}]}',
    ],
)
def test_a_document_without_version_is_read_with_a_warning(text: str) -> None:
    document = _read(text)
    assert document.rows.select("query", "expected_response").rows() == [("a", "b")]
    assert json.loads(document.rows["item_json"][0]) == {"prompt": "a", "expected_response": "b"}
    assert document.warnings[0] == "evals.json: no schemaVersion; read as 1.0.0"
    assert document.schema_version == "1.0.0"
    assert document.defaults is None


def test_a_version_silences_the_warning_and_absent_defaults_differ_from_empty_ones() -> None:
    document = _read('{"schemaVersion": "2.0.0", "default_evaluators": {}, "items": [{"prompt": "a"}]}')
    assert document.warnings == ()
    assert document.defaults == ()


def test_prompts_without_answers_are_read() -> None:
    rows = _read('{"prompts": ["a", "b"], "expected_responses": [null, "y"]}').rows
    assert rows["expected_response"].to_list() == [None, "y"]


def test_labels_of_extensions_yield_to_those_of_the_item() -> None:
    extensions = {"testId": "X", "category": "far", "notes": {"a": 1}, "tags": "one", "vendor": [1]}
    row = _read(_item(prompt="p", id=7, category="near", extensions=extensions)).rows.row(0, named=True)
    assert (row["id"], row["category"], row["notes"], row["tags"]) == ("7", "near", None, ["one"])
    other = _read(_item(prompt="p", testId="", extensions=extensions)).rows
    assert other["id"].to_list() == ["X"]


def test_an_id_in_extensions_counts_when_the_item_has_none() -> None:
    rows = _read(_item(prompt="p", extensions={"id": 9, "name": "far"})).rows
    assert rows.select("id", "name").rows() == [("9", "far")]


def test_a_recorded_answer_is_scored_again_and_a_failed_call_has_none() -> None:
    error = {"code": "agentTimeout", "message": "m"}
    turns: list[dict[str, Any]] = [
        {"prompt": "a", "response": "r", "status": "pass", "scores": {}},
        {"prompt": "b", "response": "", "status": "error", "error": error},
        {"prompt": "c", "response": "", "status": "fail"},
        {"prompt": "d", "response": "late", "status": "error"},
    ]
    assert _read(_item(turns=turns)).rows["response"].to_list() == ["r", None, "", "late"]


def test_diagnostics_stay_reachable_in_item_json() -> None:
    diagnostics: dict[str, Any] = {"tool_calls": {"selected_functions": [], "executions": None}}
    row = _read(_item(prompt="p", diagnostics=diagnostics, citations=[{"index": 1}])).rows.row(0, named=True)
    assert json.loads(row["item_json"])["diagnostics"] == diagnostics


def test_recorded_results_stay_in_item_json() -> None:
    recorded: dict[str, Any] = {
        "scores": {"relevance": {"score": 5}},
        "status": "pass",
        "citations": [],
        "error": {},
    }
    row = _read(_item(prompt="p", response="r", allowed_tools=["a"], **recorded)).rows.row(0, named=True)
    assert json.loads(row["item_json"])["scores"] == recorded["scores"]


@pytest.mark.parametrize(
    ("text", "pointer", "message"),
    [
        (_item(prompt="p", turns=[{"prompt": "t"}]), "items[0]", "both prompt and turns"),
        (_item(name="n"), "items[0]", "neither prompt nor turns"),
        (_item(turns=[]), "items[0].turns", "no turns; accepted: 1 to 20"),
        (_item(turns=[{"response": "r"}]), "items[0].turns[0]", "no prompt"),
        (_item(turns=[{"prompt": "t"}, {"prompt": "t", "expected_respnse": "x"}]),
         "items[0].turns[1].expected_respnse", "unknown field; did you mean expected_response"),
        (_item(promt="p"), "items[0].promt", "did you mean prompt"),
        (_item(turns=[{"prompt": "t"}], evaluators={"ExactMatch": {}}),
         "items[0].evaluators", "belongs into a turn"),
        (_item(turns=["t"]), "items[0].turns[0]", "text, expected an object"),
        (_item(turns="t"), "items[0].turns", "text, expected a list"),
        (_item(turns=[{"prompt": "t"}], context="c"), "items[0].context", "belongs into a turn"),
        (_item(turns=[{"prompt": "t", "id": "T"}]), "items[0].turns[0].id", "into the item, beside turns"),
        (_item(turns=[{"prompt": None}]), "items[0].turns[0].prompt", "null, expected text"),
        (_item(turns=[{"prompt": "t", "evaluators_mode": "replace"}]),
         "items[0].turns[0].evaluators_mode", "replace without evaluators"),
        (_item(prompt=5), "items[0].prompt", "a number, expected text"),
        (_item(prompt=""), "items[0].prompt", "empty"),
        (_item(prompt="p", context=None), "items[0].context", "null, expected text"),
        (_item(prompt="p", category=[1]), "items[0].category", "a list, expected text"),
        (_item(prompt="p", extensions=[]), "items[0].extensions", "a list, expected an object"),
        (_item(prompt="p", evaluators=["ExactMatch"]), "items[0].evaluators", "expected an object"),
        (_item(prompt="p", evaluators={"ExactMatch": True}), "items[0].evaluators.ExactMatch", "a boolean"),
        (_item(prompt="p", evaluators={"A": {}}, evaluators_mode="merge"),
         "items[0].evaluators_mode", '"merge"; accepted: extend, replace'),
        (_item(prompt="p", evaluators={}, evaluators_mode="replace"),
         "items[0].evaluators_mode", "replace without evaluators"),
        ('{"schemaVersion": "1.0.0", "default_evaluators": [], "items": []}', "default_evaluators", "a list"),
        ('{"schemaVersion": "1.0.0", "items": {"prompt": "p"}}', "items", "an object, expected a list"),
        ('{"schemaVersion": "1.0.0", "itms": []}', "", "no items; found: schemaVersion, itms"),
        ('{"prompts": ["a"], "expected_responses": ["b", "c"]}', "prompts", "1 prompts, but 2"),
        ('{"prompts": "a"}', "prompts", "text, expected a list"),
        ('{"prompts": ["a", 5]}', "prompts[1]", "a number, expected text"),
        ('{"prompts": ["a", ""]}', "prompts[1]", "empty"),
        ('{"prompts": ["a"], "expected_responses": [5]}', "expected_responses[0]", "expected text or null"),
        ('"text"', "", "text, expected an object with items"),
    ],
)  # fmt: skip
def test_a_document_that_breaks_the_schema_is_refused_with_a_pointer(
    text: str, pointer: str, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        _read(text)
    assert caught.value.pointer == pointer
    assert message in caught.value.message
    assert caught.value.line == 1
    assert caught.value.column is not None


def test_every_bad_item_is_named_and_the_others_are_read() -> None:
    items: list[Any] = [{"prompt": "a"}, {"prompt": 5}, "b", {"prompt": "c", "turns": []}, {"prompt": "d"}]
    text = json.dumps({"schemaVersion": "1.6.0", "items": items}, indent=1)
    document, faults = _read_all(text)
    assert document.rows["item_index"].to_list() == [0, 4]
    assert [(f.row, f.line, f.column, f.pointer) for f in faults.take()] == [
        (1, 8, 14, "items[1].prompt"),
        (2, 10, 3, "items[2]"),
        (3, 11, 3, "items[3]"),
    ]
    with pytest.raises(InputError, match="3 bad items"):
        faults.raise_any()


def test_a_bad_item_is_kept_as_it_was_written() -> None:
    item = '{ "prompt": 1.50, "x\\u0041": "\\u00e4" }'
    assert [f.text for f in _read_all(f'{{"schemaVersion": "1.6.0", "items": [{item}]}}')[1].take()] == [item]
    pair = _read_all('{"prompts": ["a"], "expected_responses": [7]}')[1].take()
    assert [f.text for f in pair] == ['{"prompt":"a","expected_response":7}']


def test_values_of_a_thread_survive_byte_for_byte_beside_each_turn() -> None:
    thread = '"extensions": {"price": 1.50, "name": "\\u00e4", "big": 12345678901234567890123}'
    text = f'{{"schemaVersion": "1.6.0", "items": [{{{thread}, "turns": [{{"prompt": "a"}}]}}]}}'
    assert thread.replace(": {", ":{", 1) in _read(text).rows["item_json"][0]


def test_a_turn_cannot_hide_its_thread() -> None:
    text = '{"items": [{"name": "n", "turns": [{"prompt": "a", "thread": 1}]}]}'
    with pytest.raises(InputError, match="rename it") as caught:
        _read(text)
    assert caught.value.pointer == "items[0].turns[0].thread"


def test_documents_of_the_field_are_refused_at_the_right_place(field: Path) -> None:
    places: dict[str, str] = {}
    for path in (field / "F025").glob("*.json"):
        try:
            _read(path.read_text("utf-8"))
        except InputError as error:
            places[path.stem] = f"{error.line} {error.pointer}"
    assert places == {
        "both_prompt_and_turns": "4 items[0]",
        "empty_turns": "6 items[0].turns",
        "typo_in_turn": "13 items[0].turns[1].expected_respnse",
        "wrong_type": "5 items[0].prompt",
    }


def test_a_misspelt_evaluator_of_the_field_is_handed_on_with_its_place(field: Path) -> None:
    defaults = _read((field / "F025" / "typo_evaluator.json").read_text("utf-8")).defaults or ()
    assert [(use.evaluator, use.where) for use in defaults] == [("Relevence", "default_evaluators.Relevence")]


def test_modes_of_the_field_are_refused_or_kept(field: Path) -> None:
    document, faults = _read_all((field / "F089" / "replace_empty.json").read_text("utf-8"))
    assert [(fault.pointer, fault.message.split(";")[0]) for fault in faults.take()] == [
        ("items[0].evaluators_mode", "replace without evaluators would score nothing"),
        ("items[2].evaluators_mode", '"merge"'),
    ]
    rows = document.rows.select("item_index", "turn", "evaluators_mode", "evaluators_json").rows()
    named = [(*row, [use.evaluator for use in parse_uses(uses or "[]")]) for *row, uses in rows]
    assert named == [
        (1, 0, "extend", ["ExactMatch"]),
        (3, 0, "extend", []),
        (3, 1, "replace", ["PartialMatch"]),
    ]
    assert [use.evaluator for use in document.defaults or ()] == ["Relevance", "ExactMatch"]


def test_a_document_of_the_field_without_evaluators_names_none(field: Path) -> None:
    document = _read((field / "F089" / "no_evaluators.json").read_text("utf-8"))
    assert (document.defaults, document.rows["evaluators_json"].to_list()) == (None, [None])


ITEMS = st.lists(
    st.fixed_dictionaries(
        {}, optional={key: st.sampled_from(["", "a", 5, None]) for key in ("prompt", "response")}
    )
    | st.fixed_dictionaries({"turns": st.lists(st.just({"prompt": "t"}), max_size=3)})
    | st.integers(),
    max_size=8,
)


@given(ITEMS)
def test_an_item_is_read_or_refused_and_nothing_vanishes(items: list[Any]) -> None:
    document, faults = _read_all(json.dumps({"schemaVersion": "1.6.0", "items": items}))
    read_items = set(document.rows["item_index"])
    assert read_items | faults.rows == set(range(len(items)))
    assert not read_items & faults.rows
    assert document.rows.height == sum(len(items[n].get("turns", [0])) for n in read_items)


@given(
    st.dictionaries(st.text(max_size=6), st.text(max_size=6) | st.lists(st.integers()), max_size=4),
    st.integers(0, 1),
)
def test_items_are_found_wherever_they_stand(others: dict[str, Any], order: int) -> None:
    items = {"schemaVersion": "1.6.0", "items": [{"prompt": "a"}, {"turns": [{"prompt": "b"}]}]}
    free = {f"x{key}": value for key, value in others.items()}
    text = json.dumps({**items, **free} if order else {**free, **items}, indent=1)
    rows = _read(text).rows
    assert rows["item_json"].to_list() == [
        '{\n   "prompt": "a"\n  }',
        '{\n     "prompt": "b"\n    ,"thread":{}}',
    ]
    line = text[: text.index('"items": [')].count("\n") + 2
    assert rows["source_line"].to_list() == [line, line + 5]


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_text_is_read_as_it_is(prompt: str, answer: str) -> None:
    row = _read(_item(prompt=f"p{prompt}", expected_response=answer)).rows.row(0, named=True)
    assert (row["query"], row["expected_response"]) == (f"p{prompt}", answer)
