"""The jobs of the Batch API at one server: files sent and fetched, jobs made, found and looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Literal, TypeVar

from assay.chat.answers import shorten
from assay.chat.failures import CALL_FAILURES, Failure, read_failure
from assay.errors import EndpointError, UndecidedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from openai import AsyncOpenAI
    from openai.types import Batch, FileObject

    from assay.chat.endpoints import Place
    from assay.chat.traffic import Traffic

T = TypeVar("T")
UPLOAD_S = 600.0  # longest silence of a server that takes a file
LOOKS = 300  # at a file that is being checked, before it is given up
LOOK_EVERY_S = 2.0
ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
"""States of a job that will not change; any other one is under way."""
DAY_S = 86_400.0  # what the clocks of server and client may be apart
_UNCHECKED = frozenset({"pending", "running"})  # states of a file that Azure has not looked through yet
_MADE_NOTHING = 429  # the one status after which the same job may be asked for at once
_Url = Literal["/v1/chat/completions", "/v1/responses"]


class _GoneError(Exception):
    """A server that knew other files or jobs does not know this one."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the server tells of it.

    Attributes:
        job_id: Its id.
        status: `completed`, `failed`, `expired`, `cancelled`, or a state before one of these.
        done: Requests answered.
        failed: Requests that failed.
        output_id: File with answers.
        error_id: File with failures.
        message: Why the whole job failed.
    """

    job_id: str
    status: str
    done: int = 0
    failed: int = 0
    output_id: str | None = None
    error_id: str | None = None
    message: str = ""


class JobDesk:
    """Speaks of files and jobs with the server of one model; belongs to the event loop that first uses it."""

    def __init__(self, client: AsyncOpenAI, place: Place, traffic: Traffic) -> None:
        """Take the client of the model; whoever opened it closes it."""
        self._client, self._place, self._traffic = client, place, traffic
        self._proven = False

    @property
    def url(self) -> str:
        """The path that stands in every line; deployments of Azure's dated API have one of their own."""
        if self._place.api == "responses":
            return "/v1/responses"
        return "/v1/chat/completions" if self._place.api_version is None else "/chat/completions"

    async def upload(self, file: IO[bytes], name: str) -> str:
        """Send a file of requests and return its id, once the server has checked it.

        Raises:
            EndpointError: Key or URL are wrong.
            UndecidedError: The server does not take it.
        """

        async def send() -> FileObject:
            file.seek(0)
            return await self._client.files.create(
                file=(name, file), purpose="batch", timeout=max(self._traffic.timeout_s, UPLOAD_S)
            )

        made = await self._insist(send)
        file_id, state = made.id, str(made.status)
        for _ in range(LOOKS):
            if state not in _UNCHECKED:
                break
            await self._traffic.sleep(LOOK_EVERY_S)
            state = str((await self._insist(lambda: self._client.files.retrieve(file_id))).status)
        if state == "error" or state in _UNCHECKED:
            raise UndecidedError(f"{self._where}: the server has file {file_id} in state {state}, not ready")
        return file_id

    async def create(self, file_id: str, marks: Mapping[str, str]) -> Job:
        """Make a job of a file. Only a refusal is tried again: anything else may have made the job.

        Args:
            file_id: The file.
            marks: What to find the job by.

        Raises:
            EndpointError: Key or URL are wrong.
            UndecidedError: The server refuses, or nobody knows whether it made the job.
        """

        async def send() -> Batch:
            endpoint: _Url = self.url  # pyright: ignore[reportAssignmentType] - Azure has a third one
            return await self._client.batches.create(
                input_file_id=file_id, endpoint=endpoint, completion_window="24h", metadata={**marks}
            )

        return self._read_job(await self._insist(send, only_refusals=True))

    async def find(self, file_id: str, marks: Mapping[str, str], since: float) -> Job | None:
        """Return the job that was made of a file, or has these marks.

        Args:
            file_id: The file.
            marks: As given to `create`.
            since: Unix time before which it was not made.
        """

        async def look() -> Batch | None:
            async for job in self._client.batches.list(limit=100):
                told = job.metadata or {}
                if job.input_file_id == file_id or all(told.get(name) == marks[name] for name in marks):
                    return job
                if job.created_at < since - DAY_S:
                    break
            return None

        found = await self._insist(look)
        return None if found is None else self._read_job(found)

    async def fetch(self, job_id: str) -> Job:
        """Ask how a job is; one that the server does not know has failed."""
        try:
            return self._read_job(await self._insist(lambda: self._client.batches.retrieve(job_id)))
        except (_GoneError, EndpointError) as error:
            if isinstance(error, EndpointError):  # of key and URL, unless the server knows of jobs
                await self._insist(self._list_one)
            return Job(job_id, "failed", message=f"the server does not know it: {error}")

    async def _list_one(self) -> object:
        return await self._client.batches.list(limit=1)

    async def download(self, file_id: str, into: IO[bytes]) -> None:
        """Write a file of the server into an open one, from its beginning."""

        async def receive() -> None:
            into.seek(0)
            into.truncate()
            async with self._client.files.with_streaming_response.content(file_id) as response:
                async for piece in response.iter_bytes():
                    into.write(piece)

        try:
            await self._insist(receive)
        except _GoneError as error:
            raise UndecidedError(f"{self._where} has no file {file_id} any more: {error}") from error

    @property
    def _where(self) -> str:
        return f"{self._place.url} for model {self._place.model!r}"

    def _say(self, text: str) -> str:
        return shorten(self._place.hide_key(text))

    def _read_job(self, job: Batch) -> Job:
        counts, errors = job.request_counts, job.errors
        told: list[str] = []
        for each in ((errors.data if errors else None) or [])[:3]:
            parts = (f"line {each.line}" if each.line else None, each.code, each.message)
            told.append(": ".join(part for part in parts if part))
        return Job(
            job.id,
            str(job.status).replace("canceled", "cancelled"),
            counts.completed if counts else 0,
            counts.failed if counts else 0,
            job.output_file_id,
            job.error_file_id,
            self._say("; ".join(told)),
        )

    async def _insist(self, send: Callable[[], Awaitable[T]], *, only_refusals: bool = False) -> T:
        """Send, and again where that may help.

        Raises:
            EndpointError: Key or URL are wrong, or the request is.
            UndecidedError: The server failed.
        """
        failed = refused = 0
        while True:
            try:
                result = await send()
            except CALL_FAILURES as error:
                failure = read_failure(error)
            else:
                self._proven = True
                return result
            refused += failure.is_refusal
            failed += not failure.is_refusal
            longest = self._traffic.limits.max_wait_s
            delay = failure.choose_delay(failed, refused, proven=self._proven, longest_s=longest)
            if delay is None or (only_refusals and failure.status != _MADE_NOTHING):
                raise self._explain(failure)
            await self._traffic.sleep(delay)

    def _explain(self, failure: Failure) -> Exception:
        said = self._say(failure.message)
        match failure.code:
            case "not_found" if self._proven:
                return _GoneError(said)
            case "not_found":
                told = "it has no Batch API, or not this job; OpenAI and Azure OpenAI have one"
                return EndpointError(f"{self._where}: {said}; {told}")
            case "bad_request":
                return EndpointError(f"{self._where} refuses: {said}")
            case "auth" | "unreachable" if not self._proven:
                return EndpointError(self._place.explain(failure.code, said))
            case _:
                return UndecidedError(f"{self._where}: {failure.code}: {said}; repeat the command")
