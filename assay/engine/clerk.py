"""The clerk of a run's jobs: makes each once, looks at them, keeps their answers, and asks for the rest."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.chat.jobs import ENDED
from assay.chat.traffic import Traffic
from assay.engine.collecting import fetch_files, keep_answers
from assay.engine.commit import EXIT_UNDECIDED, Outcome, commit
from assay.engine.driver import ENGINE, name_resume
from assay.engine.queueing import Queue, list_seats, open_seat, swap_models, walk_batches
from assay.engine.tools import open_tools
from assay.errors import SetupError, UndecidedError
from assay.store.jobs import JobFiles, write_book

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

    from assay.chat.jobs import Job
    from assay.chat.queued import JobModel
    from assay.engine.prepare import Prepared
    from assay.engine.queueing import Split
    from assay.engine.tools import Monitor
    from assay.store.jobs import JobBook, JobRecord
    from assay.store.layout import RunFolder


@dataclass(frozen=True, slots=True)
class Standing:
    """How a run stands that is asked by jobs.

    Attributes:
        jobs: Jobs whose answers are not kept yet.
        outcome: How the run ended; None while jobs are under way.
    """

    jobs: tuple[JobRecord, ...]
    outcome: Outcome | None = None


def name_collect(prepared: Prepared) -> str:
    """Return how a run with jobs is gone on with."""
    return name_resume(prepared).removeprefix("go on with: ").replace("run --resume", "batch collect")


@dataclass(slots=True)
class Clerk:
    """Goes on with a run by jobs; the book is written after every step that a repetition must know of.

    Attributes:
        prepared: The run.
        monitor: Watches it; None where nothing of it is worked on.
        split: How much a job may hold.
        book: Its jobs.
        is_walked: Whether all of it was walked through.
        left: Requests without an answer that the walk found.
        told: What the servers said last, by part.
    """

    prepared: Prepared
    monitor: Monitor | None
    split: Split
    book: JobBook
    is_walked: bool = False
    left: int = 0
    told: dict[int, Job] = field(default_factory=dict[int, "Job"])

    @property
    def folder(self) -> RunFolder:
        """Where the run is kept."""
        return self.prepared.folder

    async def submit(self) -> None:
        """Make the first jobs of the run; an attempt that was cut short goes on where it was."""
        async with self._open_models() as models:
            if not self.book.jobs:
                await self._walk(models, sends=True)
            await self._send(models)

    async def collect(self, *, sends: bool) -> None:
        """Keep the answers of jobs that have all ended, and make new ones of what is left.

        Raises:
            UndecidedError: A job failed as a whole.
        """
        if sends and not self.book.jobs:
            await self.submit()
            return
        async with self._open_models() as models:
            await (self._send(models) if sends else self._withdraw(models))
            await self._look(models)
            if any(job.status not in ENDED for job in self.book.open):
                return
            self._write(self.book.model_copy(update={"is_submitted": True}))
            await self._keep(models)
            await self._walk(models, sends=sends)
            await self._send(models)

    async def look(self) -> None:
        """Take note of how the jobs are, and write nothing."""
        async with self._open_models() as models:
            await self._look(models)

    def end(self) -> Standing:
        """Commit the run where all of it was walked through and nothing is under way."""
        if self.book.open or not self.is_walked:
            return Standing(self.book.open)
        if not self.left:
            return Standing((), commit(self.prepared, engine=ENGINE))
        outcome = commit(self.prepared, engine=ENGINE, status="partial")
        message = (
            f"{self.left} requests have no answer, their rows are skipped; what was answered is committed as "
            f"partial; {name_collect(self.prepared)} sends them as new jobs, and {name_resume(self.prepared)}"
        ).replace("go on with: ", "")
        return Standing(
            (), Outcome(outcome.run_id, "partial", EXIT_UNDECIDED, f"{message} asks them at once")
        )

    @asynccontextmanager
    async def _open_models(self) -> AsyncGenerator[dict[str, JobModel]]:
        config = self.prepared.request.config
        traffic = Traffic(config, run_id=self.folder.run_id)
        async with AsyncExitStack() as opened:
            models: dict[str, JobModel] = {}
            for seat in list_seats(config):
                models[seat] = open_seat(config, seat, traffic)
                opened.push_async_callback(models[seat].aclose)
            for lesson in self.book.lessons:
                if lesson.seat in models:
                    models[lesson.seat].learn(lesson.sent, lesson.complaint)
            yield models

    async def _walk(self, models: dict[str, JobModel], *, sends: bool) -> None:
        """Walk through the run; the requests without an answer come into the book as jobs to be made."""
        if self.monitor is None:
            return
        JobFiles(self.folder).discard_drafts(self.book)
        queue = Queue(self.folder, self.book, self.split, is_sent=sends)
        async with open_tools(self.prepared.request.config, self.folder) as tools:
            self.monitor.watch(tools.traffic)
            try:
                await walk_batches(self.prepared, swap_models(tools, models), queue, self.monitor)
            finally:
                made = queue.close()
        self.is_walked, self.left = True, queue.count
        if made:
            self._write(self.book.model_copy(update={"jobs": (*self.book.jobs, *made)}))

    async def _send(self, models: dict[str, JobModel]) -> None:
        """Make the jobs in the book that are not made yet, each once, whatever ended the attempt before."""
        for job in self.book.open:
            if job.job_id is None:
                await self._make(job, models[job.seat])

    async def _withdraw(self, models: dict[str, JobModel]) -> None:
        """Drop the jobs that are not made yet; their requests are found again by the next walk."""
        for job in self.book.open:
            if job.state == "creating":
                marks, since = self._mark(job), job.at.timestamp()
                made = await models[job.seat].desk.find(job.file_id or "", marks, since)
                if made is not None:
                    self._change(job, state="sent", job_id=made.job_id, status=made.status)
                    continue
            if job.job_id is None:
                self._write(self.book.drop(job.part))
                JobFiles(self.folder).discard(job.part)

    def _mark(self, job: JobRecord) -> dict[str, str]:
        return {"assay_run": self.folder.run_id, "part": f"{job.part:05d}"}

    async def _make(self, job: JobRecord, model: JobModel) -> None:
        desk, path = model.desk, JobFiles(self.folder).requests(job.part)
        marks = self._mark(job)
        if job.file_id is None:
            with path.open("rb") as file:
                file_id = await desk.upload(file, f"assay-{self.folder.run_id}-{path.name}")
            job = self._change(job, file_id=file_id)
        file_id, made = job.file_id or "", None
        if job.state == "creating":
            made = await desk.find(file_id, marks, job.at.timestamp())
        if made is None:
            job = self._change(job, state="creating")
            try:
                made = await desk.create(file_id, marks)
            except SetupError:  # it was refused, so there is none
                self._change(job, state="prepared")
                raise
        self._change(job, state="sent", job_id=made.job_id, status=made.status)

    async def _look(self, models: dict[str, JobModel]) -> None:
        for job in self.book.open:
            if job.job_id is not None:
                told = self.told[job.part] = await models[job.seat].desk.fetch(job.job_id)
                said = {name: getattr(told, name) for name in ("status", "done", "failed", "message")}
                self.book = self.book.update(job.model_copy(update=said))

    async def _keep(self, models: dict[str, JobModel]) -> None:
        """Keep the answers of all jobs.

        Raises:
            UndecidedError: A job failed as a whole.
        """
        failed: list[JobRecord] = []
        for job in self.book.open:
            told, model = self.told[job.part], models[job.seat]
            if told.status == "failed":
                failed.append(job)
            if told.output_id or told.error_id or told.status != "failed":
                await fetch_files(self.folder, job.part, model, told)
                lessons = await keep_answers(self.folder, job, model)
                known = (*self.book.lessons, *lessons)
                self.book = self.book.model_copy(update={"lessons": known})
            self._change(job, state="settled")
            JobFiles(self.folder).discard(job.part)
        if failed:
            raise UndecidedError(_describe_failed(failed, self.prepared))

    def _change(self, job: JobRecord, **changes: object) -> JobRecord:
        job = job.model_copy(update=changes)
        self._write(self.book.update(job))
        return job

    def _write(self, book: JobBook) -> None:
        write_book(self.folder, book)
        self.book = book


def _describe_failed(jobs: Iterable[JobRecord], prepared: Prepared) -> str:
    told = "; ".join(
        f"job {job.job_id} failed as a whole: {job.message or 'no reason given'}" for job in jobs
    )
    resume = name_resume(prepared).removeprefix("go on with: ")
    return (
        f"{told}; other answers are kept; `{name_collect(prepared)}` sends its requests again, `{resume}` "
        "asks them at once"
    )
