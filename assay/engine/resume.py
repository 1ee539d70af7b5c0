"""Resume: a run that ended early goes on under its own id, and pays for what is missing alone."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from assay.config import RunConfig
from assay.contracts.json_text import dump_json
from assay.engine.commit import Outcome, judge_errors
from assay.engine.marks import hash_file
from assay.engine.missing import is_done
from assay.engine.prepare import Prepared
from assay.engine.request import RunRequest
from assay.errors import ConfigError
from assay.store.catalog import read_run
from assay.store.folders import find_folder
from assay.store.jobs import read_book
from assay.store.layout import open_store
from assay.store.parts import read_request, write_request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.contracts.json_text import JsonValue

logger = logging.getLogger("assay")
FREE = frozenset(
    {"concurrency", "timeout_s", "limits", "reuse", "max_errors", "name", "labels", "store", "batch_size"}
    | {"allow_graders_network", "datasets"}
)
"""Parts of a configuration that decide how a run goes and not what it computes; files are told by hash."""


def open_resumed(
    reference: str, given: RunConfig | None, changes: Mapping[str, object], store: str
) -> Prepared:
    """Open a run to go on with.

    Args:
        reference: The run, finished or not.
        given: The configuration that the user gave along; None: that of the run.
        changes: Parts of the configuration to take now, of those that do not decide what is computed;
            those of `limits` one by one.
        store: Root of the store.

    Returns:
        The run, as it goes on.

    Raises:
        ConfigError: There is no such run, or dataset or configuration are not those of the run.
        StoreError: The run cannot be read.
    """
    folder = find_folder(open_store(store, create=False), reference)
    request = RunRequest.model_validate(read_request(folder))
    if not request.whole:
        raise ConfigError(
            f"--resume {folder.run_id}: it called no model and ended before its input was read to the end; "
            "run its command again"
        )
    if given is not None:
        _check_config(request.config, given, folder.run_id)
    _check_files(request)
    config = _change(request.config, changes).model_copy(update={"store": store})
    return Prepared(folder, request.model_copy(update={"config": config}), is_changed=True)


def settle_request(prepared: Prepared) -> None:
    """Write how a run goes on, once nobody else works on it.

    Raises:
        ConfigError: Batch jobs of it are under way, whose answers are to be collected first.
        StoreError: It cannot be written.
    """
    book = read_book(prepared.folder)
    if book is not None and book.open:
        run_id = prepared.folder.run_id
        raise ConfigError(
            f"--resume {run_id}: {len(book.open)} batch jobs of it are under way, whose answers are to be "
            f"collected first; go on with: assay batch collect {run_id}"
        )
    if prepared.is_changed:
        write_request(prepared.folder, prepared.request.model_dump(mode="json"))


def list_missing(prepared: Prepared) -> list[int]:
    """Return the batches that are not there, or hold rows that should be asked again."""
    folder = prepared.folder
    return [index for index in range(prepared.request.batches) if not is_done(folder, index)]


def find_outcome(prepared: Prepared) -> Outcome | None:
    """Return how a run ended that has nothing left to ask; None while there is something to do."""
    folder = prepared.folder
    if not folder.commit.is_file():
        return None
    row = read_run(folder.store, folder.run_id)
    if row["status"] != "complete" or list_missing(prepared):
        return None
    config_json = dump_json(prepared.request.config.model_dump(mode="json"))
    exit_code, message = judge_errors(row | {"config_json": config_json})
    told = "the run is complete, there is nothing to ask"
    return Outcome(folder.run_id, "complete", exit_code, f"{told}; {message}" if message else told)


def _check_config(kept: RunConfig, given: RunConfig, run_id: str) -> None:
    before, now = (config.model_dump(mode="json", exclude=set(FREE)) for config in (kept, given))
    changed = [
        f"{place} is {dump_json(was)} in the run and {dump_json(is_now)} now"
        for place, was, is_now in _compare(before, now, "")
    ]
    if changed:
        raise ConfigError(
            f"--resume {run_id}: the configuration is another one: {'; '.join(changed)}; give it as it was, "
            "leave it out to take that of the run, or start a new run with --reuse"
        )


def _compare(
    before: Mapping[str, JsonValue], now: Mapping[str, JsonValue], place: str
) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    for name in dict.fromkeys((*before, *now)):
        was, is_now = before.get(name), now.get(name)
        if isinstance(was, dict) and isinstance(is_now, dict):
            yield from _compare(was, is_now, f"{place}{name}.")
        elif was != is_now:
            yield f"{place}{name}", was, is_now


def _check_files(request: RunRequest) -> None:
    for mark in request.files:
        path = Path(mark.path)
        if not path.is_file():
            logger.warning("%s is gone; the run goes on with the items it holds", path)
        elif hash_file(path) != mark.sha256:
            raise ConfigError(
                f"--resume {request.run_id}: {path} has changed since the run began; put it back as it was, "
                f"or start a new run with --reuse {request.run_id}, which takes the answers of equal rows"
            )


def _change(config: RunConfig, changes: Mapping[str, object]) -> RunConfig:
    limits = {name: value for name, value in changes.items() if name in type(config.limits).model_fields}
    rest = {name: value for name, value in changes.items() if name not in limits}
    merged = config.model_dump() | rest | {"limits": config.limits.model_dump() | limits}
    try:
        return RunConfig.model_validate(merged)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{first['loc'][-1]}: {first['msg']}") from error
