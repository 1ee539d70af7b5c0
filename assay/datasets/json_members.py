"""Members of a JSON array, cut out of a stream of bytes block by block, each with its place."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NoReturn

from assay.contracts.json_text import PLAIN
from assay.datasets.buffers import BLOCK_BYTES, LONGEST_RECORD, Buffer
from assay.datasets.faults import Fault
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from assay.datasets.buffers import Piece
    from assay.datasets.faults import Faults
    from assay.datasets.files import ByteStream, Input

_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_OTHER = rb'[^"\[\]{}]'


def _whole(levels: int) -> bytes:
    """Return the pattern of a text, or a list or object of at most so many levels.

    It takes any bracket that closes; which one may, is for the parser of the member.
    """
    inner = _TEXT
    for _ in range(levels):
        inner = rb"(?:%b|[\[{]%b*+(?:%b%b*+)*+[\]}])" % (_TEXT, _OTHER, inner, _OTHER)
    return inner


_WHOLE = _whole(8)
_SPACE = re.compile(rb"[ \t\r\n]*+")
_NEXT = re.compile(rb"[ \t\r\n]*+,[ \t\r\n]*+(%b)" % _WHOLE, re.DOTALL)
_VALUE = re.compile(rb'%b|[-\w][^\s,"\[\]{}]*+' % _WHOLE, re.DOTALL)
_TOKEN = re.compile(rb'%b++|%b|([\[{])|([\]}])|(")' % (_OTHER, _WHOLE), re.DOTALL)
LONG_MEMBER = 4 << 20  # bytes after which it is looked whether a member that is still open is broken
MOST_CHECKED = 64 << 20
CUT_TOKEN = 16  # characters from the end within which a fault may be that of a token cut in two
_OPEN, _CLOSE, _CUT = 1, 2, 3  # groups of a token: brackets, and the quote of a text that is cut off
_END = ord("]")
_Expected = Literal["list", "first", "value", "more", "nothing"]
_WRONG: Mapping[str, str] = {
    "list": "expected a list of objects",
    "first": "expected an object",
    "value": "expected an object",
    "more": "expected a comma or the end of the list",
    "nothing": "text after the end of the list",
}


@dataclass(frozen=True, slots=True)
class Members:
    """Some consecutive members of an array.

    Attributes:
        piece: The bytes they lie in.
        spans: Start and end of each.
        first: 1-based number of the first.
    """

    piece: Piece
    spans: list[tuple[int, int]]
    first: int

    @property
    def numbers(self) -> range:
        """Their 1-based numbers in the array."""
        return range(self.first, self.first + len(self.spans))

    @property
    def texts(self) -> list[bytes]:
        """Their texts as written."""
        return [self.piece.data[start:end] for start, end in self.spans]

    @property
    def lines(self) -> list[int]:
        """The 1-based line where each begins."""
        line, passed = self.piece.line, 0
        lines: list[int] = []
        for start, _ in self.spans:
            line += self.piece.data.count(b"\n", passed, start)
            lines.append(line)
            passed = start
        return lines

    def pass_on(self, numbered: Faults, faults: Faults) -> None:
        """Hand faults and notices that were noted by number to others, by their places in the file."""
        for fault in numbered.take():
            faults.add_fault(self._place(fault))
        lines = self.lines if numbered.notices else []
        for notice in numbered.notices:
            index = (notice.line or self.first) - 1
            placed = replace(notice, line=lines[index + 1 - self.first], pointer=f"[{index}]")
            faults.notices.append(placed)
        numbered.notices.clear()

    def _place(self, fault: Fault) -> Fault:
        """Turn number and column within a member into line and column within the file."""
        start, end = self.spans[fault.line - self.first]
        text = self.piece.data[start:end].decode("utf-8", "replace")
        line, column = self.piece.find_place(start)
        passed = text[: (fault.column or 1) - 1]
        if "\n" in passed:
            line, column = line + passed.count("\n"), len(passed) - passed.rfind("\n")
        else:
            column += len(passed)
        index = fault.line - 1
        pointer = ".".join(filter(None, (f"[{index}]", fault.pointer)))
        return Fault(line, fault.message, column, pointer, fault.code, fault.text or text, index)


def cut_members(
    stream: ByteStream, size: int = BLOCK_BYTES, longest: int = LONGEST_RECORD
) -> Iterator[Members]:
    """Cut the members out of a JSON array.

    Only what stands between members is judged here; what a member holds is for who parses it.

    Args:
        stream: The file.
        size: Bytes of a block.
        longest: Bytes that a member may have.

    Yields:
        The members whose ends lie in a block, in order; none for a blank file.

    Raises:
        InputError: Something but commas stands between members, a comma stands before the end, text
            after it, or a member or the list is never closed; with line and column.
    """
    buffer, scanner, first = Buffer(stream, size, longest), _Scanner(stream.file), 1
    checked = False
    while not buffer.ended and not buffer.is_overfull:
        buffer.fill()
        spans, end = scanner.scan(buffer.piece, ended=buffer.ended)
        if spans:
            yield Members(buffer.piece, spans, first)
            first += len(spans)
            checked = False
        buffer.drop(end)
        if not checked and len(buffer.piece.data) > LONG_MEMBER:
            checked = True
            scanner.check_open(buffer.piece)
    scanner.check_end(buffer.piece, ended=buffer.ended)


class _Scanner:
    """What was read of an array so far: what may come next, and how far an open member was scanned."""

    def __init__(self, file: Input) -> None:
        self._file = file
        self._expected: _Expected = "list"
        self._depth = 0  # open brackets of the member that begins where the block was left
        self._scanned = 0  # bytes of it that need no second look

    def scan(self, piece: Piece, *, ended: bool) -> tuple[list[tuple[int, int]], int]:
        """Return the spans of the members that end in a piece, and where the first that does not begins."""
        data, position = piece.data, 0
        spans: list[tuple[int, int]] = []
        while True:
            while self._expected == "more" and (found := _NEXT.match(data, position)):
                spans.append(found.span(1))
                position = found.end()
            position = _skip_space(data, position)
            if position == len(data):
                return spans, position
            if self._expected in ("first", "value") and data[position] != _END:
                end = self._find_end(piece, position, ended=ended)
                if end is None:
                    return spans, position
                spans.append((position, end))
                position, self._expected = end, "more"
            else:
                self._pass_sign(piece, position)
                position += 1

    def check_open(self, rest: Piece, *, ended: bool = False) -> None:
        """Refuse a member whose end is not at hand, if what is at hand proves that it is not JSON."""
        text = rest.data[:MOST_CHECKED].decode("utf-8", "replace")
        try:
            PLAIN.raw_decode(text)
        except json.JSONDecodeError as error:
            whole = ended and len(rest.data) <= MOST_CHECKED
            if whole or not (error.msg.startswith("Unterminated") or len(text) - error.pos < CUT_TOKEN):
                self._refuse(error.msg, *rest.find_place(len(text[: error.pos].encode())))
        except (ValueError, RecursionError):
            return

    def check_end(self, rest: Piece, *, ended: bool) -> None:
        """Refuse a file that ends, or is left, before its list does."""
        if rest.data:
            self.check_open(rest, ended=ended)
            self._refuse("a member is never closed", rest.line, rest.column)
        if self._expected not in ("list", "nothing"):
            self._refuse("the list is never closed", rest.line, rest.column)

    def _pass_sign(self, piece: Piece, position: int) -> None:
        match self._expected, piece.data[position : position + 1]:
            case "list", b"[":
                self._expected = "first"
            case "more", b",":
                self._expected = "value"
            case (("first" | "more"), b"]"):
                self._expected = "nothing"
            case expected, sign:
                extra = expected == "value" and sign == b"]"
                message = "a comma before the end of the list" if extra else _WRONG[expected]
                self._refuse(message, *piece.find_place(position))

    def _find_end(self, piece: Piece, start: int, *, ended: bool) -> int | None:
        """Return where a member ends; None when that is beyond the piece."""
        data = piece.data
        if not self._depth:
            found = _VALUE.match(data, start)
            if found and (found.end() < len(data) or ended or found.group()[-1:] in b'"]}'):
                return found.end()
            if not found and data[start : start + 1] not in b'"[{':
                self._refuse(_WRONG["value"], *piece.find_place(start))
            if data[start : start + 1] not in b"[{":
                return None
        for token in _TOKEN.finditer(data, start + self._scanned):
            if token.lastindex == _CUT:
                break
            self._depth += (token.lastindex == _OPEN) - (token.lastindex == _CLOSE)
            self._scanned = token.end() - start
            if not self._depth:
                end, self._scanned = token.end(), 0
                return end
        return None

    def _refuse(self, message: str, line: int, column: int) -> NoReturn:
        raise InputError(f"not JSON: {message}", path=self._file.shown, line=line, column=column)


def _skip_space(data: bytes, position: int) -> int:
    found = _SPACE.match(data, position)
    return found.end() if found else position
