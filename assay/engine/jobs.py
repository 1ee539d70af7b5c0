"""Jobs: a run whose requests go to the Batch API, from the first submission to the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.engine.clerk import Clerk, name_collect
from assay.engine.driver import drop_unscored, run_coroutine
from assay.engine.prepare import Prepared, pin_runs
from assay.engine.queueing import Split, list_seats
from assay.engine.request import RunRequest
from assay.engine.resume import open_resumed
from assay.errors import ConfigError, SetupError, UndecidedError
from assay.store.folders import find_folder, list_unfinished
from assay.store.jobs import JobBook, read_book, write_book
from assay.store.layout import open_store
from assay.store.locking import lock_run
from assay.store.parts import read_request

if TYPE_CHECKING:
    from assay.config import RunConfig
    from assay.engine.clerk import Standing
    from assay.engine.tools import Monitor
    from assay.store.jobs import JobRecord


def check_jobs(config: RunConfig) -> None:
    """Refuse what jobs cannot do.

    Raises:
        ConfigError: No model is asked, or a limit is given that cannot hold.
    """
    if not list_seats(config):
        raise ConfigError("--batch submit: nothing asks a model here; name one with --model or --judge")
    if config.limits.is_budget:
        raise ConfigError(
            "--batch submit: --max-cost, --max-tokens-total and --deadline hold for calls and not for jobs; "
            "leave them out, and see before what it comes to with assay plan: jobs cost half of that"
        )


def find_cut_short(config: RunConfig) -> Prepared | None:
    """Return the run of the same configuration and datasets whose submission was not confirmed, if any.

    Raises:
        StoreError: The store cannot be read.
    """
    try:
        store = open_store(config.store, create=False)
    except ConfigError:
        return None
    for folder in list_unfinished(store):
        book = read_book(folder)
        if book is None or book.is_submitted:
            continue
        try:
            return open_resumed(folder.run_id, pin_runs(config), {}, config.store)
        except ConfigError:
            continue  # another one
    return None


def open_submitted(reference: str, store: str) -> Prepared:
    """Open a run that was submitted.

    Raises:
        ConfigError: There is no such run, or it has no jobs.
        StoreError: It cannot be read.
    """
    folder = find_folder(open_store(store, create=False), reference)
    if read_book(folder) is None:
        raise ConfigError(
            f"run {folder.run_id} has no batch jobs; `assay run --batch submit` makes a run that has, "
            f"`assay run --resume {folder.run_id}` goes on with this one"
        )
    request = RunRequest.model_validate(read_request(folder))
    config = request.config.model_copy(update={"store": store})
    return Prepared(folder, request.model_copy(update={"config": config}))


def submit_run(prepared: Prepared, monitor: Monitor, split: Split | None = None) -> Standing:
    """Send what a run asks as jobs; what is known already is scored, and a run without a question committed.

    A submission that was cut short, or not confirmed, goes on where it was.

    Raises:
        ConfigError: The run has jobs already.
        SetupError: Key, model or URL are wrong; nothing is left in the store but what was paid for.
        UndecidedError: A server or the disk failed; the same command goes on.
    """
    with lock_run(prepared.folder):
        book = read_book(prepared.folder) or JobBook()
        if book.is_submitted:
            raise ConfigError(
                f"run {prepared.folder.run_id} has batch jobs already; go on with: {name_collect(prepared)}"
            )
        write_book(prepared.folder, book)
        clerk = Clerk(prepared, monitor, split or Split(), book)
        try:
            run_coroutine(clerk.submit())
        except SetupError as error:
            is_safe = not any(job.job_id or job.state == "creating" for job in clerk.book.jobs)
            if is_safe and drop_unscored(prepared):
                raise
            raise UndecidedError(
                f"{error}; what was made is kept; go on with: {name_collect(prepared)}"
            ) from error
        return clerk.end()


def confirm_submission(prepared: Prepared) -> None:
    """Note that the user was told of the jobs of a submission; the same command now makes a run of its own.

    Raises:
        StoreError: It cannot be written.
    """
    with lock_run(prepared.folder):
        if (book := read_book(prepared.folder)) is not None:
            write_book(prepared.folder, book.model_copy(update={"is_submitted": True}))


def collect_run(
    prepared: Prepared, monitor: Monitor, *, sends: bool = True, split: Split | None = None
) -> Standing:
    """Keep the answers of all jobs, score what can be scored, and send the rest as new jobs.

    While any job is under way nothing changes. When nothing is left to ask, the run is committed.

    Args:
        prepared: A run that was submitted.
        monitor: Watches it.
        sends: Whether new jobs are made; otherwise rows without an answer are skipped, and the run is
            committed as `partial`.
        split: How much a job may hold.

    Raises:
        SetupError: Key or URL are wrong.
        UndecidedError: A server or the disk failed, or a job failed as a whole; the same command goes on.
    """
    with lock_run(prepared.folder):
        book = read_book(prepared.folder) or JobBook()
        clerk = Clerk(prepared, monitor, split or Split(), book)
        run_coroutine(clerk.collect(sends=sends))
        return clerk.end()


def look_at_jobs(prepared: Prepared) -> tuple[JobRecord, ...]:
    """Return all jobs of a run as their servers tell of them now; nothing is written.

    Raises:
        SetupError: Key or URL are wrong.
        UndecidedError: A server does not answer.
    """
    clerk = Clerk(prepared, None, Split(), read_book(prepared.folder) or JobBook())
    run_coroutine(clerk.look())
    return clerk.book.jobs
