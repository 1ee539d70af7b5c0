"""A model that is asked by jobs: its requests become lines of a file, and lines of a file its answers."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING

from assay.chat.answers import as_object, find_message, parse_body
from assay.chat.caller import hide_in_reply
from assay.chat.client import ModelChat
from assay.chat.completions import read_completion
from assay.chat.endpoints import locate_model, open_client
from assay.chat.failures import CALL_FAILURES, Failure, read_failure, read_status
from assay.chat.halt import QUEUED
from assay.chat.jobs import JobDesk
from assay.chat.parameters import write_body
from assay.chat.responses import read_response
from assay.contracts.chat import ChatReply, ChatRequest
from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from openai import AsyncOpenAI

    from assay.chat.endpoints import Place
    from assay.chat.parameters import Body
    from assay.chat.traffic import Traffic
    from assay.config import Endpoint
    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

PRICE_SHARE = 0.5
"""Share of the price of a call that its answer from a job costs.

Sources, read in December 2026: help.openai.com/en/articles/9197833-batch-api-faq ("50% cost discount") and
learn.microsoft.com/azure/foundry/openai/how-to/batch ("50% less cost than global standard").
"""
_LINE_CODES = {"batch_expired": "job_expired", "batch_cancelled": "job_cancelled"}


class QueuedError(CallError):
    """A request whose answer is to come from a job.

    Attributes:
        model: Who is asked.
        request: What.
    """

    def __init__(self, model: JobModel, request: ChatRequest) -> None:
        """Keep the parts."""
        super().__init__(QUEUED, "not answered yet: it is asked by a batch job", attempts=0)
        self.model, self.request = model, request


class JobModel(ModelChat):
    """A chat that sends nothing.

    Attributes:
        seat: Who asks: `target`, `judge`, or `judge 2` of a jury.
        desk: Where its files and jobs are spoken of.
    """

    def __init__(self, client: AsyncOpenAI, place: Place, traffic: Traffic, seat: str) -> None:
        super().__init__(client, place, traffic)
        self.seat, self.desk = seat, JobDesk(client, place, traffic)
        self._prices = traffic.prices
        self._given: deque[ChatReply | CallError] = deque()
        self._room = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Refuse to answer now.

        Raises:
            QueuedError: Always.
        """
        raise QueuedError(self, request)

    def write_line(self, name: str, request: ChatRequest, room: int | None = None) -> bytes:
        """Return the line of a request.

        Args:
            name: Its id in the job.
            request: What is asked.
            room: Longest answer in tokens, where it is another one than the request says.

        Raises:
            CallError: `bad_request`, the request cannot be written as JSON.
        """
        if room is not None:
            request = replace(request, max_output_tokens=room)
        body = self._learnt.adapt(self.describe(request))
        head: Body = {"custom_id": name, "method": "POST", "url": self.desk.url}
        try:
            return write_body({**head, "body": body}) + b"\n"
        except UnicodeEncodeError as error:
            failure = read_failure(error)
            raise CallError(failure.code, failure.message, attempts=0) from error

    def is_outdated(self, sent: Mapping[str, object]) -> bool:
        """Whether a request would be another one now, after what was learnt."""
        return self._learnt.adapt(sent) != dict(sent)

    def learn(self, sent: Mapping[str, object], complaint: str) -> bool:
        """Learn from a refusal, and say whether the request would be another one now."""
        is_new = self._learnt.learn(sent, complaint)
        if is_new:
            self._tell_learnt()
        return is_new

    def read_answer(self, entry: JsonObject) -> ChatReply | Failure:
        """Read a line of an answer or error file; an answer is priced, and nothing holds a secret."""
        response = as_object(entry.get("response"))
        status, body = response.get("status_code"), response.get("body")
        if isinstance(status, int) and status != HTTPStatus.OK:
            failure = read_status(status, {}, body)
            return replace(failure, message=self.place.hide_key(failure.message))
        if status is None:
            error = as_object(entry.get("error"))
            code = _LINE_CODES.get(str(error.get("code")), "server_error")
            return Failure(code, self.place.hide_key(find_message(entry.get("error"))))
        read = read_response if self.place.api == "responses" else read_completion
        try:
            return self._price(read(as_object(body), self.place.model, 0.0))
        except CALL_FAILURES as error:
            failure = read_failure(error)
        reply = None if failure.reply is None else self._price(failure.reply)
        return replace(failure, message=self.place.hide_key(failure.message), reply=reply)

    async def conclude(
        self, answers: Sequence[ChatReply | CallError], budget: int | None, *, fixed: bool
    ) -> tuple[ChatReply | CallError, int]:
        """Make an outcome of what came, as a chat does that asks on its own.

        Args:
            answers: The answer; before it one that was cut off, where it is the second one.
            budget: Longest answer that was asked for first, in tokens.
            fixed: Whether an answer that is cut off stays cut.

        Returns:
            The outcome. Beside it the room to ask again with, where it has the code `queued`; else 0.
        """
        self._given.extend(answers)
        try:
            asked = ChatRequest((), max_output_tokens=budget, fixed_budget=fixed)
            return await super().complete(asked), 0
        except CallError as error:
            return error, self._room if error.code == QUEUED else 0
        finally:
            self._given.clear()

    async def _ask(self, request: ChatRequest) -> ChatReply:
        if not self._given:
            self._room = request.max_output_tokens or 0
            raise CallError(QUEUED, "asked again with more room", attempts=0)
        answer = self._given.popleft()
        if isinstance(answer, CallError):
            raise answer
        return answer

    def _price(self, reply: ChatReply) -> ChatReply:
        reply, usage = hide_in_reply(reply, self.place.secrets), reply.usage
        if usage.cost_usd is None:
            cost = self._prices.price_answer(self.place.model, reply.model, usage)
            usage = replace(usage, cost_usd=None if cost is None else cost * PRICE_SHARE)
        return replace(reply, usage=usage)


def open_job_model(endpoint: Endpoint, traffic: Traffic, seat: str) -> JobModel:
    """Open a model that is asked by jobs; nothing is sent yet.

    Raises:
        ConfigError: No key, or a URL that cannot be used.
    """
    place = locate_model(endpoint)
    return JobModel(open_client(place, traffic.timeout_s), place, traffic, seat)


def read_line(line: bytes) -> tuple[str, JsonObject] | None:
    """Return the id and the whole of a line of an answer or error file; None where it is torn."""
    try:
        entry = parse_body(line)
    except CallError:
        return None
    name = entry.get("custom_id")
    return (name, entry) if isinstance(name, str) else None
