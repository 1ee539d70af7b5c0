"""Every error that assay raises on purpose.

AssayError
├── SetupError            exit 2: nothing was scored
│   ├── InputError        a dataset or answer file: path, line, column, JSON pointer
│   ├── ConfigError       an option, evaluator, mapping, selection or run reference
│   ├── EndpointError     a key, model or URL that the first wave of calls proved wrong
│   └── QueryError        SQL that was refused, failed or ran too long
├── UndecidedError        exit 3: calls were made, but no verdict can be given
│   └── StoreError        the history cannot be written or read
├── CallError             one call failed; becomes a row, never ends a run
└── ContractError         exit 70: a table broke its own contract, a bug of ours
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, ClassVar, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.contracts.chat import ChatReply

MAX_NAMES = 12  # a message never lists more names than a reader can scan


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return up to `count` of `known` that begin with `name` or resemble it, best first, ignoring case."""
    by_folded: dict[str, str] = {}
    for candidate in known:
        by_folded.setdefault(candidate.casefold(), candidate)
    folded = name.casefold()
    matches = [each for each in by_folded if folded and each.startswith(folded)]
    matches += difflib.get_close_matches(folded, by_folded, n=count, cutoff=0.5)
    return [by_folded[match] for match in dict.fromkeys(matches)][:count]


def list_names(names: Iterable[str]) -> str:
    """Join names for a message, cut after `MAX_NAMES` with a count of the rest."""
    every = list(names)
    more = f" and {len(every) - MAX_NAMES} more" if len(every) > MAX_NAMES else ""
    return ", ".join(every[:MAX_NAMES]) + more


class AssayError(Exception):
    """Base of all errors that assay raises on purpose."""

    exit_code: ClassVar[int] = 70


class SetupError(AssayError):
    """The run cannot start: nothing was scored and nothing is left in the store."""

    exit_code = 2


class InputError(SetupError):
    """A file cannot be read as the dataset or answers it should be.

    Attributes:
        path: The file as the user named it.
        line: 1-based line, if known.
        column: 1-based column, if known.
        pointer: Path inside a JSON document, such as `items[0].turns`.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str,
        line: int | None = None,
        column: int | None = None,
        pointer: str = "",
    ) -> None:
        """Compose `path:line:column: pointer: message` from the parts that are known."""
        self.path, self.line, self.column, self.pointer, self.message = path, line, column, pointer, message
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(": ".join(part for part in (place, pointer, message) if part))


class ConfigError(SetupError):
    """An option, evaluator, mapping, selection or reference is not acceptable."""

    @classmethod
    def unknown(
        cls,
        kind: str,
        name: str,
        known: Iterable[str],
        *,
        where: str = "",
        aliases: Mapping[str, str] | None = None,
    ) -> Self:
        """Build the message for a name that is not among `known`, nearest names first.

        Args:
            kind: What the name should be one of.
            name: What was given.
            known: What would be accepted.
            where: Place of the name.
            aliases: Further names that resemblance is looked for in, each with the known name it means.
        """
        names = sorted(known)
        meant = {**(aliases or {}), **{each: each for each in names}}
        close = dict.fromkeys(meant[each] for each in nearest_names(name, meant))
        hint = f"did you mean {list_names(close)}? " if close else ""
        place = f"{where}: " if where else ""
        return cls(f"{place}unknown {kind} {name!r}; {hint}known: {list_names(names) or 'none'}")


class EndpointError(SetupError):
    """A key, model or URL is wrong, as the first calls proved."""


class QueryError(SetupError):
    """SQL was refused, failed or ran too long."""


class UndecidedError(AssayError):
    """Work was done, but no verdict can be given."""

    exit_code = 3


class StoreError(UndecidedError):
    """The history cannot be written or read."""


class CallError(AssayError):
    """One call to a model or agent failed; the row keeps the code.

    Attributes:
        code: Short stable name, such as `timeout`, `html_body` or `no_choices`.
        attempts: How many requests were sent before giving up.
        reply: What the server answered all the same, such as a text that was cut off; counts in the usage.
    """

    def __init__(self, code: str, message: str, *, attempts: int = 1, reply: ChatReply | None = None) -> None:
        """Keep the parts and compose `code: message`."""
        self.code, self.message, self.attempts, self.reply = code, message, attempts, reply
        super().__init__(f"{code}: {message}")


class NotApplicableError(AssayError):
    """A row holds nothing that an evaluator could judge; it is skipped, with the message as its reason."""


class ContractError(AssayError):
    """A table does not have the columns or types its contract names."""
