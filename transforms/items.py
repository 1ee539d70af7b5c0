"""Items: from the rows of all datasets of a run to tables with stable ids and task hashes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import dump_json, parse_json, sha_text
from assay.contracts.tables import ITEMS, conform
from transforms.ids import IdRegister
from transforms.mapping import map_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from transforms.templates import Template

TASK_COLUMNS = ("query", "expected_response", "context", "tool_definitions_json")
SUPPLIED = ("query", "expected_response", "context", "response")  # fields a mapping may stand in for
PLACE = ["document", "item_index"]


@dataclass(frozen=True, slots=True)
class Items:
    """Items of a run, or of a block of it.

    Attributes:
        table: ITEMS, conversations whole and in file order.
        uses: Per row of `table`: `document` (index), `evaluators_json`, `evaluators_mode`.
        warnings: What the user should know.
    """

    table: pl.DataFrame
    uses: pl.DataFrame
    warnings: tuple[str, ...] = ()

    def filter(self, kept: pl.Series) -> Items:
        """Return the items of rows where `kept` is true."""
        return Items(self.table.filter(kept), self.uses.filter(kept), self.warnings)


def build_items(documents: Sequence[pl.DataFrame], mapping: Mapping[str, Template]) -> Items:
    """Give every row of every document its item id and task hash.

    Args:
        documents: One ROWS table per dataset.
        mapping: Templates that supply standard fields, whatever the dataset holds there.

    Raises:
        ConfigError: Two items share an id but not their task; both places are named.
    """
    repeats: frozenset[int] = frozenset()
    while True:
        register = IdRegister(repeats)
        blocks = [build_block(rows, n, mapping, register) for n, rows in enumerate(documents)]
        repeats = register.find_repeats()
        if not repeats:
            break
    return Items(
        pl.concat([block.table for block in blocks]) if blocks else ITEMS.empty(),
        pl.concat([block.uses for block in blocks]) if blocks else pl.DataFrame(),
        register.warnings,
    )


def build_block(
    rows: pl.DataFrame, document: int, mapping: Mapping[str, Template], register: IdRegister
) -> Items:
    """Give the rows of one block of a document their item ids and task hashes.

    Args:
        rows: ROWS; all turns of an item stand in one block.
        document: Index of the document among those of the run.
        mapping: Templates that supply standard fields, whatever the dataset holds there.
        register: Names the items; it knows those of earlier blocks.

    Raises:
        ConfigError: Two items share an id but not their task; both places are named.
    """
    rows = supply_fields(rows, mapping)
    rows = rows.with_columns(hash_tasks(rows), document=pl.lit(document))
    if rows["turn"].max() == 0:
        rows = rows.with_columns(item_sha="turn_sha")
        rows = rows.with_columns(item_id=register.name(rows))
    else:
        rows = _name_threads(rows, register)
    rows = rows.with_columns(pl.col("tags").fill_null(pl.lit([], pl.List(pl.String))))
    return Items(
        table=conform(rows.select(*ITEMS.columns), ITEMS),
        uses=rows.select("document", "evaluators_json", "evaluators_mode"),
    )


def _name_threads(rows: pl.DataFrame, register: IdRegister) -> pl.DataFrame:
    """Name items of several turns, which share one id and one hash."""
    joined = rows.group_by(PLACE, maintain_order=True).agg(
        pl.col("id").first(), pl.col("turn_sha"), pl.col("source_file").first(), pl.col("source_line").first()
    )
    shas = [turns[0] if len(turns) == 1 else sha_text(*turns) for turns in joined["turn_sha"].to_list()]
    joined = joined.with_columns(item_sha=pl.Series(shas, dtype=pl.String))
    named = joined.with_columns(item_id=register.name(joined))
    return rows.join(named.select(*PLACE, "item_id", "item_sha"), on=PLACE, maintain_order="left")


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


def hash_tasks(rows: pl.DataFrame) -> pl.Series:
    """Hash what each turn asks: never the answer, later messages or labels.

    Returns:
        Per row the value of `sha_text` over query or the messages up to the user's last, expected
        response, context, tool definitions, and the seed where there is one.
    """
    if rows["messages_json"].null_count() < rows.height:
        tasks = rows["messages_json"].map_elements(_task_messages, return_dtype=pl.String)
        rows = rows.with_columns(query=pl.coalesce(tasks, "query"))
    seed = pl.when(pl.col("seed_json").is_not_null()).then(_sized("seed_json")).otherwise(pl.lit(""))
    texts = rows.select(pl.concat_str(*map(_sized, TASK_COLUMNS), seed).cast(pl.Binary)).to_series()
    digests = [hashlib.sha256(text).digest() for text in texts.to_list()]
    return pl.Series("turn_sha", digests, dtype=pl.Binary).bin.encode("hex")


def _sized(column: str) -> pl.Expr:
    """Write a text as `sha_text` feeds it to its hash: after its length; null as a dash."""
    text = pl.col(column)
    return pl.when(text.is_null()).then(pl.lit("-")).otherwise(pl.format("{}:{}", text.str.len_bytes(), text))


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
