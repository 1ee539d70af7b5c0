"""CsvColumns: whether columns of a CSV text have the expected values."""

from __future__ import annotations

import csv
import io
from collections import Counter
from typing import TYPE_CHECKING

from pydantic import Field

from assay.contracts.json_text import dump_json
from assay.errors import CallError
from evaluators.contract import RowEvaluator, Verdict
from evaluators.output_sides import (
    OutputOptions,
    judge_lines,
    read_side,
    split_lines,
    tell_compat,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

Row = tuple[str, ...]
_MAX_CELL = 2**31 - 1  # characters; the reader of CSV has a limit of its own, far below


class CsvColumnsOptions(OutputOptions):
    """Options of CsvColumns."""

    columns: list[str] | None = Field(
        default=None,
        min_length=1,
        description="columns to compare, case aside; without it those of the expected text",
    )
    separator: str = Field(default=",", min_length=1, max_length=1, description="what separates values")
    case_sensitive: bool = Field(default=True, description="whether upper and lower case differ in values")


def compare_columns(options: CsvColumnsOptions, fields: Fields) -> Verdict:
    """Score 1 where all rows have the expected values in the columns, else 0; by line the share of rows.

    White space around values is dropped, other columns and the order of columns do not count. `compat`
    compares the first row alone, or by line splits at every delimiter, be it in quotes or not.

    Raises:
        CallError: `bad_csv`, when the expected text lacks a column, or in `compat` either side a column or a
            row; `duplicate_column`, when a header names a column that counts twice (in `compat` the last
            counts); `missing_field`, when a side lacks the part that is to be compared.
    """
    got, wanted = (_read_text(options, fields, name) for name in ("response", "expected_response"))
    if options.compat:
        return tell_compat(options, _compare_exact(options, got, wanted))
    expected = _read_rows(options, wanted, options.columns)
    names = options.columns or _read_header(options, wanted)
    try:
        found = _read_rows(options, got, names)
    except CallError as error:
        if error.code != "bad_csv":
            raise
        return Verdict(score=0.0, reason=error.message)
    if options.line_by_line:
        return _compare_rows(found, expected)
    if len(found) != len(expected):
        return Verdict(score=0.0, reason=f"{len(found)} rows, {len(expected)} expected")
    differing = next((n for n, (a, b) in enumerate(zip(found, expected, strict=True), 1) if a != b), None)
    if differing is None:
        return Verdict(score=1.0)
    reason = f"row {differing}: expected {expected[differing - 1]}, got {found[differing - 1]}"
    return Verdict(score=0.0, reason=reason)


def _compare_rows(found: Sequence[Row], expected: Sequence[Row]) -> Verdict:
    got, wanted = ([dump_json(row) for row in rows] for rows in (found, expected))
    return judge_lines(got, wanted, lambda left, right: float(left == right), empty=1.0)


def _compare_exact(options: CsvColumnsOptions, got: str, wanted: str) -> Verdict:
    """Compare as UiPath does, which has this evaluator in its older generation alone."""

    def compare(*texts: str) -> float:
        first = [_read_rows(options, text, options.columns)[:1] for text in texts]
        if [] in first:
            raise CallError("bad_csv", "no row below the header")
        return float(first[0] == first[1])

    def score(left: str, right: str) -> float:
        try:
            return compare(left, right)
        except CallError:
            return 0.0

    if not options.line_by_line:
        return Verdict(score=compare(got, wanted))
    left, right = (split_lines(text, options.line_delimiter, exact=True) for text in (got, wanted))
    if not left or not right:
        raise CallError("bad_csv", "no header")

    def score_rows(actual: str, expected: str) -> float:
        return score(
            options.line_delimiter.join((left[0], actual)), options.line_delimiter.join((right[0], expected))
        )

    return judge_lines(left[1:], right[1:], score_rows, empty=0.0)


def _read_text(options: CsvColumnsOptions, fields: Fields, name: str) -> str:
    """Return the text of a side; an object is taken for its `content`, as answers of agents have it."""
    value: JsonValue = read_side(options, fields, name)
    if isinstance(value, dict) and isinstance(value.get("content"), str):
        value = value["content"]
    return write_text(value)


def _read_header(options: CsvColumnsOptions, text: str) -> list[str]:
    rows = _parse(options, text)
    return rows[0] if rows else []


def _read_rows(options: CsvColumnsOptions, text: str, columns: Sequence[str] | None) -> list[Row]:
    """Return the values of the columns, one tuple per row after the header; blank lines are no rows.

    Raises:
        CallError: There is no header with these columns, or one of them stands there twice.
    """
    header, *rows = _parse(options, text) or [[]]
    places = _find_places(options, header, columns or header)
    return [tuple(_pick(options, row, place) for place in places) for row in rows]


def _find_places(options: CsvColumnsOptions, header: Sequence[str], columns: Sequence[str]) -> list[int]:
    names = [name.strip().casefold() for name in header]
    wanted = [name.strip().casefold() for name in columns]
    counts, places = Counter(names), {name: place for place, name in enumerate(names)}
    if not wanted:
        raise CallError("bad_csv", "no header")
    for name in wanted:
        if name not in places:
            raise CallError("bad_csv", f"no column {name!r}")
        if counts[name] > 1 and options.compat is None:
            raise CallError("duplicate_column", f"column {name!r} stands in the header twice")
    return [places[name] for name in wanted]


def _pick(options: CsvColumnsOptions, row: Sequence[str], place: int) -> str:
    value = row[place].strip() if place < len(row) else ""
    return value if options.case_sensitive else value.casefold()


def _parse(options: CsvColumnsOptions, text: str) -> list[list[str]]:
    csv.field_size_limit(_MAX_CELL)  # of the process; the same at every call, so threads do not disagree
    try:
        rows = list(
            csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=options.separator)
        )
    except csv.Error as error:
        raise CallError("bad_csv", str(error)) from error
    return [row for row in rows if row and (len(row) > 1 or row[0].strip())]


EVALUATOR = RowEvaluator(
    name="CsvColumns",
    summary="Whether columns of a CSV text have the expected values.",
    aliases=("csv_columns", "uipath-csv-column-match"),
    needs=("response", "expected_response"),
    json_fields=("response", "expected_response"),
    options=CsvColumnsOptions,
    judge=compare_columns,
    version=2,
)
