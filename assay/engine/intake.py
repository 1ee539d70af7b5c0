"""Intake: datasets and answers read, selected and turned into the items of a run."""

from __future__ import annotations

import fnmatch
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import sha_text
from assay.contracts.tables import Table, conform
from assay.datasets.answers import read_answers
from assay.datasets.reader import read_documents
from assay.errors import ConfigError, list_names
from assay.store.layout import open_store
from evaluators.contract import FIELDS
from transforms.items import Items, build_items
from transforms.mapping import plain_mapping
from transforms.templates import Template, parse_template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.config import RunConfig, Selection
    from assay.contracts.documents import Document

ANSWERS_TABLE = Table(
    "answers",
    pl.Schema(
        {
            "item_id": pl.String,
            "turn": pl.Int32,
            "trial": pl.Int32,
            "response": pl.String,
            "output_items_json": pl.String,
        }
    ),
    frozenset({"response", "output_items_json"}),
    ("item_id", "turn", "trial"),
)


@dataclass(frozen=True, slots=True)
class Intake:
    """What came in.

    Attributes:
        documents: The datasets as read.
        items: The selected items.
        mapping: The user's mapping with bare column names written out.
        answers: ANSWERS_TABLE for the selected items; None without an answer file.
        warnings: What the user should know.
    """

    documents: tuple[Document, ...]
    items: Items
    mapping: dict[str, str]
    answers: pl.DataFrame | None
    warnings: tuple[str, ...]


def read_intake(config: RunConfig) -> Intake:
    """Read everything a run needs, before anything is written or called.

    Raises:
        InputError: A file is missing, malformed or empty.
        ConfigError: A mapping, selection or id cannot be used.
    """
    for key in config.mapping:
        field = key.rpartition(".")[2]
        if field not in FIELDS:
            raise ConfigError.unknown("field", field, FIELDS, where="--mapping")
    documents = tuple(read_documents(config.datasets))
    rows = [document.rows for document in documents]
    mapping = plain_mapping(pl.concat(rows), config.mapping)
    items = select_items(build_items(rows, _templates(mapping)), config)
    warnings = [warning for document in documents for warning in document.warnings]
    answers = None
    if config.responses is not None:
        answers, unmatched = _match_answers(items.table, config.responses)
        warnings += unmatched
    return Intake(documents, items, mapping, answers, (*warnings, *items.warnings))


def _templates(mapping: Mapping[str, str]) -> dict[str, Template]:
    return {
        field: parse_template(text, where=f"mapping {field}")
        for field, text in mapping.items()
        if "." not in field
    }


def select_items(items: Items, config: RunConfig) -> Items:
    """Keep the items the selection names, whole conversations in file order.

    Raises:
        ConfigError: Nothing is left, or a condition cannot be evaluated.
    """
    selection = config.selection
    chosen = items.table
    if selection.id is not None:
        ids = fnmatch.filter(chosen["item_id"].unique().to_list(), selection.id)
        chosen = chosen.filter(pl.col("item_id").is_in(ids))
    if selection.where is not None:
        from assay.store.selection import filter_items  # DuckDB and pyarrow only where SQL is asked

        matching = filter_items(chosen, selection.where)["item_id"].unique().to_list()
        chosen = chosen.filter(pl.col("item_id").is_in(matching))
    if selection.failed_of is not None:
        failed = _read_failed(config.store, selection.failed_of)
        chosen = chosen.filter(pl.col("item_id").is_in(failed))
    if selection.limit is not None:
        first = chosen["item_id"].unique(maintain_order=True).head(selection.limit).to_list()
        chosen = chosen.filter(pl.col("item_id").is_in(first))
    if chosen.is_empty():
        raise ConfigError(_nothing_left(items.table, selection))
    kept = items.table["item_id"].is_in(chosen["item_id"].unique().to_list())
    return Items(items.table.filter(kept), items.uses.filter(kept), items.warnings)


def _nothing_left(table: pl.DataFrame, selection: Selection) -> str:
    given = ", ".join(f"{name}={value!r}" for name, value in selection if value is not None)
    ids = table["item_id"].unique(maintain_order=True)
    return f"selection {given} leaves none of {len(ids)} items; ids are {list_names(ids.head(13))}"


def _read_failed(root: str, run_id: str) -> list[str]:
    from assay.store.query import query  # DuckDB and pyarrow only where SQL is asked

    sql = "select distinct item_id from scores where run_id = $run and (passed = false or status = 'error')"
    found = query(open_store(root, create=False), sql, parameters={"run": run_id})
    return found["item_id"].to_list()


def _match_answers(items: pl.DataFrame, path: str) -> tuple[pl.DataFrame, list[str]]:
    """Bring answers to items by id and turn; count and name what matches nothing on either side."""
    answers = read_answers(path).rename({"id": "item_id"})
    answers = answers.with_columns(pl.col("turn", "trial").fill_null(0))
    keys = ["item_id", "turn"]
    matched = answers.join(items.select(keys), on=keys, how="semi")
    if matched.is_empty():
        known = list_names(items["item_id"].unique(maintain_order=True).head(6))
        raise ConfigError(f"{path}: no answer has the id of an item; item ids are {known}")
    warnings: list[str] = []
    lonely = answers.join(items.select(keys), on=keys, how="anti")
    unanswered = items.join(matched.select(keys), on=keys, how="anti")
    if lonely.height:
        warnings.append(f"{path}: {lonely.height} answers belong to no selected item: {_turns(lonely)}")
    if unanswered.height:
        warnings.append(f"{path}: {unanswered.height} turns have no answer: {_turns(unanswered)}")
    return conform(matched.select(*ANSWERS_TABLE.columns), ANSWERS_TABLE), warnings


def _turns(rows: pl.DataFrame) -> str:
    shown = rows.select(
        pl.when(pl.col("turn") > 0).then(pl.format("{} turn {}", "item_id", "turn")).otherwise("item_id")
    )
    return list_names(shown.to_series())


def hash_inputs(intake: Intake, config: RunConfig) -> str:
    """Hash what was read: the datasets and the file of answers, whatever the selection."""
    parts = [document.sha256 for document in intake.documents]
    if intake.answers is not None:
        parts.append(hashlib.sha256(Path(str(config.responses)).read_bytes()).hexdigest())
    return sha_text(*parts) if len(parts) > 1 else parts[0]
