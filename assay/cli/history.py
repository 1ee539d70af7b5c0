"""`assay runs` and `assay show`: what the store holds."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from assay.api import Run
from assay.cli.output import Output, write_frame
from assay.cli.summary import read_run_summary, scan_failed, write_summary
from assay.config import DEFAULT_STORE
from assay.store.catalog import find_run, list_problems, list_runs
from assay.store.folders import list_unfinished
from assay.store.jobs import read_book
from assay.store.layout import RunFolder, open_store

LISTED = (
    "run_id", "name", "status", "dataset_name", "target_name", "items", "evaluations",
    "passed", "failed", "errored", "skipped", "labels",
)  # fmt: skip

SHOWN_UNFINISHED = 5


def runs(
    *, limit: Annotated[int, Parameter(validator=Number(gte=1))] = 20, output: Output = Output()
) -> None:
    """List the runs of the store, newest first.

    Args:
        limit: At most this many.
    """
    output.start_log()
    store = open_store(output.store, create=False)
    for problem in list_problems(store):
        sys.stderr.write(f"warning: {problem}\n")
    for folder in list_unfinished(store)[:SHOWN_UNFINISHED]:
        command = "run --resume" if read_book(folder) is None else "batch collect"
        where = "" if output.store == DEFAULT_STORE else f" --store {output.store}"
        sys.stderr.write(f"unfinished: {folder.run_id}; go on with: assay {command} {folder.run_id}{where}\n")
    listed = list_runs(store).head(limit)
    write_frame(listed.select(LISTED) if output.form in {"table", "md"} else listed, output)


def show(
    run: str = "latest",
    *,
    failed: Annotated[bool, Parameter(negative="")] = False,
    items: Annotated[bool, Parameter(negative="")] = False,
    output: Output = Output(),
) -> None:
    """Show the summary of a run, its failed rows, or how every item came out.

    Args:
        run: Run id, unique prefix, name, latest, latest~N or label:k=v.
        failed: List every failed or errored evaluation, worst first.
        items: List every turn (-1: the whole conversation) as pass, fail, partial (an evaluator ended in an
            error) or error (no answer).
    """
    output.start_log()
    store = open_store(output.store, create=False)
    run_id = find_run(store, run)
    if items:
        write_frame(Run(run_id, str(store.root)).statuses, output)
    elif failed:
        write_frame(scan_failed(RunFolder(store, run_id)).collect(), output)
    else:
        write_summary(read_run_summary(store, run_id), output)
