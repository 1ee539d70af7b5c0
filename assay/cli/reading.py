"""Options that say how dataset files are read, shared by all commands that read some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Parameter
from pydantic import ValidationError

from assay.config import Reading
from assay.errors import ConfigError


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Files:
    """How dataset files are read."""

    encoding: str | None = None
    """Text encoding, such as cp1252. Default: UTF-8, or what a byte order mark says."""
    json_column: Annotated[tuple[str, ...], Parameter(negative="")] = ()
    """Column whose texts are JSON; repeatable."""
    prefer: Literal["messages", "query"] | None = None
    """Which form counts in rows that hold both messages and query or response."""
    on_bad_row: Literal["fail", "quarantine"] = "fail"
    """fail names every bad row and ends; quarantine sets them aside and goes on."""
    allow_empty: Annotated[bool, Parameter(negative="")] = False
    """Take files without rows."""
    lenient: Annotated[bool, Parameter(negative="")] = False
    """Take NaN literals as null, and of repeated keys the last."""
    strict: Annotated[bool, Parameter(negative="")] = False
    """Refuse what the published formats forbid, though it could be read."""

    @property
    def settings(self) -> dict[str, object]:
        """The settings that were given, by their names in `Reading`."""
        given = {
            "encoding": self.encoding,
            "json_columns": list(self.json_column) or None,
            "prefer": self.prefer,
            "on_bad_row": self.on_bad_row,
            "allow_empty": self.allow_empty,
            "lenient": self.lenient,
            "strict": self.strict,
        }
        return {name: value for name, value in given.items() if value is not None}

    @property
    def reading(self) -> Reading:
        """The settings as `Reading`.

        Raises:
            ConfigError: The encoding is none that is known.
        """
        try:
            return Reading.model_validate(self.settings)
        except ValidationError as error:
            message = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise ConfigError(f"--encoding: {message}") from error
