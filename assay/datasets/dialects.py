"""The dialects that datasets may be written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.datasets import csv_files, foundry, m365, uipath

if TYPE_CHECKING:
    from assay.datasets.contract import Dialect

DIALECTS: tuple[Dialect, ...] = (m365.DIALECT, foundry.DIALECT, uipath.DIALECT, csv_files.DIALECT)
