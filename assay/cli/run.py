"""`assay run`: evaluate datasets and keep the result."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from pydantic import JsonValue, TypeAdapter, ValidationError

from assay.api import choose_engine, open_run, start
from assay.cli.output import Output
from assay.cli.progress import watch_reading, watch_run
from assay.cli.reading import Files
from assay.cli.summary import read_run_summary, write_summary
from assay.engine.prefect_api import find_api_url
from assay.engine.prepare import Preparation
from assay.errors import ConfigError
from assay.settings import Engine, Settings, make_config

if TYPE_CHECKING:
    from assay.engine.prepare import Prepared

logger = logging.getLogger("assay")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Answers:
    """Where the answers come from."""

    target: Literal["stored", "openai", "azure"] | None = None
    """Kind of target. Default: openai with --model, else the answers stored in the dataset."""
    model: str | None = None
    """Model (on Azure the deployment) that answers."""
    base_url: str | None = None
    """URL of the API, such as http://127.0.0.1:8000/v1."""
    system: str | None = None
    """System message that opens every conversation."""
    prompt_template: Path | None = None
    """File with what is sent for an item: a text with {{item.FIELD}}, or JSON input_messages."""
    responses: Path | None = None
    """CSV, JSONL or Parquet file of stored answers: id[, turn, trial], response."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is scored."""

    evaluators: str | None = None
    """A,B replaces the evaluators of the files, +A,B adds to them."""
    evaluator: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """FILE.py:NAME of an evaluator of your own, or its folder; repeatable. It runs beside the others."""
    allow_graders_network: Annotated[bool, Parameter(negative="")] = False
    """Run Python graders even where their network cannot be cut."""
    option: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """EVALUATOR.NAME=JSON sets an option or the threshold; repeatable."""
    mapping: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """[EVALUATOR.]FIELD=TEMPLATE, or a JSON file of such pairs; repeatable."""
    judge: str | None = None
    """Model that judges; azure:DEPLOYMENT for Azure."""
    judge_base_url: str | None = None
    """URL of the judge's API. Default: --base-url."""
    max_errors: str = "0"
    """Evaluations that may end in an error, as a count or P%; more is exit code 3."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Items:
    """Which items take part."""

    where: str | None = None
    """SQL condition over the items, such as "category = 'billing'"."""
    id: str | None = None
    """Glob over item ids."""
    failed_of: str | None = None
    """Only what failed or ended in an error in this run."""
    limit: int | None = None
    """At most this many items."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Running:
    """How the run goes and what it is called."""

    engine: Engine | None = None
    """local or prefect. Default: prefect where an API is configured, else local."""
    concurrency: int = 32
    """Calls under way at once."""
    timeout_s: Annotated[float, Parameter(name="--timeout")] = 120.0
    """Seconds until a call is given up."""
    batch_size: int | None = None
    """Rows of a batch. Default: 200 with model calls, else 10000."""
    name: str | None = None
    """Name of the run."""
    label: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """k=v; repeatable."""


def run(
    *dataset: str,
    answers: Answers = Answers(),
    scoring: Scoring = Scoring(),
    items: Items = Items(),
    running: Running = Running(),
    files: Files = Files(),
    output: Output = Output(),
) -> int:
    """Evaluate datasets and keep the result.

    Args:
        dataset: Dataset files, globs, folders (UiPath projects among them), or - for standard input.
            Default: prompts.json, evals.json or tests.json, here or in evals/.
    """
    output.start_log()
    settings = collect_settings(answers, scoring, items, running)
    settings.update(files.settings)  # pyright: ignore[reportArgumentType, reportCallIssue] - names of Settings, a test says
    settings["store"] = output.store
    config = make_config(list(dataset), settings)
    engine = choose_engine(running.engine)
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


def collect_settings(answers: Answers, scoring: Scoring, items: Items, running: Running) -> Settings:
    """Turn the parsed options into the flat settings of the Python API.

    Raises:
        ConfigError: An option or mapping is not of its form.
    """
    given = {
        **vars(answers),
        **vars(items),
        "evaluators": scoring.evaluators,
        "own_evaluators": list(scoring.evaluator) or None,
        "allow_graders_network": scoring.allow_graders_network or None,
        "judge": scoring.judge,
        "judge_base_url": scoring.judge_base_url,
        "max_errors": scoring.max_errors,
        "concurrency": running.concurrency,
        "timeout_s": running.timeout_s,
        "batch_size": running.batch_size,
        "name": running.name,
    }
    settings: Settings = {key: value for key, value in given.items() if value is not None}  # pyright: ignore[reportAssignmentType] - the keys are those of Settings, a test says
    settings["options"] = parse_options(scoring.option)
    settings["mapping"] = parse_mappings(scoring.mapping)
    settings["labels"] = list(running.label)
    return settings


def parse_options(texts: tuple[str, ...]) -> dict[str, dict[str, JsonValue]]:
    """Parse `EVALUATOR.NAME=JSON`; a value that is not JSON is taken as text."""
    options: dict[str, dict[str, JsonValue]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        evaluator, dot, name = place.rpartition(".")
        if not equals or not dot or not evaluator or not name:
            raise ConfigError(
                f"--option {text!r}: write EVALUATOR.NAME=JSON, such as PartialMatch.threshold=0.7"
            )
        try:
            options.setdefault(evaluator, {})[name] = json.loads(value)
        except (ValueError, RecursionError):
            options.setdefault(evaluator, {})[name] = value
    return options


def parse_mappings(texts: tuple[str, ...]) -> dict[str, str]:
    """Parse `[EVALUATOR.]FIELD=TEMPLATE` and JSON files of such pairs."""
    mapping: dict[str, str] = {}
    for text in texts:
        place, equals, template = text.partition("=")
        if equals:
            mapping[place.strip()] = template
            continue
        mapping |= _read_mapping(Path(text))
    return mapping


def _read_mapping(path: Path) -> dict[str, str]:
    try:
        return TypeAdapter(dict[str, str]).validate_json(path.read_bytes())
    except OSError as error:
        problem = error.strerror or "cannot be read"
    except ValidationError as error:
        problem = error.errors()[0]["msg"]
    raise ConfigError(
        f"--mapping {path}: {problem}; write FIELD=TEMPLATE, or name a JSON file with one object of "
        "field to template text"
    )
