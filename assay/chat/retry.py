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

MAX_ATTEMPTS = 4  # requests for one call, the first included
FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 20.0
LONGEST_OBEYED_S = 60.0  # a longer wait is an error of the row, which a resumed run asks again

_dice = random.SystemRandom()


def parse_delay(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the seconds a server asks to wait.

    Reads `retry-after-ms`, then `retry-after` as seconds or as an HTTP date.

    Args:
        headers: Response headers, looked up by lower-case name.
        now: The present, with a time zone.

    Returns:
        A positive number of seconds; None when the server names none, a past date or nonsense.
    """
    in_ms = _parse_number(headers.get("retry-after-ms"))
    text = headers.get("retry-after")
    seconds = in_ms / 1000 if in_ms is not None else _parse_number(text)
    if seconds is None and text is not None:
        with contextlib.suppress(ValueError):
            moment = parsedate_to_datetime(text)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            seconds = (moment - now).total_seconds()
    return seconds if seconds is not None and seconds > 0 else None


def draw_backoff(attempt: int) -> float:
    """Draw a delay in seconds after the given attempt (1-based): uniform below a doubling bound."""
    return _dice.uniform(0.0, min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** (attempt - 1)))


def _parse_number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None
