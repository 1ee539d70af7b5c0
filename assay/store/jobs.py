"""The jobs of a run in its folder: the book of all jobs, and the files that are sent and fetched."""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 - pydantic reads the annotation
from typing import TYPE_CHECKING, Literal, NamedTuple

import orjson
from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from assay.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

    from assay.store.layout import RunFolder

    JsonObject = dict[str, JsonValue]

State = Literal["prepared", "creating", "sent", "settled"]


class JobRecord(BaseModel):
    """One job: the requests of one file to one model.

    Attributes:
        part: Number of its files in the run, from 1.
        seat: Who asks: `target`, `judge`, or `judge 2` of a jury.
        model: Model or deployment.
        lines: Requests.
        size: Its bytes.
        at: When the file was written.
        state: `creating` while nobody knows whether the server has made the job, `settled` once its answers
            are kept.
        file_id: The file at the server.
        job_id: The job at the server.
        status: What the server said last.
        done: Requests that were answered.
        failed: Requests that failed.
        message: Why the job failed as a whole.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    part: int
    seat: str
    model: str
    lines: int
    size: int
    at: datetime
    state: State = "prepared"
    file_id: str | None = None
    job_id: str | None = None
    status: str = ""
    done: int = 0
    failed: int = 0
    message: str = ""


class Lesson(BaseModel):
    """A refusal that taught which parameters a model does not take.

    Attributes:
        seat: Who was refused.
        sent: The parameters of the request, without its texts.
        complaint: What the server said.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    seat: str
    sent: dict[str, JsonValue]
    complaint: str


class JobBook(BaseModel):
    """All jobs of a run.

    Attributes:
        is_submitted: Whether the user was told of the first jobs of the run.
        jobs: The jobs, oldest first.
        lessons: What the models were found not to take.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    is_submitted: bool = False
    jobs: tuple[JobRecord, ...] = ()
    lessons: tuple[Lesson, ...] = ()

    @property
    def open(self) -> tuple[JobRecord, ...]:
        """The jobs whose answers are not kept yet."""
        return tuple(job for job in self.jobs if job.state != "settled")

    def update(self, changed: JobRecord) -> JobBook:
        """Return the book with one job as it is now."""
        jobs = tuple(changed if job.part == changed.part else job for job in self.jobs)
        return self.model_copy(update={"jobs": jobs})

    def drop(self, part: int) -> JobBook:
        """Return the book without one job."""
        return self.model_copy(update={"jobs": tuple(job for job in self.jobs if job.part != part)})


class Slot(NamedTuple):
    """Where the answer to one line belongs.

    Attributes:
        segment: Segment of the ledger.
        key: Key there.
        nonce: The code that fences the material in the request; empty without one.
        budget: Longest answer that was asked for, in tokens.
        fixed: Whether an answer that is cut off stays cut.
    """

    segment: int
    key: str
    nonce: str
    budget: int | None
    fixed: bool


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The files of the jobs of a run."""

    folder: RunFolder

    @property
    def path(self) -> Path:
        """The folder of all of them."""
        return self.folder.path / "batch"

    @property
    def book(self) -> Path:
        """The book."""
        return self.path / "jobs.json"

    def requests(self, part: int) -> Path:
        """Return the file that is sent."""
        return self.path / f"part-{part:05d}.requests.jsonl"

    def slots(self, part: int) -> Path:
        """Return the file that says where each answer belongs."""
        return self.path / f"part-{part:05d}.slots.jsonl"

    def fetched(self, part: int, kind: Literal["output", "error"]) -> Path:
        """Return a file that was fetched."""
        return self.path / f"part-{part:05d}.{kind}.jsonl"

    def discard(self, part: int) -> None:
        """Delete the files of a part; absent ones are fine."""
        fetched = (self.fetched(part, "output"), self.fetched(part, "error"))
        for path in (self.requests(part), self.slots(part), *fetched):
            with suppress(OSError):  # they take space and do no harm
                path.unlink(missing_ok=True)

    def discard_drafts(self, book: JobBook) -> None:
        """Delete files of parts that never came into the book, as their writing was cut short."""
        known = {job.part for job in book.jobs}
        for path in self.path.glob("part-*"):
            number = path.name[len("part-") :].partition(".")[0]
            if number.isdecimal() and int(number) not in known:
                self.discard(int(number))


def read_book(folder: RunFolder) -> JobBook | None:
    """Return the book of a run; None when it never had jobs.

    Raises:
        StoreError: It cannot be read.
    """
    path = JobFiles(folder).book
    try:
        return JobBook.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise StoreError(f"{path}: not a readable book of jobs: {error}") from error


def write_book(folder: RunFolder, book: JobBook) -> None:
    """Write the book, whole or not at all, and on the disk once this returns.

    Raises:
        StoreError: It cannot be written.
    """
    path = JobFiles(folder).book
    draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with draft.open("w", encoding="utf-8") as file:
                file.write(book.model_dump_json(indent=1))
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise _explain(path, error) from error


class PartWriter:
    """Writes the requests of one part, and where their answers belong.

    Attributes:
        record: The job that is to be made of it, with what was written so far.
    """

    def __init__(self, files: JobFiles, record: JobRecord) -> None:
        """Make the files.

        Raises:
            StoreError: They cannot be made.
        """
        self.record, self._path = record, files.requests(record.part)
        try:
            files.path.mkdir(parents=True, exist_ok=True)
            self._files = (self._path.open("wb"), files.slots(record.part).open("wb"))
        except OSError as error:
            raise _explain(self._path, error) from error

    def append(self, name: str, line: bytes, slot: Slot) -> None:
        """Append one request.

        Args:
            name: Its id in the job.
            line: The whole line, line feed included.
            slot: Where its answer belongs.

        Raises:
            StoreError: It cannot be written.
        """
        try:
            self._files[0].write(line)
            self._files[1].write(orjson.dumps([name, *slot]) + b"\n")
        except OSError as error:
            raise _explain(self._path, error) from error
        lines, size = self.record.lines + 1, self.record.size + len(line)
        self.record = self.record.model_copy(update={"lines": lines, "size": size})

    def close(self) -> None:
        """Bring the files to the disk.

        Raises:
            StoreError: The disk did not take them.
        """
        try:
            for file in self._files:
                file.flush()
                os.fsync(file.fileno())
                file.close()
        except OSError as error:
            raise _explain(self._path, error) from error


def read_slots(files: JobFiles, part: int) -> dict[str, Slot]:
    """Return where the answers of a part belong, by the id of the request.

    Raises:
        StoreError: The file cannot be read.
    """
    path = files.slots(part)
    try:
        with path.open("rb") as lines:
            return {name: Slot(*rest) for name, *rest in map(orjson.loads, lines)}
    except (OSError, ValueError, TypeError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error


def read_requests(files: JobFiles, part: int, names: Container[str]) -> Iterator[tuple[str, JsonObject]]:
    """Yield id and body of those requests of a part that are named.

    Raises:
        StoreError: The file cannot be read.
    """
    path = files.requests(part)
    try:
        with path.open("rb") as lines:
            for line in lines:
                entry = json.loads(line)
                if entry["custom_id"] in names:
                    yield entry["custom_id"], entry["body"]
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error


def _explain(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path}: cannot be written: {error.strerror}; free some space or make the folder writable"
    )
