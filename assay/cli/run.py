"""`assay run`: evaluate datasets and keep the result."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from assay.api import choose_engine, open_run, resume, start
from assay.cli.options import PRINTING, READING, Answers, Items, Running, Scoring, collect_settings
from assay.cli.output import Output
from assay.cli.progress import watch_reading, watch_run
from assay.cli.reading import Files
from assay.cli.summary import read_run_summary, write_summary
from assay.engine.prefect_api import find_api_url
from assay.engine.prepare import Preparation, prepare
from assay.errors import ConfigError
from assay.settings import make_config

if TYPE_CHECKING:
    from assay.engine.prepare import Prepared
    from assay.settings import Engine, Settings

logger = logging.getLogger("assay")


def run(
    *dataset: str,
    answers: Answers = Answers(),
    scoring: Scoring = Scoring(),
    items: Items = Items(),
    running: Running = Running(),
    files: Annotated[Files, Parameter(group=READING)] = Files(),
    output: Annotated[Output, Parameter(group=PRINTING)] = Output(),
) -> int:
    """Evaluate datasets and keep the result.

    Args:
        dataset: Dataset files, globs, folders (UiPath projects among them), or - for standard input.
            Default: prompts.json, evals.json or tests.json, here or in evals/.
    """
    output.start_log()
    settings = collect_settings(answers, scoring, items, running)
    settings = cast("Settings", {**settings, **files.settings})
    settings["store"] = output.store
    if running.batch is not None:
        return _submit(list(dataset), settings, output)
    engine = choose_engine(running.engine)
    prepared: Prepared | Preparation
    if "resume" in settings:
        prepared = resume(list(dataset), settings)
    else:
        config = make_config(list(dataset), settings)
        with watch_reading(quiet=output.quiet) as on_rows:
            prepared = open_run(config, engine=engine, on_rows=on_rows)
    _announce(prepared, engine, quiet=output.quiet)
    with watch_run(prepared, quiet=output.quiet, poll=engine != "local") as monitor:
        outcome = start(prepared, engine=engine, monitor=monitor)
    if isinstance(prepared, Preparation):
        _warn(prepared.warnings)
    if not output.quiet or output.out is not None or output.format is not None:
        write_summary(read_run_summary(prepared.folder.store, outcome.run_id), output)
    if outcome.message:
        sys.stderr.write(f"assay: {outcome.message}\n")
    return outcome.exit_code


def _submit(datasets: list[str], settings: Settings, output: Output) -> int:
    """Send a run as jobs, and say how to go on."""
    from assay.cli.batch import tell_standing
    from assay.engine.jobs import check_jobs, confirm_submission, find_cut_short, submit_run

    if settings.get("engine") == "prefect":
        raise ConfigError("--batch submit: the jobs are made from here; leave out --engine prefect")
    if "resume" in settings:
        prepared = resume(datasets, settings)
        check_jobs(prepared.request.config)
    else:
        config = make_config(datasets, settings)
        check_jobs(config)
        with watch_reading(quiet=output.quiet) as on_rows:
            prepared = find_cut_short(config) or prepare(config, on_rows)
    _announce(prepared, "local", quiet=output.quiet)
    with watch_run(prepared, quiet=output.quiet, poll=False) as monitor:
        standing = submit_run(prepared, monitor)
    code = tell_standing(standing, prepared, output)
    confirm_submission(prepared)  # not before: who was told nothing will give the command again
    return code


def _announce(prepared: Prepared | Preparation, engine: Engine, *, quiet: bool) -> None:
    if isinstance(prepared, Preparation):
        first = f"run {prepared.folder.run_id}: {prepared.title}, no model calls, engine {engine}"
        lines = [f"{first}; the input is long and read while it is evaluated"]
    else:
        request = prepared.request
        first = (
            f"run {request.run_id}: {request.items} items of {request.dataset_name} ({request.dialect}), "
            f"{request.evaluations} evaluations, {request.calls} model calls, "
            f"{request.batches} batches, engine {engine}"
        )
        lines = [first]
        _warn(request.warnings)
    if engine == "prefect" and find_api_url() is None:
        lines.append("no Prefect API is configured: starting a temporary server, which takes a while …")
    if not quiet:
        sys.stderr.write("\n".join(lines) + "\n")
    logger.info(lines[0])


def _warn(warnings: tuple[str, ...]) -> None:
    for warning in warnings:
        logger.warning(warning)
