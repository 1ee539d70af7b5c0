"""M365 eval documents written, in the form that the published schema 1.11.0 accepts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.contracts.documents import parse_uses
from assay.contracts.json_text import dump_json
from assay.datasets.writing.cases import M365, read_cases, read_rest
from assay.datasets.writing.contract import Writer
from assay.datasets.writing.m365_items import carry_item, make_item
from assay.datasets.writing.m365_uses import name_uses
from assay.datasets.writing.pretty import write_pretty
from assay.datasets.writing.records import Records
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from assay.datasets.contract import Dataset
    from assay.datasets.writing.cases import Case, JsonObject
    from assay.datasets.writing.contract import Losses

VERSION = "1.11.0"


def write(dataset: Dataset, out: Path, losses: Losses) -> None:
    """Write an eval document, item by item.

    Fields that the schema has no place for stand under `extensions` of their item, where id (as `testId`),
    name, category and notes are read again; those of a document beside its items stay at its root.
    Evaluators with a counterpart keep their options. Messages that are nothing but questions and answers
    in turn become a thread.

    Raises:
        InputError: No item is left, which the form does not allow.
    """
    written = 0
    with out.open("w", encoding="utf-8", newline="\n") as file:
        file.write("{")
        for key, value in _make_root(dataset, losses).items():
            file.write(f"\n  {dump_json(key)}: {write_pretty(value, 1)},")
        file.write('\n  "items": [')
        for item in _make_items(dataset, losses):
            file.write(f"{',' if written else ''}\n    {write_pretty(item, 2)}")
            written += 1
        file.write("\n  ]\n}\n")
    if not written:
        message = "no item that an M365 document can hold, which has at least one"
        raise InputError(message, path=dataset.file.shown)


def _make_root(dataset: Dataset, losses: Losses) -> JsonObject:
    root: JsonObject = {"schemaVersion": VERSION, **read_rest(dataset)}
    if dataset.dialect != M365 and "items" in root:
        del root["items"]
        losses.add("items of the file", "left out")
    if dataset.defaults is not None:
        named = name_uses(dataset.defaults, dataset.dialect, losses)
        if named or not dataset.defaults:
            root["default_evaluators"] = named
    return root


def _make_items(dataset: Dataset, losses: Losses) -> Iterator[JsonObject]:
    records = Records(dataset, losses)
    for cases in read_cases(dataset):
        for case in cases:
            if dataset.dialect == M365:
                yield carry_item(case, losses)
            elif (record := records.make(case)) and (item := make_item(case, record, losses)):
                yield item | _name_own(case, dataset.dialect, losses)


def _name_own(case: Case, dialect: str, losses: Losses) -> JsonObject:
    """Return the evaluators that an item names for itself."""
    row = case[0]
    if row.evaluators_json is None:
        return {}
    named = name_uses(parse_uses(row.evaluators_json), dialect, losses, row.id or "")
    return {"evaluators": named, "evaluators_mode": row.evaluators_mode} if named else {}


WRITER = Writer("m365", (".json",), write)
