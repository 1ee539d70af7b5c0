"""`assay batch`: jobs of the Batch API that a run was submitted as, looked at and collected."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import polars as pl
from cyclopts import Parameter

from assay.cli.output import Output, write_frame
from assay.cli.progress import watch_run
from assay.cli.summary import read_run_summary, write_summary
from assay.engine.commit import EXIT_UNDECIDED
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.engine.clerk import Standing
    from assay.engine.prepare import Prepared
    from assay.store.jobs import JobRecord

COLUMNS = {
    "job": pl.String,
    "asks": pl.String,
    "model": pl.String,
    "state": pl.String,
    "status": pl.String,
    "done": pl.Int64,
    "failed": pl.Int64,
    "total": pl.Int64,
    "message": pl.String,
}
_STATES = {"prepared": "not made", "creating": "in doubt", "sent": "made", "settled": "collected"}


def batch(
    action: Literal["status", "collect"],
    run: str,
    *,
    no_submit: Annotated[bool, Parameter(negative="")] = False,
    output: Output = Output(),
) -> int:
    """Look at the jobs of a run that `assay run --batch submit` made, or collect their answers.

    Args:
        action: status says how far the jobs are. collect keeps the answers of jobs that have ended, scores
            what it can and sends the rest as new jobs; once nothing is left it ends the run.
        run: The run: an id, the beginning of one, or latest.
        no_submit: Make no new jobs: what has no answer is skipped, and the run is partial.
    """
    from assay.engine.jobs import collect_run, look_at_jobs, open_submitted  # the client takes a second

    output.start_log()
    prepared = open_submitted(run, output.store)
    if action == "status":
        if no_submit:
            raise ConfigError("--no-submit: belongs to assay batch collect")
        write_frame(list_jobs(look_at_jobs(prepared)), output)
        return 0
    with watch_run(prepared, quiet=output.quiet, poll=False) as monitor:
        standing = collect_run(prepared, monitor, sends=not no_submit)
    code = tell_standing(standing, prepared, output)
    return EXIT_UNDECIDED if standing.outcome is None else code


def tell_standing(standing: Standing, prepared: Prepared, output: Output) -> int:
    """Print the jobs that are under way and what to run next, or the summary of a run that ended.

    Returns:
        The exit code of the run; 0 while jobs are under way.
    """
    from assay.engine.clerk import name_collect

    if standing.outcome is None:
        if not output.quiet or output.out is not None or output.format is not None:
            write_frame(list_jobs(standing.jobs), output)
        run_id, collect = prepared.folder.run_id, name_collect(prepared)
        look = collect.replace("batch collect", "batch status")
        count = f"{len(standing.jobs)} job{'' if len(standing.jobs) == 1 else 's'}"
        told = f"run {run_id}: {count} under way, nothing is decided yet"
        sys.stderr.write(f"{told}\n  look:    {look}\n  collect: {collect}\n")
        sys.stdout.flush()
        return 0
    if not output.quiet or output.out is not None or output.format is not None:
        write_summary(read_run_summary(prepared.folder.store, standing.outcome.run_id), output)
    if standing.outcome.message:
        sys.stderr.write(f"assay: {standing.outcome.message}\n")
    return standing.outcome.exit_code


def list_jobs(jobs: Iterable[JobRecord]) -> pl.DataFrame:
    """Return jobs as a table, a row each."""
    rows = [
        {
            "job": job.job_id,
            "asks": job.seat,
            "model": job.model,
            "state": _STATES[job.state],
            "status": job.status or None,
            "done": job.done,
            "failed": job.failed,
            "total": job.lines,
            "message": job.message or None,
        }
        for job in jobs
    ]
    return pl.DataFrame(rows, schema=COLUMNS)
