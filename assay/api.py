"""The Python API: run, query and load, with the same engine as the command line."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from signal import Signals
from typing import TYPE_CHECKING, NoReturn, Unpack, cast

from pydantic import TypeAdapter

from assay.config import DEFAULT_STORE, Reading
from assay.contracts.arrow import to_arrow
from assay.contracts.hiding import refuse_secrets
from assay.contracts.tables import SAMPLES, SCORES, Table
from assay.engine.commit import Outcome, judge_errors
from assay.engine.driver import ENGINE as LOCAL
from assay.engine.driver import (
    commit_stopped,
    describe_stop,
    drive,
    drive_ahead,
    give_up,
    name_resume,
    run_coroutine,
)
from assay.engine.prefect_api import check_api, find_api_url, hush_prefect, temporary_server
from assay.engine.prepare import Preparation, Prepared, begin, prepare
from assay.engine.resume import find_outcome, open_resumed, settle_request
from assay.engine.signals import EXIT_CODES, listening
from assay.engine.tools import Monitor, Silent
from assay.errors import ConfigError, SetupError, UndecidedError
from assay.settings import ENGINES, Engine, ReadSettings, Settings, make_config, read_seconds
from assay.store.catalog import find_run, read_run, read_summary
from assay.store.layout import RunFolder, Store, open_store
from assay.store.locking import lock_run
from assay.store.parts import scan_parts
from transforms.statuses import derive_statuses

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import polars as pl
    import pyarrow as pa

    from assay.config import RunConfig

CHANGES = {
    **{name: name for name in ("concurrency", "timeout_s", "rpm", "tpm", "max_wait_s", "deadline_s")},
    **{name: name for name in ("max_cost", "prices", "reuse", "max_errors", "name", "labels")},
    "max_tokens_total": "max_tokens",
    "allow_graders_network": "allow_graders_network",
}
"""Settings that a resumed run takes anew, with their names in the configuration."""


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        run_id: The run.
        store: Root of the store that holds it.
        exit_code: What the command line would exit with.
        message: Why, when it is not 0.
    """

    run_id: str
    store: str
    exit_code: int = 0
    message: str = ""

    @cached_property
    def scores(self) -> pl.DataFrame:
        """Return SCORES: one row per sample, evaluator and metric."""
        return self._read(SCORES)

    @cached_property
    def samples(self) -> pl.DataFrame:
        """Return SAMPLES: one row per turn and trial."""
        return self._read(SAMPLES)

    @cached_property
    def summary(self) -> pl.DataFrame:
        """Return SUMMARY: one row per evaluator and slice."""
        return read_summary(self._store, self.run_id)

    @cached_property
    def statuses(self) -> pl.DataFrame:
        """Return how every turn and conversation came out; see `transforms.statuses.derive_statuses`."""
        folder = RunFolder(self._store, self.run_id)
        return derive_statuses(scan_parts(folder, SAMPLES), scan_parts(folder, SCORES)).collect()

    @property
    def info(self) -> dict[str, object]:
        """Return the row of RUNS."""
        return read_run(self._store, self.run_id)

    def arrow(self) -> pa.Table:
        """Return the scores as an Arrow table."""
        return to_arrow(self.scores)

    @property
    def _store(self) -> Store:
        return open_store(self.store, create=False)

    def _read(self, table: Table) -> pl.DataFrame:
        return scan_parts(RunFolder(self._store, self.run_id), table).collect()


def run(*datasets: str | Path, **settings: Unpack[Settings]) -> Run:
    """Evaluate datasets and commit the result to the store.

    Args:
        *datasets: Dataset files or project folders.
        **settings: As on the command line; see `Settings`.

    Returns:
        The run, whatever its scores; `exit_code` 3 says that too many evaluations were errors.

    Raises:
        SetupError: Nothing was scored; the message says what to change.
    """
    engine = choose_engine(settings.get("engine"))
    names = [str(dataset) for dataset in datasets]
    if "resume" in settings:
        prepared = resume(names, settings)
    else:
        prepared = open_run(make_config(names, settings), engine=engine)
    outcome = start(prepared, engine=engine, monitor=Silent())
    return Run(outcome.run_id, str(prepared.folder.store.root), outcome.exit_code, outcome.message)


def query(sql: str, *, store: str | Path = DEFAULT_STORE) -> pl.DataFrame:
    """Answer read-only SQL over `runs`, `items`, `plan`, `samples`, `scores` and `summary`."""
    from assay.store.query import query as query_store  # DuckDB only where SQL is asked

    return query_store(open_store(str(store), create=False), sql)


def get_run(reference: str = "latest", *, store: str | Path = DEFAULT_STORE) -> Run:
    """Return a past run by id, unique prefix, name, `latest`, `latest~N` or `label:k=v`."""
    opened = open_store(str(store), create=False)
    run_id = find_run(opened, reference)
    exit_code, message = judge_errors(read_run(opened, run_id))
    return Run(run_id, str(store), exit_code, message)


