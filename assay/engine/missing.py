"""What is missing in a run: batches that are not there, and rows that should be asked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.chat.halt import NEVER_ASKED
from assay.contracts.tables import SAMPLES, SCORES, Table
from assay.store.parts import has_part, read_part

if TYPE_CHECKING:
    from assay.store.layout import RunFolder

ASKED_AGAIN = (
    *NEVER_ASKED,
    *("auth", "bad_request", "error_body", "html_body", "network", "no_choices", "not_found", "quota"),
    *("rate_limited", "server_error", "target_error", "timeout"),
    *("job_expired", "job_cancelled", "job_lost"),
)
"""Codes of failures that need not come again."""

_TABLES: tuple[tuple[str, Table], ...] = (("samples", SAMPLES), ("scores", SCORES))


def is_done(folder: RunFolder, index: int) -> bool:
    """Whether a batch is stored and holds nothing that should be asked again.

    Raises:
        StoreError: A part cannot be read.
    """
    if not all(has_part(folder.part(name, index)) for name, _ in _TABLES):
        return False
    codes = pl.concat([read_part(folder.part(name, index), table)["error_code"] for name, table in _TABLES])
    return not codes.drop_nulls().is_in(ASKED_AGAIN).any()
