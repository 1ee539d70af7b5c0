"""Prepare: everything is read, checked and planned before the first call and the first file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import sha_text
from assay.contracts.tables import EVERY_TURN, ITEMS, PLAN
from assay.engine.intake import ANSWERS_TABLE, hash_inputs, read_intake
from assay.engine.planning import count_evaluations, has_judge, make_plan
from assay.engine.request import RunRequest
from assay.engine.tools import check_endpoints
from assay.store.catalog import find_run
from assay.store.layout import RunFolder, create_run, open_store
from assay.store.parts import discard_run, write_part, write_request

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.engine.intake import Intake

COLUMN_BATCH = 5000  # rows of a batch that only Polars works on
MODEL_BATCH = 200  # rows of a batch that waits for a model


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is ready to be worked on."""

    folder: RunFolder
    request: RunRequest


def prepare(config: RunConfig) -> Prepared:
    """Read, check and plan a run, then write its items and plan to the store.

    Nothing is written when anything is wrong.

    Raises:
        SetupError: The input, configuration or selection cannot work.
        StoreError: The store cannot be written.
    """
    config = _pin_selection(config)
    intake = read_intake(config)
    plan = make_plan(intake, config)
    check_endpoints(config)
    blocks = cut_batches(intake.items.table, config.batch_size or _batch_size(plan, config))
    started_at = datetime.now(UTC)
    request = _describe(config, intake, plan, started_at, len(blocks))
    folder = create_run(open_store(config.store, create=True), started_at)
    try:
        request = request.model_copy(update={"run_id": folder.run_id})
        _write_parts(folder, intake, plan, blocks)
        write_request(folder, request.model_dump(mode="json"))
    except BaseException:
        discard_run(folder)
        raise
    return Prepared(folder, request)


def _batch_size(plan: pl.DataFrame, config: RunConfig) -> int:
    calls = config.target.kind != "stored" or has_judge(plan)
    return MODEL_BATCH if calls else COLUMN_BATCH


def cut_batches(items: pl.DataFrame, size: int) -> list[tuple[int, int]]:
    """Cut items into blocks of about `size` rows without cutting a conversation.

    Returns:
        Per batch the first row and the number of rows.
    """
    batches = (
        items.select("item_id")
        .with_row_index("row")
        .with_columns(batch=pl.col("row").min().over("item_id") // size)
        .group_by("batch", maintain_order=True)
        .agg(pl.col("row").min(), pl.len())
    )
    return [(int(first), int(count)) for _, first, count in batches.iter_rows()]


def _write_parts(
    folder: RunFolder, intake: Intake, plan: pl.DataFrame, blocks: list[tuple[int, int]]
) -> None:
    items, keys = intake.items.table, ["item_id", "turn"]
    shared = plan["turn"][0] == EVERY_TURN
    if shared:
        write_part(plan, folder.part("plan", 0), PLAN)
    for index, (first, count) in enumerate(blocks):
        block = items.slice(first, count)
        write_part(block, folder.part("items", index), ITEMS)
        if not shared:
            due = plan.join(block, on=keys, how="semi", maintain_order="left")
            write_part(due, folder.part("plan", index), PLAN)
        if intake.answers is not None:
            answers = intake.answers.join(block, on=keys, how="semi")
            write_part(answers, folder.part("answers", index), ANSWERS_TABLE)


def _describe(
    config: RunConfig, intake: Intake, plan: pl.DataFrame, started_at: datetime, batches: int
) -> RunRequest:
    turns = intake.items.table.height
    evaluations, judged = count_evaluations(plan, _list_samples(intake))
    what = plan.select("evaluator", "options_sha").unique().sort(pl.all()).rows()
    return RunRequest(
        run_id="",  # known once its folder is made
        config=config,
        started_at=started_at,
        batches=batches,
        items=intake.items.table["item_id"].n_unique(),
        turns=turns,
        evaluations=evaluations,
        calls=judged + (turns if config.target.kind != "stored" else 0),
        dataset_name=", ".join(PurePath(document.path).name for document in intake.documents),
        dataset_sha256=hash_inputs(intake, config),
        dialect=", ".join(sorted({document.dialect for document in intake.documents})),
        evaluator_set_sha=sha_text(*(f"{name} {sha}" for name, sha in what)),
        warnings=(*intake.warnings, *_note_idle(intake.items.table, plan)),
    )


def _list_samples(intake: Intake) -> pl.DataFrame:
    """Return item and turn of every answer to come: one per turn, or one per stored trial of it."""
    keys = ["item_id", "turn"]
    turns = intake.items.table.select(*keys)
    return turns if intake.answers is None else turns.join(intake.answers.select(*keys), on=keys, how="left")


def _note_idle(items: pl.DataFrame, plan: pl.DataFrame) -> tuple[str, ...]:
    if plan["turn"][0] == EVERY_TURN:
        return ()
    idle = items.join(plan, on=["item_id", "turn"], how="anti").height
    return (f"{idle} turns have no evaluator: their file names none for them",) if idle else ()


def _pin_selection(config: RunConfig) -> RunConfig:
    """Write the run that `--failed-of` meant by its id, so the record stays true."""
    reference = config.selection.failed_of
    if reference is None:
        return config
    run_id = find_run(open_store(config.store, create=False), reference)
    selection = config.selection.model_copy(update={"failed_of": run_id})
    return config.model_copy(update={"selection": selection})
