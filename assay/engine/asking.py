"""Asking: the answers of one batch, from a model, a function, a program or the dataset itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.tables import SAMPLES, conform
from assay.engine.matching import ANSWERS_TABLE
from assay.store.parts import has_part, read_part
from assay.targets.contract import ANSWERS
from transforms.prompts import parse_prompt, render_prompt

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.store.layout import RunFolder
    from assay.targets.contract import Target, Work

KEY = ["item_id", "turn"]


async def fetch_samples(
    folder: RunFolder, index: int, items: pl.DataFrame, target: Target, work: Work
) -> pl.DataFrame:
    """Return SAMPLES of a batch whose answers are stored, in the dataset or in a file of answers."""
    path = folder.part("answers", index)
    if has_part(path):
        samples = await _fetch_stored(target, items, read_part(path, ANSWERS_TABLE), work)
    else:
        samples = await target.fetch_samples(items, work)
    return conform(samples.with_columns(run_id=pl.lit(folder.run_id)), SAMPLES)


async def ask_samples(
    folder: RunFolder, items: pl.DataFrame, config: RunConfig, target: Target, work: Work
) -> pl.DataFrame:
    """Return SAMPLES of a batch whose answers are asked for.

    A target is asked what the prompt template makes of each item; a field that is missing is an error.
    """
    samples = await _ask(config.target.prompt, items, target, work)
    return conform(samples.with_columns(run_id=pl.lit(folder.run_id)), SAMPLES)


async def _ask(prompt: str | None, items: pl.DataFrame, target: Target, work: Work) -> pl.DataFrame:
    if prompt is None:
        return await target.fetch_samples(items, work)
    rendered = render_prompt(parse_prompt(prompt), items)
    asked = items.with_columns(rendered["messages_json"]).filter(rendered["error_code"].is_null())
    samples = await target.fetch_samples(asked, work)
    refused = items.select(KEY).with_columns(
        rendered.select("error_code", "error_message"),
        trial=pl.int_ranges(work.trials, dtype=pl.Int32),
        status=pl.lit("error"),
        attempts=pl.lit(0),
        from_ledger=pl.lit(value=False),
    )
    refused = refused.filter(pl.col("error_code").is_not_null()).explode("trial")
    for _ in range(refused.height):
        work.on_done(False)  # noqa: FBT003 - the one argument of the callback
    both = pl.concat([samples, conform(refused, ANSWERS)])
    return items.select(KEY).join(both, on=KEY, maintain_order="left_right")


async def _fetch_stored(
    target: Target, items: pl.DataFrame, answers: pl.DataFrame, work: Work
) -> pl.DataFrame:
    """Let the stored target read the answers of a file: a row per trial, and one for a turn without any."""
    given = answers.sort(*KEY, "trial")
    own = ("response", "output_items_json", "tool_calls_json")
    rows = items.drop(own).join(given, on=KEY, how="left", maintain_order="left_right")
    samples = await target.fetch_samples(rows.drop("trial"), work)
    return samples.with_columns(trial=rows["trial"].fill_null(0))
