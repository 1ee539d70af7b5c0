"""What the records of one CSV file look like: good ones and the faults of bad ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from assay.datasets.faults import Fault
from assay.datasets.files import describe_byte

if TYPE_CHECKING:
    from assay.datasets.faults import Faults

Run = tuple[int, bytes]  # line of the first of some consecutive good records, and their text

_QUOTED = rb'(?:"[^"]*+")++'  # a doubled quote ends one quoted piece and begins the next
QUOTED = re.compile(_QUOTED)
STRAY = "a quote stands inside an unquoted cell; quote the cell and double the quote"


class CsvForm:
    """The records of a CSV file by its separator and width.

    A quote counts only where a cell begins, so a stray one spoils its own record and no other. The
    patterns never go back over what they took, so an endless record costs no more than its length.

    Attributes:
        separator: One ASCII character.
        width: Cells of a record.
        encoding: The encoding the user named, for messages.
    """

    def __init__(self, separator: bytes, width: int, encoding: str | None = None) -> None:
        """Compile the patterns."""
        self.separator, self.width, self.encoding = separator, width, encoding
        mark = re.escape(separator)
        cell = rb'(?:%b|[^"%b\n]*+)' % (_QUOTED, mark)
        begin = b"" if width > 1 else rb"(?!\r?\n)"  # a blank line is no record, whatever the width
        record = rb"%b%b(?:%b%b){%d}+\r?\n" % (begin, cell, mark, cell, width - 1)
        self._one, self._many = re.compile(record), re.compile(rb"(?:%b)++" % record)
        self._straight = re.compile(rb"%b(?:%b%b)*+\r?\n" % (cell, mark, cell))
        self._any = any_record(separator)
        self._signs = separator * (width - 1) + b"\n"
        self._not_signs = bytes(set(range(256)) - set(self._signs))
        space = re.escape(bytes(set(b" \t") - set(separator))) if width > 1 else b""
        self._blank = re.compile((rb"[%b]*+" % space if space else b"") + rb"\r?\n")
        self._bare_ends = re.compile(rb'%b|[^"%b\n]*\r(?=%b)' % (_QUOTED, mark, mark))

    def is_good(self, record: bytes) -> bool:
        """Whether a record with its line end is well formed and of the width."""
        return self._one.fullmatch(record) is not None

    def cut_records(self, data: bytes, line: int, faults: Faults) -> tuple[list[Run], int]:
        """Cut off the records that are whole.

        Args:
            data: Text of which a record begins at the first byte.
            line: The line of that.
            faults: Takes the records that are not good.

        Returns:
            Runs of good records, and how many bytes were cut off, blank lines included.
        """
        runs: list[Run] = []
        if not self._any.match(data):
            return runs, 0
        whole = data[: data.rfind(b"\n") + 1]
        if self._is_plain(whole) and _is_utf8(whole):
            return [(line, whole)], len(whole)
        encoded = _is_utf8(whole)
        good = self._many if encoded else self._one
        position = 0
        while True:
            found = good.match(data, position)
            if found and (encoded or _is_utf8(found.group())):
                runs.append((line, found.group()))
            else:
                found = found or self._any.match(data, position)
                if found is None:
                    return runs, position
                self._judge(found.group(), line, faults)
            line += data.count(b"\n", position, found.end())
            position = found.end()

    def quote_bare_ends(self, data: bytes) -> bytes:
        """Quote the unquoted cells of good records that end in CR, which a reader would drop.

        The CR of a line end is not part of a cell; one more before it is, and stays.
        """
        if b"\r" not in data or b"\r" + self.separator not in data:
            return data
        return self._bare_ends.sub(
            lambda cell: cell.group() if cell.group().startswith(b'"') else b'"%b"' % cell.group(), data
        )

    def _is_plain(self, lines: bytes) -> bool:
        """Whether lines hold no quote, and each as many cells as it should; told by their signs alone."""
        if self.width == 1 or not lines or b'"' in lines:
            return False
        return lines.translate(None, self._not_signs) == self._signs * lines.count(b"\n")

    def _judge(self, record: bytes, line: int, faults: Faults) -> None:
        if self._blank.fullmatch(record):
            return
        code = "bad_row"
        try:
            text = record.decode()
        except UnicodeDecodeError as error:
            line += record.count(b"\n", 0, error.start)
            message, code = describe_byte(record[error.start], self.encoding), "encoding"
            text = record.decode("utf-8", "backslashreplace")
        else:
            message = STRAY
            if self._straight.fullmatch(record):
                cells = QUOTED.sub(b"", record).count(self.separator) + 1
                message = f"{cells} cells, the header has {self.width}"
        faults.add_fault(Fault(line, message, code=code, text=text.removesuffix("\n").removesuffix("\r")))


def any_record(separators: bytes) -> re.Pattern[bytes]:
    """Return the pattern of one record, good or bad, that ends with its line."""
    mark = re.escape(separators)
    rest = rb"[^%b\n]*+" % mark
    cell = rb'(?:%b(?!")%b|(?!")%b)' % (_QUOTED, rest, rest)
    return re.compile(rb"%b(?:[%b]%b)*+\n" % (cell, mark, cell))


def _is_utf8(data: bytes) -> bool:
    """Whether bytes are UTF-8; the cast costs a tenth of decoding."""
    try:
        pl.Series([data]).cast(pl.String)
    except pl.exceptions.ComputeError:
        return False
    return True
