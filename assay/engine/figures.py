"""Figures of calls: how long answers were and took in earlier runs, or what is assumed without any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.tables import SAMPLES, SCORES, Table
from assay.errors import ConfigError, StoreError
from assay.store.catalog import list_runs
from assay.store.layout import RunFolder, open_store
from assay.store.parts import scan_parts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.config import RunConfig
    from assay.store.layout import Store

RECENT = 20  # runs that are looked at, the newest ones
RARE, OFTEN = 0.1, 0.9


@dataclass(frozen=True, slots=True)
class Figures:
    """What one call is expected to come to.

    Attributes:
        low: Tokens of a short answer: one in ten is shorter.
        mean: Tokens of an answer.
        high: Tokens of a long answer: one in ten is longer.
        latency_ms: Time of a call, in milliseconds.
        per_byte: Tokens of a request by its bytes.
        calls: Calls that these figures rest on; 0: they are assumed.
        is_weighed: Whether `per_byte` was measured.
    """

    low: float = 50.0
    mean: float = 250.0
    high: float = 800.0
    latency_ms: float = 2_000.0
    per_byte: float = 0.25
    calls: int = 0
    is_weighed: bool = False


def read_target_figures(config: RunConfig) -> Figures:
    """Return the figures of the target, from the newest runs that asked it."""
    target = config.target
    runs = _list_runs(
        config.store, (pl.col("target_kind") == target.kind) & (pl.col("target_name") == target.name)
    )
    size = pl.when(pl.col("input_tokens").is_not_null()).then(pl.col("request_json").str.len_bytes())
    found = _measure(runs, SAMPLES, ~pl.col("from_ledger"), name=pl.lit("target"), size=size)
    return found.get("target", Figures())


def read_judge_figures(config: RunConfig) -> Mapping[str, Figures]:
    """Return the figures of the judge by evaluator, from the newest runs with the same judge."""
    if config.judge is None:
        return {}
    runs = _list_runs(config.store, pl.col("judge_model") == config.judge.model)
    name = pl.col("evaluator").str.split(":").list.first()
    return _measure(runs, SCORES, pl.lit(value=True), name=name, size=pl.lit(None, pl.UInt32))


def _list_runs(root: str, wanted: pl.Expr) -> list[RunFolder]:
    """Return the runs that are wanted, without those that took answers from others: these took no time."""
    try:
        store: Store = open_store(root, create=False)
    except ConfigError:  # there was no run yet
        return []
    fresh = pl.col("config_json").str.json_path_match("$.reuse").is_null()
    runs = list_runs(store).filter(wanted, fresh).head(RECENT)
    return [RunFolder(store, run_id) for run_id in runs["run_id"]]


def _measure(
    folders: list[RunFolder], table: Table, counts: pl.Expr, *, name: pl.Expr, size: pl.Expr
) -> dict[str, Figures]:
    """Return figures by name over the calls that were answered and whose tokens somebody told."""
    answered = (pl.col("status") == "ok") & pl.col("output_tokens").is_not_null() & counts
    frames: list[pl.DataFrame] = []
    for folder in folders:
        try:
            rows = scan_parts(folder, table).filter(answered)
            frames.append(
                rows.select("input_tokens", "output_tokens", "latency_ms", name=name, size=size).collect()
            )
        except (StoreError, pl.exceptions.PolarsError):
            continue  # one damaged run is no reason to know nothing
    if not frames:
        return {}
    output = pl.col("output_tokens")
    measured = (
        pl.concat(frames)
        .group_by("name")
        .agg(
            output.quantile(RARE, "linear").alias("low"),
            output.mean().alias("mean"),
            output.quantile(OFTEN, "linear").alias("high"),
            pl.col("latency_ms").mean(),
            per_byte=pl.col("input_tokens").filter(pl.col("size") > 0).sum() / pl.col("size").sum(),
            calls=pl.len(),
        )
    )
    return {str(row["name"]): _to_figures(row) for row in measured.iter_rows(named=True)}


def _to_figures(row: Mapping[str, float | None]) -> Figures:
    """Take what was measured; what nobody told stays as it is assumed."""
    measured = row["per_byte"]
    is_weighed = measured is not None and 0 < measured < float("inf")
    known = {key: float(value) for key, value in row.items() if key != "name" and value is not None}
    calls = int(known.pop("calls"))
    if not is_weighed:
        known.pop("per_byte", None)
    return Figures(**known, calls=calls, is_weighed=is_weighed)
