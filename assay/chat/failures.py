"""Why a call failed, whether asking again may help, and the error that says so."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias

from aiohttp import ClientConnectorError, ClientError, ClientResponseError, ConnectionTimeoutError
from openai import APIConnectionError, APIStatusError

from assay.chat.answers import find_message, shorten
from assay.chat.retry import LONGEST_OBEYED_S, MAX_ATTEMPTS, draw_backoff, parse_delay
from assay.errors import CallError, EndpointError

if TYPE_CHECKING:
    from assay.chat.endpoints import Place
    from assay.contracts.json_text import JsonValue

CallFailure: TypeAlias = (
    "APIStatusError | APIConnectionError | ClientError | TimeoutError | UnicodeEncodeError | CallError"
)
CALL_FAILURES = (
    APIStatusError,
    APIConnectionError,
    ClientError,  # broken HTTP, which the client passes on as it is
    TimeoutError,
    UnicodeEncodeError,
    CallError,
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
_RETRIED = frozenset({"timeout", "server_error", "rate_limited", "unreachable", "network"})
_NEVER_REACHED = 2  # attempts when no call ever succeeded and nobody listens


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed request.

    Attributes:
        code: `auth`, `not_found`, `quota` or `unreachable`, which may be the fault of the set-up; else the
            code of the row.
        message: What the server or the network said, in full.
        wait_s: Seconds the server asks to wait, None when it names none.
    """

    code: str
    message: str
    wait_s: float | None = None

    def choose_delay(self, tries: int, *, proven: bool) -> float | None:
        """Return the seconds to wait before asking again, None to give up.

        Args:
            tries: Requests that failed so far.
            proven: Whether a call of this chat ever succeeded.
        """
        limit = _NEVER_REACHED if self.code == "unreachable" and not proven else MAX_ATTEMPTS
        if self.code not in _RETRIED or tries >= limit:
            return None
        backoff = draw_backoff(tries)
        if self.wait_s is None:
            return backoff
        return max(self.wait_s, backoff) if self.wait_s <= LONGEST_OBEYED_S else None

    def to_error(self, place: Place, *, proven: bool, attempts: int) -> EndpointError | CallError:
        """Return what to raise: a set-up proven wrong ends the run, anything else is a row."""
        said = shorten(place.hide_key(self.message))
        if self.code in {"auth", "not_found", "unreachable", "quota"} and not proven:
            return EndpointError(_explain_setup(self.code, said.rstrip("."), place))
        if self.code in _RETRIED and self.wait_s is not None and self.wait_s > LONGEST_OBEYED_S:
            text = (
                f"the server asks for a wait of {self.wait_s:g} s, longer than {LONGEST_OBEYED_S:g} s: {said}"
            )
            return CallError("rate_limited", text, attempts=attempts)
        code = "network" if self.code == "unreachable" else self.code
        return CallError(code, said, attempts=attempts)


def read_failure(error: CallFailure) -> Failure:
    """Classify what the client or the reader of the answer raised."""
    if isinstance(error, CallError):
        return Failure(error.code, error.message)
    if isinstance(error, UnicodeEncodeError):
        return Failure("bad_request", f"the request holds text that is not valid Unicode: {error.reason}")
    if isinstance(error, APIStatusError):
        return _read_status(error)
    return _read_connection(error)


def _read_status(error: APIStatusError) -> Failure:
    status, text = error.status_code, json.dumps(error.body, default=str)
    body: JsonValue = json.loads(text)
    message = f"{status}: {find_message(body) if body else 'no message'}"
    other = "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "bad_request"
    code = _BY_STATUS.get(status, other)
    if code == "rate_limited" and '"insufficient_quota"' in text:
        code = "quota"
    if code == "bad_request":
        if any(mark in text for mark in _FILTER_MARKS):
            code = "content_filter"
        elif error.param and error.param not in message:
            message = f"{message} (parameter {error.param})"
    return Failure(code, message, parse_delay(error.response.headers, datetime.now(UTC)))


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


def _explain_setup(code: str, said: str, place: Place) -> str:
    deployed = place.api_version is not None
    what = f"deployment {place.model!r}" if deployed else f"model {place.model!r}"
    where = f"{place.url} (api-version {place.api_version})" if deployed else place.url
    match code:
        case "auth":
            return (
                f"{where} refused the key for {what}: {said}; "
                f"set {place.key_env} to a key that this server accepts for this model"
            )
        case "not_found":
            hint = (
                "name the deployment, not the model, and check the resource and the API version"
                if deployed
                else "check the model name and --base-url; most servers expect a URL that ends in /v1"
            )
            return f"{where} does not know {what}: {said}; {hint}"
        case "quota":
            return f"{where}: the quota of the key in {place.key_env} is used up for {what}: {said}"
        case _:
            return f"cannot reach {where} for {what}: {said}; is the server running? --base-url names it"
