"""Rows of test cases, whatever file they come from: cells turned into frames of table ROWS."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.documents import Notice
from assay.contracts.tables import ROWS, conform
from assay.datasets.cells import SEED_KEYS, TEXT_COLUMNS, tag_list, text_series
from assay.datasets.interactions import unfold_definitions, unfold_interactions
from assay.datasets.seeds import seed_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.json_text import JsonValue
    from assay.datasets.faults import Faults
    from assay.datasets.files import Input
    from assay.datasets.interactions import Definitions, Unfolded

    Cells = dict[str, list[JsonValue]]

_INTERACTIONS = ("messages", "query", "response", "tool_calls")


class Rows:
    """The rows of one file, framed block by block."""

    def __init__(self, file: Input, faults: Faults) -> None:
        """Start before the first row.

        Args:
            file: The file, whose reading says which form a row with two forms is taken in.
            faults: Takes rows that hold both forms, or cells that are not what they should be.
        """
        self._file, self._faults = file, faults
        self._count = 0
        self._converted: Counter[str] = Counter()
        self._first: dict[str, int] = {}

    def frame(self, numbers: Sequence[int], item_json: pl.Series, cells: Cells) -> pl.DataFrame:
        """Return ROWS for some consecutive rows; refused ones are left out.

        Args:
            numbers: 1-based line, or row, of each.
            item_json: The source row of each as JSON text.
            cells: Column of `ROW_NAMES` to values; absent columns are null.
        """
        refused = len(self._faults)
        self._faults.find_text = lambda number: str(item_json[numbers.index(number)])
        derived = self._unfold(numbers, cells)
        self._faults.find_text = None
        texts = {column: text_series(cells[column]) for column in TEXT_COLUMNS if column in cells}
        frame = pl.DataFrame(
            {
                "source_line": pl.Series(numbers, dtype=pl.Int64),
                "item_json": item_json,
                **texts,
                **derived,
            }
        )
        if len(self._faults) > refused:
            good = [number not in self._faults.rows for number in numbers]
            frame = frame.filter(pl.Series(good, dtype=pl.Boolean))
        if "id" in frame.columns:
            frame = frame.with_columns(pl.col("id").replace("", None))
        frame = frame.with_row_index("item_index", offset=self._count).with_columns(
            turn=pl.lit(0),
            turn_count=pl.lit(1),
            source_file=pl.lit(self._file.shown),
            evaluators_mode=pl.lit("extend"),
        )
        self._count += frame.height
        return conform(frame, ROWS)

    def note_conversions(self) -> None:
        """Note what was converted from other forms of messages, once all rows were framed."""
        self._faults.notices.extend(
            Notice("converted", f"{what} in {count} rows", self._file.shown, self._first[what])
            for what, count in self._converted.items()
        )

    def _unfold(self, numbers: Sequence[int], cells: Cells) -> dict[str, pl.Series]:
        """Read messages, definitions, calls, tags and seeds; texts found in messages replace cells."""
        derived: dict[str, pl.Series] = {}
        if "messages" in cells or "tool_calls" in cells or _holds_list(cells, "query", "response"):
            blank: list[JsonValue] = [None] * len(numbers)
            given = {name: cells.get(name) or list(blank) for name in _INTERACTIONS}
            unfolded = unfold_interactions(given, numbers, self._faults, self._file.reading.prefer)
            cells["query"], cells["response"] = unfolded.queries, unfolded.responses
            derived["messages_json"] = text_series(unfolded.messages_json)
            derived["output_items_json"] = text_series(unfolded.output_items_json)
            derived["tool_calls_json"] = text_series(unfolded.tool_calls_json)
            self._count_conversions(unfolded)
        if "tool_definitions" in cells:
            definitions = unfold_definitions(cells["tool_definitions"], numbers, self._faults)
            derived["tool_definitions_json"] = text_series(definitions.texts)
            self._count_conversions(definitions)
        if "tags" in cells:
            derived["tags"] = pl.Series([tag_list(tags) for tags in cells["tags"]], dtype=pl.List(pl.String))
        if "test_case_description" in cells:
            derived["seed_json"] = self._read_seeds(numbers, cells)
        return derived

    def _count_conversions(self, columns: Unfolded | Definitions) -> None:
        self._converted += columns.conversions
        self._first = columns.first_lines | self._first

    def _read_seeds(self, numbers: Sequence[int], cells: Cells) -> pl.Series:
        present = [key for key in SEED_KEYS if key in cells]
        texts: list[str | None] = []
        for row, number in enumerate(numbers):
            values = {key: cells[key][row] for key in present if cells[key][row] is not None}
            texts.append(self._read_seed(number, values) if "test_case_description" in values else None)
        return pl.Series(texts, dtype=pl.String)

    def _read_seed(self, number: int, values: Mapping[str, JsonValue]) -> str | None:
        try:
            return seed_text(values)
        except ValueError as error:
            self._faults.add(number, str(error))
            return None


def _holds_list(cells: Cells, *columns: str) -> bool:
    return any(list in set(map(type, cells.get(column, ()))) for column in columns)