def load(
    *datasets: str | Path, mapping: Mapping[str, str] | None = None, **reading: Unpack[ReadSettings]
) -> pa.Table:
    """Read datasets as the Arrow table of their items, without running anything.

    Args:
        *datasets: Dataset files, globs or folders; any table will do. Standard columns that a file does
            not have are null.
        mapping: Field to template or column name, for `query`, `response`, `expected_response` and
            `context`.
        **reading: How the files are read; the names are those of `assay.config.Reading`.

    Raises:
        InputError: A file cannot be read; the message names the place.
        ConfigError: A mapping cannot work, or ids clash.
    """
    from assay.engine.intake import load_items

    config = make_config([str(dataset) for dataset in datasets], {"mapping": dict(mapping or {}), **reading})
    return to_arrow(load_items(config))


def choose_engine(asked: Engine | None) -> Engine:
    """Return the engine: the one asked for, else Prefect where an API is configured, else local.

    Raises:
        ConfigError: There is no such engine, or a configured Prefect API does not answer.
    """
    if asked is not None and asked not in ENGINES:
        raise ConfigError.unknown("engine", asked, ENGINES)
    engine = asked or ("prefect" if find_api_url() else LOCAL)
    url = find_api_url()
    if engine == "prefect" and url is not None:
        check_api(url)
    return engine


def open_run(
    config: RunConfig, *, engine: Engine, on_rows: Callable[[int], None] = lambda _: None
) -> Prepared | Preparation:
    """Prepare a run for an engine; the local one may read the rest of a long input while it works.

    Raises:
        SetupError: The input, configuration or selection cannot work; nothing is left in the store.
    """
    with listening(_interrupt) as request:
        try:
            return begin(config, on_rows) if engine == LOCAL else prepare(config, on_rows)
        except KeyboardInterrupt:
            if request.signal == Signals.SIGTERM:
                raise SystemExit(EXIT_CODES[request.signal]) from None
            raise


def resume(datasets: list[str], settings: Settings) -> Prepared:
    """Open the run that `settings` name under `resume`.

    Settings of how a run goes, such as `concurrency` or `max_cost`, take the place of those of the run. With
    any other, the whole command has to be that of the run.

    Raises:
        ConfigError: There is no such run, or dataset or configuration are not those of the run.
    """
    usual = Reading().model_dump()
    given = {
        name: value
        for name, value in settings.items()
        if value not in (None, [], {}, ()) and (name not in usual or value != usual[name])
    }
    refuse_secrets(given)
    reference, store = str(given.pop("resume")), str(settings.get("store", DEFAULT_STORE))
    changes = {CHANGES[name]: given.pop(name) for name in CHANGES if name in given}
    for name in ("timeout_s", "max_wait_s", "deadline_s"):
        if name in changes:
            changes[name] = read_seconds(name, cast("float | str", changes[name]))
    for name in ("max_errors", "prices"):
        if name in changes:
            changes[name] = str(changes[name])
    asked = datasets or given.keys() - {"store", "engine", "config"}
    config = make_config(datasets, settings) if asked else None
    return open_resumed(reference, config, changes, store)


def start(prepared: Prepared | Preparation, *, engine: Engine, monitor: Monitor) -> Outcome:
    """Run a run that `open_run` or `resume` opened to its end with an engine; one that is done is left alone.

    Raises:
        StoreError: Another process works on the run.
    """
    with lock_run(prepared.folder):
        if isinstance(prepared, Preparation):
            return drive_ahead(prepared, monitor)
        if (outcome := find_outcome(prepared)) is not None:
            return outcome
        settle_request(prepared)
        return drive(prepared, monitor) if engine == LOCAL else _start_apart(prepared)


def _start_apart(prepared: Prepared) -> Outcome:
    def stop() -> None:
        from assay.engine.steps import stop_calls

        if not stop_calls(prepared.folder.run_id):
            raise KeyboardInterrupt

    with listening(stop, name_resume(prepared)) as request:
        try:
            outcome = _start_flow(prepared)
        except (SetupError, UndecidedError) as error:
            give_up(prepared, error, engine="prefect")
        except BaseException as error:
            # Prefect has a SIGTERM handler of its own; its exception carries the number.
            number = request.signal or getattr(error, "signal", None)
            if number not in EXIT_CODES:
                raise
            return commit_stopped(prepared, Signals(number), engine="prefect")
    return outcome if request.signal is None else describe_stop(prepared, request.signal)


def _start_flow(prepared: Prepared) -> Outcome:
    root = prepared.folder.store.root.absolute()
    hush_prefect()
    with nullcontext() if find_api_url() else temporary_server(root):
        from flows.evaluate import evaluate

        result = run_coroutine(evaluate(store=str(root), run_id=prepared.request.run_id))
    return TypeAdapter(Outcome).validate_python(result)


def _interrupt() -> NoReturn:
    raise KeyboardInterrupt
