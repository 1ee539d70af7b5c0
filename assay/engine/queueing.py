"""Queueing: a walk over the batches of a run in which requests become lines of files, not calls."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from assay.chat.halt import QUEUED
from assay.chat.queued import QueuedError, open_job_model
from assay.contracts.chat import ChatReply
from assay.engine.batch import Batch, run_batch
from assay.engine.embedding import KIND as EMBEDDING
from assay.engine.recording import BatchRecorder, read_outcome, write_outcome
from assay.errors import CallError
from assay.store.jobs import JobFiles, JobRecord, PartWriter, Slot
from assay.targets.conversation import ConversationTarget
from assay.targets.model import ModelAnswerer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.chat.meter import Meter
    from assay.chat.queued import JobModel
    from assay.chat.traffic import Traffic
    from assay.config import RunConfig
    from assay.contracts.json_text import JsonValue
    from assay.engine.prepare import Prepared
    from assay.engine.tools import Monitor, Tools
    from assay.store.jobs import JobBook
    from assay.store.layout import RunFolder
    from assay.store.ledger import Segment
    from assay.store.past import PastCalls

    JsonObject = dict[str, JsonValue]

MAX_SENDS = 3  # of a request whose failure may pass
NAME_DIGITS = 48  # of a key, in the id of a request: with the segment before it no more than 64 characters
TARGET, JUDGE = "target", "judge"  # seats


@dataclass(frozen=True, slots=True)
class Split:
    """How much one job may hold.

    Attributes:
        lines: Requests; both services name 50,000 as what any job may hold.
        size: Bytes; both name 200 MB.
    """

    lines: int = 50_000
    size: int = 200_000_000


@dataclass(frozen=True, slots=True)
class Note:
    """What the jobs before came to for a request that has no answer yet.

    Attributes:
        part: The last of these jobs.
        tries: Jobs that failed to answer it, but for those that taught which parameters to leave out.
        code: Why it has no answer.
        message: The same, for people.
        is_final: Whether asking again would not help.
        room: Room to ask again with, where an answer was cut off.
        cut: That answer.
    """

    part: int = 0
    tries: int = 0
    code: str = QUEUED
    message: str = ""
    is_final: bool = False
    room: int | None = None
    cut: ChatReply | None = None


def find_note(segment: Segment, key: str) -> Note:
    """Return the note of a key; an empty one where there is none."""
    found = segment.find(_hash_note(key))
    if found is None:
        return Note()
    cut = read_outcome({"reply": found["cut"]}) if isinstance(found.get("cut"), dict) else None
    known = {name: found[name] for name in ("part", "tries", "code", "message", "is_final", "room")}
    return Note(**cast("dict[str, Any]", known), cut=cut if isinstance(cut, ChatReply) else None)


def keep_note(segment: Segment, key: str, note: Note) -> None:
    """Write a note beside the answers; nothing else finds it there."""
    now = datetime.now(UTC)
    written: JsonObject = {
        "at": now.isoformat(timespec="milliseconds"),
        "part": note.part,
        "tries": note.tries,
        "code": note.code,
        "message": note.message,
        "is_final": note.is_final,
        "room": note.room,
        "cut": None if note.cut is None else write_outcome(note.cut, now)["reply"],
    }
    segment.append(_hash_note(key), written)


def _hash_note(key: str) -> str:
    return hashlib.sha256(f"{key} note".encode()).hexdigest()


class Queue:
    """Takes the requests of a walk, each into a file of who asks it.

    Attributes:
        is_sent: Whether they are to be sent; otherwise they are counted alone, and their rows are skipped.
        count: Requests so far.
    """

    def __init__(self, folder: RunFolder, book: JobBook, split: Split, *, is_sent: bool) -> None:
        """Start after the last part in the book."""
        self.is_sent, self.count = is_sent, 0
        self._files, self._split = JobFiles(folder), split
        self._next = max((job.part for job in book.jobs), default=0) + 1
        self._open: dict[str, PartWriter] = {}
        self._full: list[JobRecord] = []

    def add(self, segment: int, key: str, asked: QueuedError, room: int | None) -> None:
        """Write one request down.

        Args:
            segment: Segment of the ledger its answer belongs to.
            key: Key there.
            asked: Who is asked, and what.
            room: Longest answer, where it is another one than the request says.

        Raises:
            CallError: `bad_request`, the request cannot be written.
            StoreError: The file cannot be written.
        """
        request, model = asked.request, asked.model
        name = f"{segment}-{key[:NAME_DIGITS]}"
        line = model.write_line(name, request, room)
        self.count += 1
        if self.is_sent:
            slot = Slot(segment, key, request.nonce, request.max_output_tokens, request.fixed_budget)
            self._choose_writer(model, len(line)).append(name, line, slot)

    def close(self) -> list[JobRecord]:
        """Bring everything to the disk and return the jobs to be made."""
        for seat in list(self._open):
            self._close(seat)
        return sorted(self._full, key=lambda job: job.part)

    def _choose_writer(self, model: JobModel, size: int) -> PartWriter:
        seat = model.seat
        writer = self._open.get(seat)
        if writer is not None and (
            writer.record.lines >= self._split.lines or writer.record.size + size > self._split.size
        ):
            self._close(seat)
        if seat not in self._open:
            record = JobRecord(
                part=self._next, seat=seat, model=model.place.model, lines=0, size=0, at=datetime.now(UTC)
            )
            self._open[seat] = PartWriter(self._files, record)
            self._next += 1
        return self._open[seat]

    def _close(self, seat: str) -> None:
        writer = self._open.pop(seat)
        writer.close()
        self._full.append(writer.record)


class QueueRecorder(BatchRecorder):
    """Finds the answers of one batch, and queues what has none.

    A request whose jobs failed for good has their failure. Texts are not embedded while anything of the batch
    waits, as they would be embedded once more with the rest.
    """

    def __init__(
        self, queue: Queue, index: int, segment: Segment, past: PastCalls | None, meter: Meter
    ) -> None:
        super().__init__(segment, past, meter)
        self._queue, self._index = queue, index

    def find(self, kind: str, request: str) -> tuple[str, ChatReply | CallError | None]:
        """Look a request up; an answer that a job of this run gave is no answer of an earlier run."""
        key, known = super().find(kind, request)
        if isinstance(known, ChatReply):
            entry = self._segment.find(key)
            return key, replace(known, from_ledger=False) if entry and "job" in entry else known
        if known is not None:
            return key, known
        if kind == EMBEDDING and self.waiting:
            return key, CallError(QUEUED, "not asked yet: other answers of its batch are to come", attempts=0)
        note = find_note(self._segment, key)
        if note.is_final or note.tries >= MAX_SENDS:
            return key, CallError(note.code, note.message, attempts=note.tries, reply=note.cut)
        return key, None

    def keep(self, key: str, outcome: ChatReply | CallError) -> None:
        """Queue a request that waits for a job; keep anything else."""
        if not isinstance(outcome, QueuedError):
            super().keep(key, outcome)
            return
        self._queue.add(self._index, key, outcome, find_note(self._segment, key).room)
        self.waiting += self._queue.is_sent


def list_seats(config: RunConfig) -> list[str]:
    """Return who asks a model that can be asked by jobs."""
    seats = [TARGET] if config.target.endpoint is not None else []
    return seats + [f"{JUDGE} {place}" if place > 1 else JUDGE for place in range(1, len(config.judges) + 1)]


def open_seat(config: RunConfig, seat: str, traffic: Traffic) -> JobModel:
    """Open the model of a seat; nothing is sent yet.

    Raises:
        ConfigError: No key, or a URL that cannot be used.
    """
    if seat == TARGET and config.target.endpoint is not None:
        provider = "azure" if config.target.kind == "azure" else "openai"
        return open_job_model(config.target.endpoint.model_copy(update={"provider": provider}), traffic, seat)
    place = int(seat.removeprefix(JUDGE) or "1") - 1
    return open_job_model(config.judges[place], traffic, seat)


def swap_models(tools: Tools, models: Mapping[str, JobModel]) -> Tools:
    """Return tools whose target and judges are asked by jobs."""
    target = tools.target
    if TARGET in models and isinstance(target, ConversationTarget):
        answerer = target.answerer
        if isinstance(answerer, ModelAnswerer):
            target = replace(target, answerer=replace(answerer, chat=models[TARGET]))
    judges = tuple(model for seat, model in models.items() if seat != TARGET)
    return replace(tools, target=target, judges=judges)


async def walk_batches(prepared: Prepared, tools: Tools, queue: Queue, monitor: Monitor) -> None:
    """Work on all batches with what is known; what has no answer is queued, and its batch is not done.

    Raises:
        EndpointError: A target or model that is asked at once proved wrong.
        StoreError: A part or file cannot be read or written.
    """
    folder, config = prepared.folder, prepared.request.config
    for index in range(prepared.request.batches):

        def open_recorder(
            segment: Segment, past: PastCalls | None, meter: Meter, index: int = index
        ) -> QueueRecorder:
            return QueueRecorder(queue, index, segment, past, meter)

        await run_batch(Batch(folder, index, config, tools, monitor), open_recorder)
