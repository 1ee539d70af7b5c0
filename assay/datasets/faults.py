"""What is wrong with the rows of one file, gathered so that one message tells it all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING

from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.contracts.documents import Notice

MAX_FAULTS = 20
MAX_NOTICES = 1000


@dataclass(frozen=True, slots=True)
class Fault:
    """One row that cannot be used.

    Attributes:
        line: 1-based line, or row where a file has no lines.
        message: What is wrong.
        column: 1-based column, if known.
        pointer: Path inside a JSON document.
        code: Short stable name.
        text: The row as written; empty when it was not kept.
        row: What tells rows apart where lines do not (items of a JSON document): the item's index.
    """

    line: int
    message: str
    column: int | None = None
    pointer: str = ""
    code: str = "bad_row"
    text: str = ""
    row: int | None = None

    @property
    def key(self) -> int:
        """What tells its row from others."""
        return self.line if self.row is None else self.row


class Faults:
    """Faults and notices of one file, noted while it is read.

    Attributes:
        shown: The file as the user named it.
        unit: What is counted: `line`, or `row` where a file has no lines, or `item`.
        notices: What the user should know about rows that are used all the same.
        unsaid: How many notices were left out, as there were too many.
        find_text: From the key of a row to its text, for faults noted without it; None: there is none.
        rows: The refused rows, each by its line, or by its index where lines do not tell rows apart.
    """

    def __init__(self, shown: str, unit: str = "line") -> None:
        """Start without any fault."""
        self.shown, self.unit = shown, unit
        self.notices: list[Notice] = []
        self._first: list[Fault] = []
        self._fresh: list[Fault] = []
        self._lock = Lock()  # one thread reads and notes, another takes
        self.unsaid = 0
        self.find_text: Callable[[int], str] | None = None
        self.rows: set[int] = set()

    def __len__(self) -> int:
        """Return how many rows are refused; a row with two faults counts once."""
        return len(self.rows)

    def add(self, line: int, message: str, column: int | None = None, *, pointer: str = "") -> None:
        """Note a fault by its line; see `add_fault` for all of it."""
        self.add_fault(Fault(line, message, column, pointer))

    def add_fault(self, fault: Fault) -> None:
        """Note one fault; it also says that its row is refused."""
        self.rows.add(fault.key)
        if not fault.text and self.find_text is not None:
            fault = replace(fault, text=self.find_text(fault.key))
        with self._lock:
            self._fresh.append(fault)
        if len(self._first) < MAX_FAULTS:
            self._first.append(fault)

    def note(self, notice: Notice) -> None:
        """Note something about a row that is used all the same, up to `MAX_NOTICES` times."""
        if len(self.notices) < MAX_NOTICES:
            self.notices.append(notice)
        else:
            self.unsaid += 1

    def take(self) -> list[Fault]:
        """Hand out the faults noted since the last call."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
        return fresh

    def raise_any(self) -> None:
        """Raise an InputError if a fault was noted: at the first line, with the first 20 in its text."""
        if not self._first:
            return
        first, *others = faults = sorted(self._first, key=lambda fault: fault.line)
        message = first.message
        if others:
            listed = "".join(f"\n  {self._describe(fault)}" for fault in faults)
            rest = len(self) - len({fault.key for fault in faults})
            message = f"{len(self)} bad {self.unit}s:{listed}" + (f"\n  and {rest} more" if rest > 0 else "")
        pointer = "" if others else first.pointer
        raise InputError(message, path=self.shown, line=first.line, column=first.column, pointer=pointer)

    def _describe(self, fault: Fault) -> str:
        pointer = f"{fault.pointer}: " if fault.pointer else ""
        return f"{self.unit} {fault.line}: {pointer}{fault.message}"
