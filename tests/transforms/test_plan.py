from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.contracts.documents import EvaluatorUse, dump_uses
from assay.contracts.json_text import dump_json, parse_json
from assay.contracts.tables import EVERY_ITEM, ITEMS, conform
from assay.errors import ConfigError
from transforms.items import Items
from transforms.plan import PlanRequest, build_plan, expand_plan

if TYPE_CHECKING:
    from collections.abc import Mapping

ALIASES = {"f1": "PartialMatch"}
USE = EvaluatorUse


@dataclass(frozen=True)
class Evaluation:
    label: str
    options_json: str
    threshold: float | None = 0.5
    fields: tuple[str, ...] = ("query", "context")
    mapping: Mapping[str, str] = field(default_factory=dict[str, str])


class Catalog:
    def label(self, name: str, *, where: str) -> str:
        owner, _, instance = name.partition(":")
        if owner.startswith("Un"):
            raise ConfigError(f"{where}: unknown evaluator {owner}")
        canonical = ALIASES.get(owner, owner)
        return f"{canonical}:{instance}" if instance else canonical

    def resolve(self, name: str, options: Mapping[str, Any], *, where: str) -> Evaluation:
        return Evaluation(self.label(name, where=where), dump_json(dict(options)))


def items(*uses: list[EvaluatorUse] | None, mode: str = "extend") -> Items:
    count = len(uses)
    table = pl.DataFrame({"item_id": [str(n) for n in range(count)], "turn": [0] * count})
    filled = table.with_columns(
        turn_count=1, item_sha=pl.lit("s"), source_file=pl.lit("f"), item_json=pl.lit("{}"), tags=pl.lit([])
    )
    own = pl.DataFrame(
        {
            "document": [0] * count,
            "evaluators_json": [None if u is None else dump_uses(u) for u in uses],
            "evaluators_mode": [mode] * count,
        },
        schema_overrides={"evaluators_json": pl.String, "document": pl.Int32},
    )
    return Items(conform(filled, ITEMS), own, ())


def request(**changes: Any) -> PlanRequest:
    empty: dict[str, Any] = {"evaluators": (), "add": False, "options": {}, "mapping": {}, "has_judge": False}
    return PlanRequest(**(empty | changes))


def plan(
    rows: Items, defaults: tuple[EvaluatorUse, ...] | None = None, **changes: Any
) -> list[tuple[str, str, Any]]:
    built = build_plan(rows, [defaults], request(**changes), Catalog())
    expanded = expand_plan(built, rows.table)
    columns = expanded.select("item_id", "evaluator", "options_json").rows()
    return [(item, name, parse_json(options)) for item, name, options in columns]


def test_one_plan_for_all_items_is_stored_once() -> None:
    built = build_plan(items(None, None), [(USE("A"), USE("B"))], request(), Catalog())
    assert built["item_id"].to_list() == [EVERY_ITEM, EVERY_ITEM]
    assert expand_plan(built, items(None, None).table)["item_id"].to_list() == ["0", "0", "1", "1"]


def test_extend_adds_to_the_defaults_and_replaces_the_options_of_one_as_a_whole() -> None:
    own = [USE("B", {"y": 2}), USE("C")]
    found = plan(items(None, own), (USE("A"), USE("B", {"x": 1})))
    assert found == [
        ("0", "A", {}),
        ("0", "B", {"x": 1}),
        ("1", "A", {}),
        ("1", "B", {"y": 2}),
        ("1", "C", {}),
    ]


def test_replace_takes_the_items_own_evaluators_alone() -> None:
    assert plan(items([USE("C")], mode="replace"), (USE("A"),)) == [("0", "C", {})]


def test_names_of_the_user_replace_those_of_the_files() -> None:
    assert plan(items([USE("C")]), (USE("A"),), evaluators=("B",)) == [("0", "B", {})]


def test_names_of_the_user_with_a_plus_come_on_top() -> None:
    found = plan(items(None), (USE("A", {"x": 1}),), evaluators=("A", "B"), add=True)
    assert found == [("0", "A", {"x": 1}), ("0", "B", {})]


