"""Commit: the parts counted, summarised and made visible in one step."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

import polars as pl

from assay.config import count_allowed
from assay.contracts.json_text import dump_json, parse_json, sha_text
from assay.contracts.tables import CANARIES, ITEMS, RUNS, SAMPLES, SCHEMA_VERSION, SCORES, conform
from assay.engine.aggregates import aggregate_scores
from assay.engine.canaries import read_health
from assay.engine.own import open_catalog
from assay.engine.provenance import read_code_version, read_git_state
from assay.store.commit import commit_run
from assay.store.parts import scan_parts
from transforms.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.engine.prepare import Prepared

EXIT_OK, EXIT_UNDECIDED = 0, 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        run_id: The run.
        status: `complete`, or `partial` when it was stopped.
        exit_code: 0, or 3 when more evaluations than allowed ended in an error.
        message: One sentence that explains an exit code other than 0; else empty.
    """

    run_id: str
    status: Literal["complete", "partial"]
    exit_code: int
    message: str


def commit(
    prepared: Prepared,
    *,
    engine: str,
    status: Literal["complete", "partial"] = "complete",
    flow_run_id: str | None = None,
) -> Outcome:
    """Count what the parts hold and make the run visible to readers.

    Raises:
        StoreError: A part cannot be read, or the commit cannot be written.
    """
    folder, request = prepared.folder, prepared.request
    scores, samples = scan_parts(folder, SCORES), scan_parts(folder, SAMPLES)
    counts = _count(scores, samples, scan_parts(folder, CANARIES))
    summary = summarise(scores, scan_parts(folder, ITEMS), request.run_id)
    summary = pl.concat([summary, aggregate_scores(folder, summary, open_catalog(request.config))])
    git_commit, git_dirty = read_git_state()
    config = request.config.model_dump(mode="json")
    if not request.shuffled:
        config["limits"]["order_seed"] = None
    config_json = dump_json(config)
    run = {
        "run_id": request.run_id,
        "name": request.config.name,
        "engine": engine,
        "judge_health": read_health(folder).state,
        "dataset_name": request.dataset_name,
        "dataset_sha256": request.dataset_sha256,
        "dialect": request.dialect,
        "target_kind": request.config.target.kind,
        "target_name": request.config.target.name,
        "config_json": config_json,
        "config_sha": sha_text(config_json),
        "evaluator_set_sha": request.evaluator_set_sha,
        "judge_model": request.config.judge.model if request.config.judge else None,
        "git_commit": git_commit,
        "git_dirty": git_dirty,
        "code_version": read_code_version(),
        "schema_version": SCHEMA_VERSION,
        "started_at": request.started_at,
        "finished_at": datetime.now(UTC),
        "status": status,
        "items": request.items,
        "quarantined": request.quarantined,
        "labels": list(request.config.labels),
        "flow_run_id": flow_run_id,
        **counts,
    }
    frame = pl.DataFrame([run], schema=dict(RUNS.columns))
    commit_run(folder, conform(frame, RUNS), summary)
    return Outcome(request.run_id, status, *judge_errors(run))


def _count(scores: pl.LazyFrame, samples: pl.LazyFrame, canaries: pl.LazyFrame) -> dict[str, object]:
    ok = pl.col("status") == "ok"
    tokens = [pl.col(name).sum().alias(name) for name in ("input_tokens", "output_tokens")]
    tokens += [pl.when(pl.col("cost_usd").count() > 0).then(pl.col("cost_usd").sum()).alias("cost_usd")]
    answered = samples.select(
        pl.len().alias("samples"), (pl.col("status") == "error").sum().alias("samples_error"), *tokens
    ).collect()
    evaluated = scores.select(
        pl.len().alias("evaluations"),
        (ok & pl.col("passed").fill_null(value=False)).sum().alias("passed"),
        (ok & ~pl.col("passed").fill_null(value=True)).sum().alias("failed"),
        (pl.col("status") == "error").sum().alias("errored"),
        (pl.col("status") == "skipped").sum().alias("skipped"),
        *tokens,
    ).collect()
    stages = [each.row(0, named=True) for each in (answered, evaluated, canaries.select(tokens).collect())]
    spent = {name: sum(each[name] for each in stages) for name in ("input_tokens", "output_tokens")}
    costs = [each["cost_usd"] for each in stages if each["cost_usd"] is not None]
    return {**stages[0], **stages[1], **spent, "cost_usd": sum(costs) if costs else None}


def judge_errors(run: Mapping[str, object]) -> tuple[int, str]:
    """Return the exit code of a run and, when it is not 0, the sentence that explains it.

    Args:
        run: A row of RUNS.
    """
    config = parse_json(str(run["config_json"]))
    max_errors = str(config["max_errors"]) if isinstance(config, dict) and "max_errors" in config else "0"
    evaluations, skipped, errored = (int(str(run[name])) for name in ("evaluations", "skipped", "errored"))
    attempted = evaluations - skipped
    allowed = count_allowed(max_errors, attempted)
    if errored <= allowed:
        return EXIT_OK, ""
    share = f"{errored} of {attempted} evaluations ended in an error"
    return EXIT_UNDECIDED, f"{share}, {allowed} are allowed (--max-errors {max_errors})"
