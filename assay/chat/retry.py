"""When to ask again: the delay a server names, else exponential backoff with full jitter."""

from __future__ import annotations

import contextlib
import math
import random
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_ATTEMPTS = 5  # requests for one call that may fail, the first included
MAX_REFUSALS = 20  # requests for one call that the server may put off
FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 20.0
YEAR_S = 366 * 86_400.0

_dice = random.SystemRandom()


def parse_delay(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a server asks to wait.

    Reads `retry-after-ms`, then `retry-after` as seconds, as an HTTP date or as a Unix time.

    Args:
        headers: Response headers, looked up by lower-case name.
        now: The present, with a time zone.

    Returns:
        A positive number of seconds, a year at most; None when the server names none, a past moment or
        nonsense.
    """
    in_ms = _parse_number(headers.get("retry-after-ms"))
    text = headers.get("retry-after")
    for seconds in (None if in_ms is None else in_ms / 1000, _parse_number(text), _parse_date(text, now)):
        if seconds is None:
            continue
        delay = seconds if seconds <= YEAR_S else seconds - now.timestamp()  # nobody means centuries
        if 0 < delay <= YEAR_S:
            return delay
    return None


def draw_backoff(attempt: int) -> float:
    """Draw a delay in seconds after the given attempt (1-based): uniform below a doubling bound."""
    doublings = min(attempt - 1, 16)  # the bound is reached long before
    return _dice.uniform(0.0, min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2**doublings))


def _parse_number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _parse_date(text: str | None, now: datetime) -> float | None:
    with contextlib.suppress(ValueError, OverflowError):
        moment = parsedate_to_datetime(text or "")
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return (moment - now).total_seconds()
    return None