def test_without_names_a_judge_brings_relevance_and_coherence() -> None:
    assert [name for _, name, _ in plan(items(None), has_judge=True)] == ["Relevance", "Coherence"]


def test_without_names_and_judge_the_error_names_the_choices() -> None:
    with pytest.raises(ConfigError, match=r"--evaluators .*--judge"):
        plan(items(None))


def test_an_item_may_say_that_nothing_evaluates_it() -> None:
    assert plan(items([USE("B")], [], mode="replace"), (USE("A"),)) == [("0", "B", {})]


def test_a_plan_without_any_evaluation_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no evaluator named"):
        plan(items([], [], mode="replace"), (USE("A"),))


def test_options_of_the_user_win_over_those_of_the_file_under_any_name() -> None:
    found = plan(items(None), (USE("PartialMatch", {"a": 1, "b": 1}),), options={"f1": {"b": 2}})
    assert found == [("0", "PartialMatch", {"a": 1, "b": 2})]


def test_the_option_of_an_instance_wins_over_that_of_its_evaluator() -> None:
    uses = (USE("A", name="one"), USE("A", name="two"))
    found = plan(items(None), uses, options={"A:two": {"x": 2}, "A": {"x": 1}})
    assert found == [("0", "A:one", {"x": 1}), ("0", "A:two", {"x": 2})]


@pytest.mark.parametrize("changes", [{"options": {"B": {"x": 1}}}, {"mapping": {"B.query": "q"}}])
def test_an_override_for_what_does_not_run_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"B does not run here; running: A"):
        plan(items(None), (USE("A"),), **changes)


def test_mappings_of_file_user_and_evaluator_are_laid_over_each_other() -> None:
    uses = (USE("A", mapping={"query": "file", "context": "file"}), USE("B"))
    wanted = {"query": "user", "A.query": "narrow"}
    built = build_plan(items(None), [uses], request(mapping=wanted), Catalog())
    found = [parse_json(text) for text in built["mapping_json"]]
    assert found == [{"context": "file", "query": "narrow"}, {"query": "user"}]


def test_the_same_evaluator_with_other_options_or_mapping_is_another_evaluation() -> None:
    uses = (USE("A"), USE("A", {"x": 1}, name="n"), USE("A", name="m", mapping={"query": "q"}))
    built = build_plan(items(None), [uses], request(), Catalog())
    assert built["options_sha"].n_unique() == 3


def test_a_mapping_of_a_field_that_is_not_read_changes_no_evaluation() -> None:
    plain = build_plan(items(None), [(USE("A"),)], request(), Catalog())
    mapped = build_plan(items(None), [(USE("A"),)], request(mapping={"response": "x"}), Catalog())
    assert plain.equals(mapped)


def test_the_name_and_the_alias_of_an_evaluator_are_one() -> None:
    assert plan(items([USE("f1", {"x": 1})]), (USE("PartialMatch"),)) == [("0", "PartialMatch", {"x": 1})]
    assert len(plan(items(None), (USE("PartialMatch"),), evaluators=("f1",), add=True)) == 1
    both = {"PartialMatch": {"a": 1}, "f1": {"b": 2}}
    assert plan(items(None), (USE("PartialMatch"),), options=both)[0][2] == {"a": 1, "b": 2}


def test_an_item_called_like_the_mark_for_all_items_is_one_item() -> None:
    rows = items([USE("A")], [USE("B")])
    table = rows.table.with_columns(item_id=pl.Series(["*", "x"]))
    built = build_plan(Items(table, rows.uses, ()), [None], request(), Catalog())
    assert expand_plan(built, table).select("item_id", "evaluator").rows() == [("*", "A"), ("x", "B")]


def test_an_unknown_evaluator_is_named_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"items\[3\].evaluators: unknown evaluator Unknown"):
        plan(items([USE("Unknown", where="items[3].evaluators")]))
