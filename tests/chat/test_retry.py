"""Delays that servers ask for, and the ones drawn without them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.chat.retry import YEAR_S, draw_backoff, parse_delay

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "delay"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "200"}, 0.2),
        ({"retry-after-ms": "200", "retry-after": "1"}, 0.2),
        ({"retry-after-ms": "x", "retry-after": "1"}, 1.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 -0000"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "300"}, 300.0),
        ({"retry-after": "86400"}, 86_400.0),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "1e300"}, None),
        ({"retry-after": str(int(NOW.timestamp()) + 20)}, 20.0),
        ({"retry-after": "Thu, 01 Jan 9999 12:00:30 GMT"}, None),
        ({"retry-after": "Thu, 01 Jan 99999999 12:00:30 GMT"}, None),
        ({"retry-after": "Thu, 01 Jan 2026 12:00:30 +99999999999999"}, None),
        ({"retry-after-ms": "-5", "retry-after": "1"}, 1.0),
        ({"retry-after-ms": "0"}, None),
        ({"retry-after-ms": "inf"}, None),
    ],
)
def test_delay_is_read_in_every_form_and_nonsense_is_none(
    headers: dict[str, str], delay: float | None
) -> None:
    assert parse_delay(headers, NOW) == delay


def test_backoff_doubles_up_to_its_cap() -> None:
    for attempt, bound in [(1, 0.5), (2, 1.0), (3, 2.0), (9, 20.0), (50, 20.0), (5_000, 20.0)]:
        assert all(0 <= draw_backoff(attempt) <= bound for _ in range(50))


@given(st.text(), st.text())
def test_no_header_breaks_the_reading(ms: str, text: str) -> None:
    delay = parse_delay({"retry-after-ms": ms, "retry-after": text}, NOW)
    assert delay is None or 0 < delay <= YEAR_S
