from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from assay.contracts.tables import ROWS, conform
from assay.errors import ConfigError
from transforms.items import Items, build_items
from transforms.templates import parse_template


def document(*sources: dict[str, Any], file: str = "a.jsonl") -> pl.DataFrame:
    records = [
        {
            "item_index": n,
            "turn": 0,
            "turn_count": 1,
            "source_file": file,
            "source_line": n + 1,
            "item_json": json.dumps(source),
            "evaluators_mode": "extend",
            **{key: value for key, value in source.items() if key in ROWS.columns},
        }
        for n, source in enumerate(sources)
    ]
    return conform(pl.DataFrame(records, schema_overrides={"query": pl.String}), ROWS)


def build(*documents: pl.DataFrame) -> Items:
    return build_items(documents, {})


def shas(**task: Any) -> str:
    return build(document({"query": "q", **task})).table["item_sha"][0]


def test_an_item_without_id_is_named_by_its_task_whatever_its_place() -> None:
    first = build(document({"query": "a"}, {"query": "b"})).table
    second = build(document({"query": "b"}, {"query": "a"})).table
    assert first["item_id"].to_list() == second["item_id"].to_list()[::-1]
    assert first["item_id"].to_list() == [sha[:16] for sha in first["item_sha"]]


def test_an_empty_id_is_no_id() -> None:
    assert build(document({"id": "", "query": "a"})).table["item_id"][0] != ""


def test_a_changed_answer_or_label_is_the_same_task() -> None:
    assert shas() == shas(response="x", name="n", category="c", notes="m", tags=["t"])


@pytest.mark.parametrize("field", ["query", "expected_response", "context", "tool_definitions_json"])
def test_a_changed_task_is_another_task(field: str) -> None:
    assert shas() != shas(**{field: "other"})


def test_messages_after_the_last_question_are_not_the_task() -> None:
    question = {"role": "user", "content": "q"}
    alone = json.dumps([question])
    answered = json.dumps([question, {"role": "assistant", "content": "a"}])
    assert shas(messages_json=alone) == shas(messages_json=answered)


def test_the_same_id_for_two_tasks_is_refused_and_both_places_are_named() -> None:
    with pytest.raises(ConfigError, match=r"'x' stands for two different items: a.jsonl:1 and b.jsonl:1"):
        build(document({"id": "x", "query": "q1"}), document({"id": "x", "query": "q2"}, file="b.jsonl"))


def test_the_same_item_twice_is_numbered_with_a_warning() -> None:
    items = build(document({"id": "x", "query": "q"}, {"id": "x", "query": "q"}))
    assert items.table["item_id"].to_list() == ["x", "x-2"]
    assert "a.jsonl:2" in items.warnings[0]


def test_a_number_given_to_a_repeat_never_hides_an_item() -> None:
    same = {"id": "x", "query": "q"}
    with pytest.raises(ConfigError, match="'x-2' is taken twice"):
        build(document(same, same, {"id": "x-2", "query": "q"}))


def test_turns_of_a_conversation_share_id_and_hash() -> None:
    rows = document({"id": "t", "query": "one"}, {"id": "t", "query": "two"})
    thread = rows.with_columns(item_index=pl.lit(0, pl.Int64), turn=pl.Series([0, 1], dtype=pl.Int32))
    table = build(thread).table
    assert table["item_id"].to_list() == ["t", "t"]
    assert table["item_sha"].n_unique() == 1
    edited = thread.with_columns(query=pl.Series(["one", "three"]))
    assert build(edited).table["item_sha"][0] != table["item_sha"][0]


def test_a_mapping_supplies_a_standard_field_the_data_does_not_have() -> None:
    rows = document({"question": "wo?"}).with_columns(query=pl.lit(None, pl.String))
    template = parse_template("{{item.question}}", where="mapping query")
    assert build_items([rows], {"query": template}).table["query"].to_list() == ["wo?"]


def test_an_explicit_mapping_wins_over_the_field_the_data_has() -> None:
    template = parse_template("Q: {{item.query}}", where="mapping query")
    assert build_items([document({"query": "q"})], {"query": template}).table["query"].to_list() == ["Q: q"]
