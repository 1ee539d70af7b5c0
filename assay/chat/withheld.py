"""What stands in place of an answer with status 200: an error object, a refusal, a filtered text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.chat.answers import as_object, find_message, list_filtered
from assay.chat.failures import FailedCallError, Failure, read_status
from assay.contracts.chat import Usage
from assay.errors import CallError

if TYPE_CHECKING:
    from assay.contracts.chat import ChatReply
    from assay.contracts.json_text import JsonValue

_STATUS = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "insufficient_quota": 429,
    "overloaded_error": 503,
    "server_error": 500,
    "content_filter": 400,
    "content_policy_violation": 400,
}
_PASSING = ("rate_limited", "server_error", "timeout", "quota", "content_filter")  # others are `error_body`


def reject_error(error: JsonValue, reply: ChatReply, where: str = "status 200 with an error") -> None:
    """Raise the failure that an error object in an answer stands for; nothing when there is none.

    Args:
        error: The object.
        reply: What else the answer says; kept where it was paid for.
        where: How to begin the message.

    Raises:
        FailedCallError: The server names a reason that may pass, its quota or its filter.
        CallError: `error_body`, anything else.
    """
    if not error:
        return
    message, paid = f"{where}: {find_message(error)}", keep_paid(reply)
    status = _find_status(error)
    if status:
        said = read_status(status, {}, error)
        if said.code in _PASSING:
            suffix = list_filtered(error) if said.code == "content_filter" else ""
            raise FailedCallError(Failure(said.code, message + suffix, status=status, reply=paid))
    raise CallError("error_body", message, reply=paid)


def reject_filtered(answer: JsonValue, reply: ChatReply, sign: str) -> None:
    """Raise `content_filter` with the categories that the answer names.

    Args:
        answer: The whole answer.
        reply: What it says all the same.
        sign: What shows that it was filtered.

    Raises:
        CallError: Always.
    """
    raise CallError(
        "content_filter", f"the server withheld the answer ({sign}){list_filtered(answer)}", reply=reply
    )


def reject_refusal(refusal: str, reply: ChatReply) -> None:
    """Raise `refusal` when the model refused and said or called nothing else.

    Raises:
        CallError: With what it said.
    """
    if refusal and not reply.text and not reply.tool_calls_json:
        raise CallError("refusal", f"the model refused: {refusal}", reply=reply)


def keep_paid(reply: ChatReply) -> ChatReply | None:
    """Return the reply if the server counted tokens for it."""
    return None if reply.usage == Usage() else reply


def _find_status(error: JsonValue) -> int:
    """Return the HTTP status that an error object names or means; 0 when it does neither."""
    parts = as_object(error)
    for name in ("status", "code", "type"):
        value = parts.get(name)
        if isinstance(value, str):
            value = int(value) if value.isdecimal() and len(value) == len("503") else _STATUS.get(value)
        if isinstance(value, int) and 400 <= value <= 599:  # noqa: PLR2004 - what HTTP calls an error
            return value
    return 0
