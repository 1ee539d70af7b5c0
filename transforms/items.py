"""Items: from the rows of all datasets of a run to one table with stable ids and task hashes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import dump_json, parse_json, sha_text
from assay.contracts.tables import ITEMS, conform
from assay.errors import ConfigError
from transforms.mapping import map_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transforms.templates import Template

ID_DIGITS = 16
TASK_COLUMNS = ("query", "messages_json", "expected_response", "context", "tool_definitions_json")
SUPPLIED = ("query", "expected_response", "context", "response")  # fields a mapping may stand in for


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a run.

    Attributes:
        table: ITEMS, conversations whole and in file order.
        uses: Per row of `table`: `document` (index), `evaluators_json`, `evaluators_mode`.
        warnings: What the user should know.
    """

    table: pl.DataFrame
    uses: pl.DataFrame
    warnings: tuple[str, ...]


def build_items(documents: Sequence[pl.DataFrame], mapping: Mapping[str, Template]) -> Items:
    """Give every row of every document its item id and task hash.

    The id is the one in the file, else the first 16 hex digits of the task hash, so it does not
    depend on the order of rows. Equal ids with equal tasks get `-2`, `-3` and a warning.

    Args:
        documents: One ROWS table per dataset.
        mapping: Templates that supply standard fields, whatever the dataset holds there.

    Raises:
        ConfigError: Two items share an id but not their task; both places are named.
    """
    rows = pl.concat(
        [supply_fields(frame, mapping).with_columns(document=pl.lit(n)) for n, frame in enumerate(documents)]
    )
    rows = rows.with_columns(turn_sha=pl.Series(_hash_tasks(rows), dtype=pl.String))
    place = ["document", "item_index"]
    joined = rows.group_by(place, maintain_order=True).agg(
        pl.col("id").first(), pl.col("turn_sha"), pl.col("source_file").first(), pl.col("source_line").first()
    )
    joined = joined.with_columns(
        item_sha=pl.Series(
            [turns[0] if len(turns) == 1 else sha_text(*turns) for turns in joined["turn_sha"].to_list()],
            dtype=pl.String,
        )
    )
    named, warnings = _name_items(joined)
    rows = rows.join(named.select(*place, "item_id", "item_sha"), on=place, maintain_order="left")
    rows = rows.with_columns(pl.col("tags").fill_null(pl.lit([], pl.List(pl.String))))
    return Items(
        table=conform(rows.select(*ITEMS.columns), ITEMS),
        uses=rows.select("document", "evaluators_json", "evaluators_mode"),
        warnings=warnings,
    )


def supply_fields(rows: pl.DataFrame, mapping: Mapping[str, Template]) -> pl.DataFrame:
    """Fill standard columns from the mapping's item templates; an explicit mapping wins."""
    wanted = {
        field: template
        for field, template in mapping.items()
        if field in SUPPLIED
        and template.references
        and all(reference.root == "item" for reference in template.references)
    }
    if not wanted:
        return rows
    return rows.with_columns(map_fields(rows, wanted, wanted).select(*wanted))


def _hash_tasks(rows: pl.DataFrame) -> list[str]:
    """Hash what each turn asks: never the answer, later messages or labels."""
    return [
        sha_text(query if messages is None else _task_messages(messages), *rest)
        for query, messages, *rest in rows.select(TASK_COLUMNS).iter_rows()
    ]


def _task_messages(messages_json: str) -> str:
    messages = parse_json(messages_json)
    if not isinstance(messages, list):
        return messages_json
    last_user = max(
        (
            n
            for n, message in enumerate(messages)
            if isinstance(message, dict) and message.get("role") == "user"
        ),
        default=len(messages) - 1,
    )
    return dump_json(messages[: last_user + 1])


def _name_items(joined: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    given = joined.with_columns(
        base=pl.coalesce(pl.col("id").replace("", None), pl.col("item_sha").str.head(ID_DIGITS))
    )
    clash = given.filter(pl.col("item_sha").n_unique().over("base") > 1)
    if clash.height:
        _refuse_clash(clash)
    numbered = given.with_columns(repeat=pl.int_range(1, pl.len() + 1).over("base"))
    named = numbered.with_columns(
        item_id=pl.when(pl.col("repeat") == 1)
        .then(pl.col("base"))
        .otherwise(pl.format("{}-{}", "base", "repeat"))
    )
    if named["item_id"].is_duplicated().any():
        twice = named.filter(pl.col("item_id").is_duplicated())["item_id"][0]
        raise ConfigError(f"item id {twice!r} is taken twice: once given, once made from a repeated id")
    repeats = named.filter(pl.col("repeat") > 1)
    warnings = [
        f"{_place(row)}: asks the same as item {row['base']!r}; it runs as {row['item_id']!r}"
        for row in repeats.head(5).iter_rows(named=True)
    ]
    if repeats.height > len(warnings):
        warnings.append(f"and {repeats.height - len(warnings)} more items that repeat another")
    return named, tuple(warnings)


def _refuse_clash(clash: pl.DataFrame) -> None:
    base = clash["base"][0]
    first, second = (
        clash.filter(pl.col("base") == base).unique("item_sha", maintain_order=True).head(2).rows(named=True)
    )
    raise ConfigError(
        f"item id {base!r} stands for two different items: {_place(first)} and {_place(second)}; "
        "ids must be unique over all datasets of a run"
    )


def _place(row: dict[str, object]) -> str:
    line = row["source_line"]
    return f"{row['source_file']}:{line}" if line is not None else str(row["source_file"])
