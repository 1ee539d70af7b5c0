"""The three steps by paths and ids alone, for drivers that run elsewhere."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from assay.config import RunConfig
from assay.engine.batch import Batch, run_batch
from assay.engine.commit import Outcome, commit
from assay.engine.driver import drop_unscored
from assay.engine.prepare import Prepared, prepare
from assay.engine.request import RunRequest
from assay.engine.tools import Silent, open_tools
from assay.errors import ConfigError, SetupError
from assay.store.layout import RunFolder, open_store
from assay.store.parts import read_request


def prepare_file(path: str) -> Prepared:
    """Prepare the run that a JSON file of a RunConfig describes.

    Raises:
        ConfigError: The file is missing or not a run configuration.
    """
    try:
        config = RunConfig.model_validate_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return prepare(config)


def load_prepared(store: str, run_id: str) -> Prepared:
    """Return a prepared run from its folder."""
    folder = RunFolder(open_store(store, create=False), run_id)
    return Prepared(folder, RunRequest.model_validate(read_request(folder)))


async def work_batch(store: str, run_id: str, index: int) -> int:
    """Work on one batch with tools of its own; return how many evaluations ended in an error.

    Raises:
        SetupError: A key, model or URL is wrong; a run without any scores is then gone from the store.
    """
    prepared = load_prepared(store, run_id)
    config = prepared.request.config
    try:
        async with open_tools(config) as tools:
            return await run_batch(Batch(prepared.folder, index, config, tools, Silent()))
    except SetupError:
        drop_unscored(prepared)
        raise


def commit_prepared(store: str, run_id: str, *, engine: str, flow_run_id: str | None) -> Outcome:
    """Commit a run whose batches are done."""
    return commit(load_prepared(store, run_id), engine=engine, flow_run_id=flow_run_id)
