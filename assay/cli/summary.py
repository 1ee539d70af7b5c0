"""The summary of a run as text: counts per evaluator and category, the worst items, where to look next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.cli.output import emit, write_frame, write_markdown, write_table
from assay.contracts.json_text import parse_json
from assay.contracts.tables import ITEMS, SAMPLES, SCORES
from assay.engine.canaries import read_health
from assay.store.catalog import read_run, read_summary
from assay.store.layout import RunFolder
from assay.store.parts import scan_parts
from transforms.summary import failed_rows, worst_items

if TYPE_CHECKING:
    from assay.cli.output import Output
    from assay.engine.canaries import Health
    from assay.store.layout import Store

WORST = 5
NEXT = (
    "assay query \"select evaluator, item_id, score, reason from scores where run_id = 'RUN' and not passed\""
)
SETTLED = (
    "settled: skipped, as the outcome of another evaluator made a judgement unnecessary; mean and pass rate "
    "are of the other rows alone"
)
SHOWN_CHARACTERS = 70


@dataclass(frozen=True, slots=True)
class Summary:
    """A run's own row, its counts, its worst items, and what canaries say of its judges."""

    run: dict[str, object]
    counts: pl.DataFrame
    worst: pl.DataFrame
    folder: RunFolder
    health: Health


def read_run_summary(store: Store, run_id: str) -> Summary:
    """Read what the summary of a committed run shows."""
    folder = RunFolder(store, run_id)
    worst = worst_items(scan_failed(folder), WORST)
    run, counts = read_run(store, run_id), read_summary(store, run_id)
    return Summary(run, counts, worst, folder, read_health(folder))


def scan_failed(folder: RunFolder) -> pl.LazyFrame:
    """Return the failed and errored evaluations of a run, the worst items first."""
    return failed_rows(scan_parts(folder, SCORES), scan_parts(folder, SAMPLES), scan_parts(folder, ITEMS))


def write_summary(summary: Summary, output: Output) -> None:
    """Print a summary in the form asked for."""
    counts = summary.counts
    if output.form == "table":
        emit(_as_text(summary, to_file=output.out is not None), output)
        return
    if output.form == "md":
        told = filter(None, (f"### Run {summary.run['run_id']}", summary.health.describe()))
        emit("\n\n".join((*told, write_markdown(_by_evaluator(counts)))), output)
        return
    document = {
        "run": summary.run,
        "summary": counts.drop("run_id").to_dicts(),
        "worst": summary.worst.to_dicts(),
        **({"canaries": summary.health.to_dict()} if summary.health.describe() else {}),
    }
    write_frame(counts, output, document=document)


def _as_text(summary: Summary, *, to_file: bool) -> str:
    run, health = summary.run, summary.health.describe()
    head = (
        f"Run {run['run_id']}  {run['status']}  {run['items']} items, {run['samples']} answers, "
        f"{run['evaluations']} evaluations: {run['passed']} passed, {run['failed']} failed, "
        f"{run['errored']} errors, {run['skipped']} skipped"
    )
    parts = [
        "\n".join(filter(None, (head, *_describe_spending(run), *_describe_part(run), health))),
        write_table(_by_evaluator(summary.counts), to_file=to_file),
    ]
    if summary.counts["settled"].sum():
        parts.append(SETTLED)
    categories = _by_category(summary.counts)
    if categories.height:
        parts.append(write_table(categories, to_file=to_file))
    if summary.worst.height:
        parts.append(
            "Worst items\n" + "\n".join(_describe(row) for row in summary.worst.iter_rows(named=True))
        )
    parts.append(
        f"Results: {summary.folder.path}\nLook further: {NEXT.replace('RUN', summary.folder.run_id)}"
    )
    return "\n\n".join(parts)


def _describe_spending(run: dict[str, object]) -> list[str]:
    """Say what the calls of a run came to; nothing where none was made."""
    read, written, cost = (run[name] for name in ("input_tokens", "output_tokens", "cost_usd"))
    if not (read or written):
        return []
    paid = "no price is known" if cost is None else f"{cost:.4f} US dollars"
    return [f"{read:,} tokens in, {written:,} out, {paid}"]


def _describe_part(run: dict[str, object]) -> list[str]:
    """Say of the finished part of a run with a budget that it stands for the whole."""
    config = parse_json(str(run["config_json"]))
    limits = config.get("limits") if isinstance(config, dict) else None
    if run["status"] != "partial" or not isinstance(limits, dict):
        return []
    if not any(limits.get(name) for name in ("max_cost", "max_tokens", "deadline_s")):
        return []
    seed = limits.get("order_seed")
    if seed is None:
        return []
    return [f"items are taken in the order of a hash (seed {seed}), so this part is a fair sample of all"]


def _by_evaluator(counts: pl.DataFrame) -> pl.DataFrame:
    return counts.filter(pl.col("slice") == "all").select("evaluator", *_columns(counts))


def _by_category(counts: pl.DataFrame) -> pl.DataFrame:
    rows = counts.filter(pl.col("slice") == "category").sort("value", "evaluator")
    return rows.select(pl.col("value").alias("category"), "evaluator", *_columns(counts))


def _columns(counts: pl.DataFrame) -> list[pl.Expr]:
    """Counts in four states, the mean with what it stands on, the pass rate with its bounds."""
    metric = pl.when(pl.col("metric") != pl.col("evaluator").str.split(":").list.first()).then("metric")
    several = counts.select((metric.is_not_null()).any()).item()
    bounded = pl.col("errored") > 0
    return [
        *([metric.alias("metric")] if several else []),
        pl.col("passed").alias("pass"),
        pl.col("failed").alias("fail"),
        pl.col("errored").alias("error"),
        pl.col("skipped"),
        *([pl.col("settled").fill_null(0)] if counts["settled"].sum() else []),
        pl.col("mean").round(3),
        pl.format("{}/{}", "scored", "attempted").alias("scored"),
        pl.when(bounded & pl.col("pass_rate").is_not_null())
        .then(pl.format("{}..{}", _percent("pass_rate_low"), _percent("pass_rate_high")))
        .otherwise(_percent("pass_rate"))
        .alias("pass rate"),
    ]


def _percent(column: str) -> pl.Expr:
    return pl.format("{}%", (pl.col(column) * 100).round(1))


def _describe(row: dict[str, object]) -> str:
    turn = f" turn {row['turn']}" if row["turn"] else ""
    category = f" [{row['category']}]" if row["category"] else ""
    lines = [f"  {row['item_id']}{turn}{category}  {row['verdicts']}"]
    lines += [f"    expected: {_short(row['expected'])}", f"    actual:   {_short(row['actual'])}"]
    lines += [
        f"    {name + ':':9} {_short(row[name])}" for name in ("reason", "error") if row[name] is not None
    ]
    return "\n".join(lines)


def _short(value: object) -> str:
    """Shorten to one line; `-` for null."""
    if value is None:
        return "-"
    text = " ".join(str(value).split())
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
