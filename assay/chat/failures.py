"""Why a call failed, whether asking again may help, and the error that says so."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Protocol, TypeAlias

from aiohttp import ClientConnectorError, ClientError, ClientResponseError, ConnectionTimeoutError
from openai import APIConnectionError, APIStatusError

from assay.chat.answers import find_message, shorten
from assay.chat.retry import MAX_ATTEMPTS, MAX_REFUSALS, draw_backoff, parse_delay
from assay.errors import CallError, EndpointError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.chat import ChatReply
    from assay.contracts.json_text import JsonValue


class Site(Protocol):
    """Where an endpoint is."""

    def hide_key(self, text: str) -> str:
        """Return the text with every secret of this endpoint replaced by `***`."""
        ...

    def explain(self, code: str, said: str) -> str:
        """Say what is wrongly set up, where, and what to do.

        Args:
            code: `auth`, `not_found`, `quota` or `unreachable`.
            said: What the server or the network said, without secrets.
        """
        ...


class FailedCallError(Exception):
    """A request failed, and its sender says how."""

    def __init__(self, failure: Failure) -> None:
        """Keep the failure."""
        super().__init__(failure.code)
        self.failure = failure


CallFailure: TypeAlias = (
    APIStatusError
    | APIConnectionError
    | ClientError
    | TimeoutError
    | UnicodeEncodeError
    | CallError
    | FailedCallError
)
CALL_FAILURES = (
    APIStatusError,
    APIConnectionError,
    ClientError,  # broken HTTP, which the client passes on as it is
    TimeoutError,
    UnicodeEncodeError,
    CallError,
    FailedCallError,
)

_BY_STATUS = {
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    409: "server_error",
    429: "rate_limited",
}
_FILTER_MARKS = ('"content_filter"', '"content_policy_violation"', '"ResponsibleAIPolicyViolation"')
_FILTERED = re.compile(r'"(\w+)": \{[^{}]*"filtered": true')
_QUOTA_MARKS = ('"insufficient_quota"', '"billing_hard_limit_reached"')
_REFUSALS = frozenset({429, 503})
_RETRIED = frozenset({"timeout", "server_error", "rate_limited", "unreachable", "network"})
_OF_SETUP = frozenset({"auth", "not_found", "unreachable", "quota"})
_NEVER_REACHED = 2  # attempts when no call ever succeeded and nobody listens


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed request.

    Attributes:
        code: `auth`, `not_found`, `quota` or `unreachable`, which may be the fault of the set-up; else the
            code of the row.
        message: What the server or the network said, in full.
        wait_s: Seconds the server asks to wait, None when it names none.
        status: HTTP status, None where no answer came.
        reply: What was answered all the same, and paid for.
    """

    code: str
    message: str
    wait_s: float | None = None
    status: int | None = None
    reply: ChatReply | None = None

    @property
    def is_refusal(self) -> bool:
        """Whether the server said to come later (429, 503)."""
        return self.status in _REFUSALS and self.code in _RETRIED

    @property
    def is_trouble(self) -> bool:
        """Whether the endpoint may be asked too fast: it refused, or did not answer in time."""
        return self.is_refusal or self.code == "timeout"

    @property
    def is_of_endpoint(self) -> bool:
        """Whether any other call would have failed alike."""
        return self.code in _OF_SETUP or self.code == "network"

    def choose_delay(self, failed: int, refused: int, *, proven: bool, longest_s: float) -> float | None:
        """Return the seconds to wait before asking again, None to give up.

        Args:
            failed: Requests of this call that failed so far, but for refusals.
            refused: Those that were refused.
            proven: Whether a call to the endpoint ever succeeded.
            longest_s: Longest wait that a server may ask for.
        """
        limit = _NEVER_REACHED if self.code == "unreachable" and not proven else MAX_ATTEMPTS
        if self.code not in _RETRIED or failed >= limit or refused >= MAX_REFUSALS:
            return None
        backoff = draw_backoff(failed + refused)
        if self.wait_s is None:
            return backoff
        if self.wait_s > longest_s:
            return None
        return self.wait_s + draw_backoff(1)  # not all at the same moment

    def to_error(
        self, site: Site, *, proven: bool, attempts: int, longest_s: float
    ) -> EndpointError | CallError:
        """Return what to raise: a set-up proven wrong ends the run, anything else is a row."""
        said = shorten(site.hide_key(self.message))
        if self.code in _OF_SETUP and not proven:
            return EndpointError(site.explain(self.code, said.rstrip(".")))
        if self.code in _RETRIED and self.wait_s is not None and self.wait_s > longest_s:
            text = f"the server asks for a wait of {self.wait_s:g} s, longer than {longest_s:g} s: {said}"
            return CallError("rate_limited", text, attempts=attempts)
        code = "network" if self.code == "unreachable" else self.code
        return CallError(code, said, attempts=attempts, reply=self.reply)


def read_failure(error: CallFailure) -> Failure:
    """Classify what the client or the reader of the answer raised."""
    if isinstance(error, FailedCallError):
        return error.failure
    if isinstance(error, CallError):
        return Failure(error.code, error.message, reply=error.reply)
    if isinstance(error, UnicodeEncodeError):
        return Failure("bad_request", f"the request holds text that is not valid Unicode: {error.reason}")
    if isinstance(error, APIStatusError):
        return read_status(error.status_code, error.response.headers, error.body)
    return _read_connection(error)


def read_status(status: int, headers: Mapping[str, str], content: object) -> Failure:
    """Classify an answer with an error status.

    Args:
        status: HTTP status, 300 or more.
        headers: Its headers, looked up by lower-case name.
        content: Its body, parsed where it was JSON.
    """
    text = json.dumps(content, default=str)
    body: JsonValue = json.loads(text)
    message = f"{status}: {find_message(body) if body else 'no message'}"
    other = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "bad_request"
    code = _BY_STATUS.get(status, other)
    if code == "rate_limited" and any(mark in text for mark in _QUOTA_MARKS):
        code = "quota"
    if code == "bad_request":
        if any(mark in text for mark in _FILTER_MARKS):
            code, message = "content_filter", f"{message}{_list_filters(text)}"
        elif (param := _find_param(body)) and param not in message:
            message = f"{message} (parameter {param})"
    return Failure(code, message, parse_delay(headers, datetime.now(UTC)), status)


def _find_param(body: JsonValue) -> str | None:
    error = body.get("error", body) if isinstance(body, dict) else None
    param = error.get("param") if isinstance(error, dict) else None
    return param if isinstance(param, str) else None


def _list_filters(text: str) -> str:
    """Return the categories that Azure's filter names, for the end of a message."""
    names = dict.fromkeys(_FILTERED.findall(text))
    return f" (filtered: {', '.join(names)})" if names else ""


def _read_connection(error: APIConnectionError | ClientError | TimeoutError) -> Failure:
    """Tell a server that is not there from one that is slow and one that hung up.

    The client reports all three as a connect timeout (measured); the cause below it tells them apart.
    """
    chain: list[BaseException] = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    cause = chain[-1]
    said = (cause.message if isinstance(cause, ClientResponseError) else str(cause)) or type(cause).__name__
    if any(isinstance(link, ClientConnectorError | ConnectionTimeoutError) for link in chain):
        return Failure("unreachable", said)
    if any(isinstance(link, TimeoutError) for link in chain):
        return Failure("timeout", "no answer in time")
    return Failure("network", f"the exchange failed: {said}")
