"""CSV written: a header, and one line of texts per item."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.datasets.cells import text_series
from assay.datasets.writing.columns import Spool, fit_columns, order_columns, read_columns
from assay.datasets.writing.contract import Writer
from assay.datasets.writing.records import JSON_FIELDS
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from assay.contracts.json_text import JsonValue
    from assay.datasets.contract import Dataset
    from assay.datasets.writing.contract import Losses

_BARE = re.compile(r"[\w .-]+")  # header names that need no quotes, whatever the separator


def write(dataset: Dataset, out: Path, losses: Losses) -> None:
    """Write UTF-8 CSV with commas: standard names first, then every other field in the order it is met.

    Null and missing are unquoted empty cells, an empty text is a quoted one. Numbers, booleans, lists and
    objects are written as JSON text; a list of one tag is that tag, one of none is null. Texts are not
    altered, also where they begin with a sign that a spreadsheet would take for a formula. What was read
    is kept on disk meanwhile, as the header needs the fields of all items.

    Raises:
        InputError: A text holds a NUL character, which CSV cannot carry.
    """
    forms: dict[str, _Form] = {}
    with Spool() as spool:
        for places, columns in read_columns(dataset, losses, open_texts=False):
            _note_nameless(columns.pop("", []), places, losses)
            for name, values in columns.items():
                forms.setdefault(name, _Form()).look(values, places)
            cells = {name: _write_cells(name, values) for name, values in columns.items()}
            _refuse_nul(dataset.file.shown, cells, places)
            spool.add(pl.DataFrame(cells or {"id": [None] * len(places)}))
        for name, form in forms.items():
            form.note(name, losses)
        header = order_columns(forms)
        types = dict.fromkeys(header, pl.String())
        with out.open("wb") as file:
            file.write(",".join(map(_write_name, header)).encode() + b"\n")
            for frame in spool:
                rows = fit_columns(frame.to_dict(), types, frame.height)
                rows.write_csv(file, include_header=False)


@dataclass(slots=True)
class _Form:
    """Whether a column holds texts, and how many other values, with the place of the first."""

    has_texts: bool = False
    others: int = 0
    first: str = ""

    def look(self, values: Sequence[JsonValue], places: Sequence[str]) -> None:
        """Count the values of a block."""
        kinds = set(map(type, values))
        self.has_texts |= str in kinds
        if not kinds <= {str, type(None)}:
            met = [n for n, value in enumerate(values) if value is not None and not isinstance(value, str)]
            self.first = self.first or places[met[0]]
            self.others += len(met)

    def note(self, name: str, losses: Losses) -> None:
        """Note what is no text; where a column has no texts beside, a reader can tell what it was."""
        if not self.others:
            return
        outcome = "numbers, lists and the like as JSON text"
        if name not in JSON_FIELDS:
            alike = "which texts beside them may look like"
            outcome = f"{outcome}, {alike if self.has_texts else f'see --json-column {name}'}"
        losses.add(name, outcome, self.first, kept=True, count=self.others)


def _note_nameless(values: Sequence[JsonValue], places: Sequence[str], losses: Losses) -> None:
    met = [place for place, value in zip(places, values, strict=False) if value is not None]
    if met:
        losses.add("field without a name", "left out", met[0], count=len(met))


def _write_cells(name: str, values: Sequence[JsonValue]) -> pl.Series:
    if name == "tags":
        values = [_join_tags(value) for value in values]
    return text_series(values)


def _join_tags(value: JsonValue) -> JsonValue:
    match value:
        case []:
            return None
        case [str(tag)]:
            return tag
        case _:
            return value


def _refuse_nul(shown: str, cells: dict[str, pl.Series], places: Sequence[str]) -> None:
    for name, texts in cells.items():
        found = texts.str.contains("\0", literal=True).arg_true()
        if len(found):
            message = (
                f"field {name} of {places[found[0]]} holds a NUL character, which CSV cannot carry; "
                "accepted by foundry, m365, parquet and uipath"
            )
            raise InputError(message, path=shown)


def _write_name(name: str) -> str:
    return name if _BARE.fullmatch(name) else '"' + name.replace('"', '""') + '"'


WRITER = Writer("csv", (".csv",), write)
