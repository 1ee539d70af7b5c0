"""Foundry rows written: JSON lines, one item each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.datasets.writing.cases import read_cases
from assay.datasets.writing.contract import Writer
from assay.datasets.writing.records import Records, note_evaluators, note_own_evaluators, note_root

if TYPE_CHECKING:
    from pathlib import Path

    from assay.datasets.contract import Dataset
    from assay.datasets.writing.contract import Losses


def write(dataset: Dataset, out: Path, losses: Losses) -> None:
    """Write one JSON object per item, block by block.

    A row of a file of rows is written as it was, its fields under the standard names; null and missing
    stay different. A conversation of several turns becomes `messages`.
    """
    records = Records(dataset, losses)
    note_evaluators(dataset, losses)
    note_root(dataset, losses)
    with out.open("w", encoding="utf-8", newline="\n") as file:
        for cases in read_cases(dataset):
            for case in cases:
                note_own_evaluators(case, losses)
                line = records.write(case)
                if line is not None:
                    file.write(f"{line}\n")


WRITER = Writer("foundry", (".jsonl", ".ndjson"), write)
