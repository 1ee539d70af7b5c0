"""`assay plan`: what a run would ask, count and cost, without calling anything."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from assay.api import CHANGES
from assay.cli.options import PRINTING, READING, Answers, Items, Running, Scoring, collect_settings
from assay.cli.output import Output, emit, write_frame, write_markdown, write_table
from assay.cli.progress import watch_reading
from assay.cli.reading import Files
from assay.engine.estimate import Estimate, estimate_rest, estimate_run
from assay.settings import make_config

if TYPE_CHECKING:
    from assay.settings import Settings

logger = logging.getLogger("assay")


def plan(
    *dataset: str,
    answers: Answers = Answers(),
    scoring: Scoring = Scoring(),
    items: Items = Items(),
    running: Running = Running(),
    files: Annotated[Files, Parameter(group=READING)] = Files(),
    output: Annotated[Output, Parameter(group=PRINTING)] = Output(),
) -> None:
    """Say what a run would ask, count and cost; nothing is called, and no key is needed.

    With --resume it says what is left of that run, which keeps its own dataset and configuration.

    Args:
        dataset: Dataset files, globs, folders (UiPath projects among them), or - for standard input.
            Default: prompts.json, evals.json or tests.json, here or in evals/.
    """
    output.start_log()
    settings = collect_settings(answers, scoring, items, running)
    settings = cast("Settings", {**settings, **files.settings})
    settings["store"] = output.store
    with watch_reading(quiet=output.quiet) as on_rows:
        if "resume" in settings:
            changes = {CHANGES[name]: value for name, value in settings.items() if name in CHANGES}
            estimate = estimate_rest(settings["resume"], output.store, changes, on_rows)
        else:
            estimate = estimate_run(make_config(list(dataset), settings), on_rows)
    for warning in estimate.warnings:
        logger.warning(warning)
    _write(estimate, output)


def _write(estimate: Estimate, output: Output) -> None:
    """Write the table with its notes; where there is no room for notes, these go to standard error."""
    stages, form = estimate.stages, output.form
    if form == "json":
        rows = stages.to_dicts()
        head: dict[str, object] = {"datasets": estimate.title, "items": estimate.items}
        write_frame(
            stages, output, document=head | {"stages": rows[:-1], "total": rows[-1], "notes": estimate.notes}
        )
    elif form in {"table", "md"}:
        table = (
            write_markdown(stages) if form == "md" else write_table(stages, to_file=output.out is not None)
        )
        notes = "\n".join(f"- {note}" for note in estimate.notes)
        emit(f"{estimate.items} items of {estimate.title}\n\n{table}\n\n{notes}", output)
    else:
        write_frame(stages, output)
        if not output.quiet:
            sys.stderr.write("".join(f"{note}\n" for note in estimate.notes))
