"""The dialects that datasets may be written in."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from assay.datasets import columnar, csv_files, foundry, json_array, m365, uipath, xlsx

if TYPE_CHECKING:
    from assay.datasets.contract import Dialect

DIALECTS: tuple[Dialect, ...] = (
    m365.DIALECT,
    foundry.DIALECT,
    uipath.DIALECT,
    csv_files.DIALECT,
    json_array.DIALECT,
    columnar.PARQUET,
    columnar.ARROW,
    xlsx.DIALECT,
)

MAGICS = (("PAR1", columnar.PARQUET), ("ARROW1", columnar.ARROW), ("PK\x03\x04", xlsx.DIALECT))


def sniff(head: str) -> Dialect:
    """Choose the dialect of a file without a name by its beginning; what looks like nothing else is CSV."""
    start = head.lstrip()
    for magic, dialect in MAGICS:
        if start.startswith(magic):
            return dialect
    if start[:1] not in ("{", "["):
        return csv_files.DIALECT
    if json_array.holds_lines(head):
        return foundry.DIALECT
    claiming = (dialect for dialect in DIALECTS if dialect.claims(Path("x.json"), head))
    return next(claiming, foundry.DIALECT)
