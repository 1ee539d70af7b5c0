"""Collecting: the lines that answer a job become entries of the ledger, or notes of why they cannot."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from assay.chat.answers import as_object, shorten
from assay.chat.failures import Failure
from assay.chat.queued import read_line
from assay.contracts.chat import ChatReply
from assay.engine.queueing import find_note, keep_note
from assay.engine.recording import LASTING, write_outcome
from assay.errors import CallError, StoreError
from assay.store.jobs import JobFiles, Lesson, read_requests, read_slots
from assay.store.ledger import open_segment
from evaluators.material import Material

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.chat.jobs import Job
    from assay.chat.queued import JobModel
    from assay.contracts.json_text import JsonValue
    from assay.store.jobs import JobRecord, Slot
    from assay.store.layout import RunFolder
    from assay.store.ledger import Segment

    JsonObject = dict[str, JsonValue]

logger = logging.getLogger("assay")
PASSING = frozenset(
    {"rate_limited", "server_error", "timeout", "network", "quota"}
    | {"job_expired", "job_cancelled", "job_lost"}
)
"""Codes of failures that another job may not meet."""
TEXTS = frozenset({"messages", "input", "instructions"})  # members of a request that teach nothing
_REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
_MISSING = {
    "expired": ("job_expired", "its batch job expired before it was answered"),
    "cancelled": ("job_cancelled", "its batch job was cancelled before it was answered"),
}
_LOST = ("job_lost", "its batch job ended without an answer or a failure for it")


@dataclass(frozen=True, slots=True)
class _Place:
    """A line of a file that was fetched; the lower rank counts where a request has several."""

    rank: int
    path: Path
    offset: int
    length: int


async def fetch_files(folder: RunFolder, part: int, model: JobModel, job: Job) -> None:
    """Fetch what a job left at the server; a file that ends within a line is fetched once more.

    Raises:
        UndecidedError: A file cannot be fetched.
        StoreError: It cannot be written.
    """
    files = JobFiles(folder)
    kinds: tuple[tuple[Literal["output", "error"], str | None], ...]
    kinds = (("output", job.output_id), ("error", job.error_id))
    for kind, file_id in kinds:
        path = files.fetched(part, kind)
        if file_id is None:
            path.unlink(missing_ok=True)
            continue
        for _ in range(2):
            await _fetch_file(model, file_id, path)
            if _ends_whole(path):
                break


async def _fetch_file(model: JobModel, file_id: str, path: Path) -> None:
    try:
        with path.open("wb") as file:
            await model.desk.download(file_id, file)
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}; free some space") from error


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        return file.read(1) in {b"", b"\n"}


async def keep_answers(folder: RunFolder, record: JobRecord, model: JobModel) -> list[Lesson]:
    """Write what was fetched of a job to the ledger; what stands there already is left as it is.

    Lines in any order, repeated, torn or of other requests are fine; of a repeated one an answer counts.

    Args:
        folder: The run.
        record: The job; its status says what became of requests that no line answers.
        model: Who was asked.

    Returns:
        What was learnt from requests that were refused for a parameter.

    Raises:
        StoreError: A file or the ledger cannot be read or written.
    """
    files = JobFiles(folder)
    slots = read_slots(files, record.part)
    places, complaints = _find_lines(files, record, slots, model)
    lessons, taught = _study(files, record, complaints, model)
    keeper = _Keeper(record, model, places, taught)
    ordered = sorted(slots.items(), key=lambda pair: pair[1].segment)
    for index, group in groupby(ordered, key=lambda pair: pair[1].segment):
        with open_segment(folder, index) as segment:
            for name, slot in group:
                await keeper.keep(segment, name, slot)
    return lessons


def _find_lines(
    files: JobFiles, record: JobRecord, slots: dict[str, Slot], model: JobModel
) -> tuple[dict[str, _Place], dict[str, str]]:
    """Return the line that counts of each request, and what the server said to those it refused."""
    places: dict[str, _Place] = {}
    unread = 0
    for path in (files.fetched(record.part, "output"), files.fetched(record.part, "error")):
        for place in _list_lines(path):
            found = _read_entry(place)
            if found is None or found[0] not in slots:
                unread += 1
            else:
                _note_line(found, place, places)
    if unread:
        logger.warning("job %s: %d lines are torn or of no request of it", record.job_id, unread)
    refused = {name: _read_answer(place, model) for name, place in places.items() if place.rank == 1}
    complaints = {
        name: answer.message
        for name, answer in refused.items()
        if isinstance(answer, Failure) and answer.code == "bad_request"
    }
    return places, complaints


def _list_lines(path: Path) -> Iterator[_Place]:
    """Yield where the lines of a file are that are not blank; an absent file has none."""
    if not path.is_file():
        return
    offset = 0
    with path.open("rb") as lines:
        for line in lines:
            if line.strip():
                yield _Place(0, path, offset, len(line))
            offset += len(line)


def _note_line(found: tuple[str, JsonObject], place: _Place, places: dict[str, _Place]) -> None:
    name, entry = found
    status = as_object(entry.get("response")).get("status_code")
    rank = 0 if status == HTTPStatus.OK else 1 if status in _REFUSED else 2
    if name not in places or rank < places[name].rank:
        places[name] = replace(place, rank=rank)


def _read_entry(place: _Place) -> tuple[str, JsonObject] | None:
    with place.path.open("rb") as file:
        return read_line(os.pread(file.fileno(), place.length, place.offset))


def _read_answer(place: _Place, model: JobModel) -> ChatReply | Failure:
    found = _read_entry(place)
    return model.read_answer({} if found is None else found[1])


def _study(
    files: JobFiles, record: JobRecord, complaints: dict[str, str], model: JobModel
) -> tuple[list[Lesson], set[str]]:
    """Return what refusals teach of parameters, and the requests that would be other ones now."""
    lessons: list[Lesson] = []
    taught: set[str] = set()
    if not complaints:
        return lessons, taught
    for name, body in read_requests(files, record.part, complaints):
        sent = {key: value for key, value in body.items() if key not in TEXTS}
        is_known = model.is_outdated(sent)
        if is_known or model.learn(sent, complaints[name]):
            taught.add(name)
        if name in taught and not is_known:
            lessons.append(Lesson(seat=record.seat, sent=sent, complaint=complaints[name]))
    return lessons, taught


@dataclass(frozen=True, slots=True)
class _Keeper:
    """Writes the outcomes of one job, each once."""

    record: JobRecord
    model: JobModel
    places: dict[str, _Place]
    taught: set[str]

    async def keep(self, segment: Segment, name: str, slot: Slot) -> None:
        """Write what became of one request."""
        note = find_note(segment, slot.key)
        if note.part == self.record.part or segment.find(slot.key) is not None:
            return
        place = self.places.get(name)
        if place is None:
            code, message = _MISSING.get(self.record.status, _LOST)
            answer: ChatReply | Failure = Failure(code, message)
        else:
            answer = _read_answer(place, self.model)
        given = answer if isinstance(answer, ChatReply) else _to_error(answer)
        before = [] if note.cut is None else [note.cut]
        if isinstance(given, CallError) and (given.code in PASSING or name in self.taught):
            tries = note.tries + (name not in self.taught)
            told = replace(note, code=given.code, message=given.message, tries=tries)
            keep_note(segment, slot.key, replace(told, part=self.record.part))
            return
        outcome, room = await self.model.conclude([*before, given], slot.budget, fixed=slot.fixed)
        self._keep_outcome(segment, slot, outcome, room)

    def _keep_outcome(self, segment: Segment, slot: Slot, outcome: ChatReply | CallError, room: int) -> None:
        """Write an outcome; a failure that a call of its own need not meet is no answer of the ledger."""
        note = find_note(segment, slot.key)
        job: JsonObject = {"job": self.record.job_id or ""}
        if isinstance(outcome, ChatReply):
            text = Material((), slot.nonce).drop_echo(outcome.text) if slot.nonce else outcome.text
            outcome = replace(outcome, text=text, attempts=outcome.attempts + note.tries)
        if isinstance(outcome, ChatReply) or outcome.code in LASTING:
            segment.append(slot.key, write_outcome(outcome, datetime.now(UTC)) | job)
            return
        told = replace(note, part=self.record.part, code=outcome.code, message=outcome.message)
        told = replace(told, cut=outcome.reply, room=room or None)
        keep_note(segment, slot.key, replace(told, is_final=not room, tries=note.tries + (not room)))


def _to_error(failure: Failure) -> CallError:
    return CallError(failure.code, shorten(failure.message), reply=failure.reply)
