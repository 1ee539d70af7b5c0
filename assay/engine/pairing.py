"""Pairing: answers of a run beside those of another one, row by row, where both were asked the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.tables import ITEMS, SAMPLES
from assay.store.layout import RunFolder, open_store
from assay.store.parts import has_part, read_part, scan_parts
from transforms.values import SAMPLE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.config import RunConfig
    from assay.contracts.tables import Table
    from transforms.templates import Template

OTHER_TEXT = f"{SAMPLE_PREFIX}other_text"  # where `transforms.fields` looks for the other answer
NO_PARTNER = f"{SAMPLE_PREFIX}no_partner"  # why there is none
FIELD = "response_b"
KEY = ["item_id", "turn"]


class Comparison:
    """How many turns of a run can be compared with another one; told before any call.

    Attributes:
        edited: Turns that were asked otherwise there.
        absent: Turns that are not there.
    """

    def __init__(self, config: RunConfig) -> None:
        self.edited, self.absent = 0, 0
        self._config = config

    def look(self, items: pl.DataFrame, index: int) -> None:
        """Count those of a block of ITEMS."""
        if self._config.against is None:
            return
        found = _read_shas(_open(self._config), items, index)
        other = items.select(*KEY, "item_sha").join(found, on=KEY, how="left")
        self.absent += other["other_sha"].null_count()
        self.edited += int((other["other_sha"] != other["item_sha"]).sum())

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence, where some cannot be compared."""
        told = {
            "asked otherwise there (another question, context or expectation)": self.edited,
            "not there": self.absent,
        }
        counts = [f"{what}: {count}" for what, count in told.items() if count]
        run = self._config.against
        return (f"--against {run}: turns that are not compared: {'; '.join(counts)}",) if counts else ()


def read_partners(rows: pl.DataFrame, config: RunConfig, index: int) -> pl.DataFrame:
    """Add the answer of the run that `against` names to every row, or why there is none.

    The partner has the same item, turn and trial, where that run has it, else trial 0. An item that was asked
    otherwise there is no partner.

    Args:
        rows: Columns item_id, turn, trial and item_sha of one batch.
        config: What was asked for.
        index: The batch; a run of the same dataset mostly has the items in the same one.

    Returns:
        The rows with `OTHER_TEXT` and `NO_PARTNER`, one of which is null; without `against` as they are.

    Raises:
        StoreError: A part of the other run cannot be read.
    """
    if config.against is None:
        return rows
    folder = _open(config)
    answered = pl.when(pl.col("status") == "ok").then("output_text")
    answers = _read_items(folder, SAMPLES, rows, index).select(*KEY, "trial", other=answered)
    first = answers.filter(trial=0).drop("trial").rename({"other": "first"})
    trials = answers.with_columns(has_trial=pl.lit(value=True))
    keyed = rows.select(*KEY, "trial", "item_sha")
    found = (
        keyed.join(_read_shas(folder, rows, index), on=KEY, how="left", maintain_order="left")
        .join(trials, on=[*KEY, "trial"], how="left", maintain_order="left")
        .join(first, on=KEY, how="left", maintain_order="left")
    )
    text = pl.when("has_trial").then("other").otherwise("first")
    reason = (
        pl.when(pl.col("other_sha").is_null())
        .then(pl.lit(f"run {config.against} does not have it"))
        .when(pl.col("other_sha") != pl.col("item_sha"))
        .then(pl.lit(f"run {config.against} asked it otherwise"))
        .when(text.is_null())
        .then(pl.lit(f"run {config.against} has no answer to it"))
    )
    told = found.select(
        pl.when(reason.is_null()).then(text).alias(OTHER_TEXT), ("no partner: " + reason).alias(NO_PARTNER)
    )
    return rows.hstack(told)


def blank_unpaired(fields: pl.DataFrame, rows: pl.DataFrame, mapping: Mapping[str, Template]) -> pl.DataFrame:
    """Take the other answer that the item itself may hold from fields of rows without a partner."""
    if NO_PARTNER not in rows.columns:
        return fields
    unpaired = pl.lit(rows[NO_PARTNER].is_not_null())
    own = [name for name in fields.columns if name.rpartition(".")[2] == FIELD and name not in mapping]
    return fields.with_columns(pl.when(~unpaired).then(name).alias(name) for name in own)


def explain_unpaired(
    result: pl.DataFrame, rows: pl.DataFrame, mapping: Mapping[str, Template]
) -> pl.DataFrame:
    """Say of rows that were skipped for want of the other answer why it is not there.

    Args:
        result: RESULT, whose `row` counts in `rows`.
        rows: The rows that were evaluated.
        mapping: Where fields come from; an answer of the item's own has no partner to explain.
    """
    if NO_PARTNER not in rows.columns or FIELD in mapping:
        return result
    told = pl.lit(rows[NO_PARTNER][result["row"]])
    skipped = pl.col("reason").str.contains(rf"^no (?:\w+\.)*{FIELD}$") & (pl.col("status") == "skipped")
    return result.with_columns(reason=pl.when(skipped & told.is_not_null()).then(told).otherwise("reason"))


def _open(config: RunConfig) -> RunFolder:
    return RunFolder(open_store(config.store, create=False), str(config.against))


def _read_shas(folder: RunFolder, rows: pl.DataFrame, index: int) -> pl.DataFrame:
    return _read_items(folder, ITEMS, rows, index).select(*KEY, other_sha="item_sha")


def _read_items(folder: RunFolder, table: Table, rows: pl.DataFrame, index: int) -> pl.DataFrame:
    """Read what a run has of these items: from its part of that number if they are there, else from all."""
    ids = rows["item_id"].unique()
    near = folder.part(table.name, index)
    if has_part(near):
        found = read_part(near, table).filter(pl.col("item_id").is_in(ids.implode()))
        if found["item_id"].n_unique() == len(ids):
            return found
    return scan_parts(folder, table).filter(pl.col("item_id").is_in(ids.implode())).collect()
