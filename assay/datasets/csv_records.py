"""CSV in blocks: records cut off at their ends, checked, and parsed to columns of text."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.datasets.buffers import BLOCK_BYTES, LONGEST_RECORD, Buffer
from assay.datasets.csv_form import QUOTED, STRAY, CsvForm, any_record
from assay.datasets.files import decode_utf8, plain_suffix
from assay.errors import ContractError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from assay.datasets.csv_form import Run
    from assay.datasets.faults import Faults
    from assay.datasets.files import ByteStream, Input

SEPARATORS = b",;\t"


@dataclass(frozen=True, slots=True)
class Table:
    """Some consecutive good records.

    Attributes:
        numbers: 1-based line where each begins, Int64.
        cells: String columns under the names of the header; an unquoted empty cell is null, a quoted
            one empty text.
    """

    numbers: pl.Series
    cells: pl.DataFrame


def read_tables(
    stream: ByteStream, faults: Faults, size: int = BLOCK_BYTES, longest: int = LONGEST_RECORD
) -> Iterator[Table]:
    """Read CSV with a header row.

    The separator is tab in `.tsv`, else `,`, `;` or tab, whichever the header holds most of. A blank
    line is no record. Line ends are LF or CRLF; within quotes they are kept as they are.

    Args:
        stream: The file.
        faults: Takes records with more or fewer cells than the header, with a quote inside an unquoted
            cell, or with a byte that is not of the encoding; such a record is in no table.
        size: Bytes of a block.
        longest: Bytes that a record may have.

    Yields:
        Tables of the good records, in order; none for an empty file or a header alone.

    Raises:
        InputError: The header is malformed, repeats a name or lacks one, or a record is never closed.
    """
    buffer = Buffer(_end_last_line(stream), size, longest)
    header = _read_header(buffer, stream.file)
    if header is None:
        return
    form, names = header
    while True:
        runs, end = form.cut_records(buffer.piece.data, buffer.piece.line, faults)
        if runs:
            yield _parse(runs, form, names)
        buffer.drop(end)
        if buffer.ended or buffer.is_overfull:
            break
        buffer.fill()
    if buffer.piece.data:
        _refuse_rest(buffer, faults, stream.file, longest)


def _end_last_line(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """End the last line with LF; a CR that stands alone at its end belongs to its cell."""
    tail = b""
    for chunk in chunks:
        tail = (tail + chunk)[-2:]
        yield chunk
    if tail and not tail.endswith(b"\n"):
        yield b"\r\n" if tail.endswith(b"\r") and tail != b'"\r' else b"\n"


def _read_header(buffer: Buffer, file: Input) -> tuple[CsvForm, list[str]] | None:
    """Take the header off the buffer; None when the file holds nothing."""
    tabs = plain_suffix(file.path) == ".tsv"
    separators = b"\t" if tabs else SEPARATORS
    pattern = any_record(separators)
    while True:
        found = pattern.match(buffer.piece.data)
        while found and not found.group().strip(b" \t\r\n"):
            buffer.drop(found.end())
            found = pattern.match(buffer.piece.data)
        if found:
            break
        if buffer.ended or buffer.is_overfull:
            if not buffer.piece.data:
                return None
            message = "a quote in the header is never closed"
            raise InputError(message, path=file.shown, line=buffer.piece.line)
        buffer.fill()
    line, record = buffer.piece.line, found.group()
    buffer.drop(found.end())
    return _parse_header(record, line, separators, file)


def _parse_header(record: bytes, line: int, separators: bytes, file: Input) -> tuple[CsvForm, list[str]]:
    decode_utf8(record, shown=file.shown, first_line=line, encoding=file.reading.encoding)
    bare = QUOTED.sub(b"", record)
    if b"\r" in bare.rstrip(b"\r\n"):
        message = "lines end in CR alone; save the file with LF or CRLF line ends"
        raise InputError(message, path=file.shown, line=line)
    separator = max((separators[n : n + 1] for n in range(len(separators))), key=bare.count)
    form = CsvForm(separator, bare.count(separator) + 1, file.reading.encoding)
    if not form.is_good(record):
        raise InputError(STRAY, path=file.shown, line=line)
    places = list(map(str, range(form.width)))
    names = [name or "" for name in _parse([(line, record)], form, places).cells.row(0)]
    for place, name in enumerate(names, start=1):
        if not name:
            raise InputError(f"column {place} has no name in the header", path=file.shown, line=line)
    repeated = _find_repeated(names)
    if repeated is not None:
        raise InputError(f"header {repeated!r} appears twice", path=file.shown, line=line)
    return form, names


def _find_repeated(names: Sequence[str]) -> str | None:
    seen: set[str] = set()
    return next((name for name in names if name in seen or seen.add(name)), None)


def _parse(runs: Sequence[Run], form: CsvForm, names: Sequence[str]) -> Table:
    data = b"".join(text for _, text in runs)
    # A first row of our own keeps the reader from taking U+FEFF in the first cell for a byte order mark.
    guard = form.separator.join([b'""'] * form.width) + b"\n"
    table = pl.read_csv(
        guard + form.quote_bare_ends(data),
        separator=form.separator.decode(),
        has_header=False,
        schema=dict.fromkeys(names, pl.String),
    ).slice(1)
    return Table(_number(table, data, runs), table)


def _number(table: pl.DataFrame, data: bytes, runs: Sequence[Run]) -> pl.Series:
    """Return the line of each record: one after the other but for line ends in cells and between runs."""
    lines = data.count(b"\n")
    if lines == table.height:
        begins = pl.int_range(lines, dtype=pl.Int64, eager=True)
    else:
        breaks = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True)).cast(pl.Int64)
        ends = table.select((breaks + 1).cum_sum()).to_series()
        if not table.height or ends[-1] != lines:
            raise ContractError(f"{table.height} records were parsed of {lines} lines")
        begins = ends.shift(1, fill_value=0)
    if len(runs) == 1:
        return begins + runs[0][0]
    firsts = [0, *itertools.accumulate(text.count(b"\n") for _, text in runs)][:-1]
    shifts = [line - first for (line, _), first in zip(runs, firsts, strict=True)]
    run = pl.Series(firsts, dtype=pl.Int64).search_sorted(begins, side="right") - 1
    return begins + pl.Series(shifts, dtype=pl.Int64).gather(run)


def _refuse_rest(buffer: Buffer, faults: Faults, file: Input, longest: int) -> None:
    message = "a quote in this row is never closed"
    if not buffer.ended:
        message = f"this row is longer than {longest:,} bytes; a quote in it may never be closed"
    if file.reading.on_bad_row == "fail":
        faults.add(buffer.piece.line, message)
        faults.raise_any()
    raise InputError(message, path=file.shown, line=buffer.piece.line)
