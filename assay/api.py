"""The Python API: run, query and load, with the same engine as the command line."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from signal import Signals
from typing import TYPE_CHECKING, NoReturn, Unpack

from pydantic import TypeAdapter

from assay.config import DEFAULT_STORE
from assay.contracts.arrow import to_arrow
from assay.contracts.tables import SAMPLES, SCORES, Table
from assay.engine.commit import Outcome, judge_errors
from assay.engine.driver import ENGINE as LOCAL
from assay.engine.driver import commit_stopped, drive, drive_ahead, give_up, run_coroutine
from assay.engine.prefect_api import check_api, find_api_url, hush_prefect, temporary_server
from assay.engine.prepare import Preparation, Prepared, begin, prepare
from assay.engine.signals import EXIT_CODES, listening
from assay.engine.tools import Monitor, Silent
from assay.errors import ConfigError, SetupError, UndecidedError
from assay.settings import ENGINES, Engine, ReadSettings, Settings, make_config
from assay.store.catalog import find_run, read_run, read_summary
from assay.store.layout import RunFolder, Store, open_store
from assay.store.parts import scan_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import polars as pl
    import pyarrow as pa

    from assay.config import RunConfig


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
    config = make_config([str(dataset) for dataset in datasets], settings)
    engine = choose_engine(settings.get("engine"))
    outcome = start(open_run(config, engine=engine), engine=engine, monitor=Silent())
    return Run(outcome.run_id, config.store, outcome.exit_code, outcome.message)


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


def start(prepared: Prepared | Preparation, *, engine: Engine, monitor: Monitor) -> Outcome:
    """Run a run that `open_run` prepared to its end with an engine."""
    if isinstance(prepared, Preparation):
        return drive_ahead(prepared, monitor)
    if engine == LOCAL:
        return drive(prepared, monitor)
    with listening(_interrupt) as request:
        try:
            return _start_flow(prepared)
        except (SetupError, UndecidedError) as error:
            give_up(prepared, error, engine="prefect")
        except BaseException as error:
            # Prefect has a SIGTERM handler of its own; its exception carries the number.
            number = request.signal or getattr(error, "signal", None)
            if number not in EXIT_CODES:
                raise
            return commit_stopped(prepared, Signals(number), engine="prefect")


def _start_flow(prepared: Prepared) -> Outcome:
    root = prepared.folder.store.root.absolute()
    hush_prefect()
    with nullcontext() if find_api_url() else temporary_server(root):
        from flows.evaluate import evaluate

        result = run_coroutine(evaluate(store=str(root), run_id=prepared.request.run_id))
    return TypeAdapter(Outcome).validate_python(result)


def _interrupt() -> NoReturn:
    raise KeyboardInterrupt
