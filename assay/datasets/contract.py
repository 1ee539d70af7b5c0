"""What a dialect is: a name, a test whether a file is its own, and a reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.contracts.documents import Document
    from assay.datasets.files import Source


@dataclass(frozen=True, slots=True)
class Dialect:
    """One form of dataset.

    Attributes:
        name: Stored with every run (`foundry`).
        accepts: The form in a few words, for messages.
        claims: From a path and the beginning of its text to whether this dialect reads it. At most
            one dialect claims a file.
        read: From a file that is not blank to its document, which has no rows when the file has none.
    """

    name: str
    accepts: str
    claims: Callable[[Path, str], bool]
    read: Callable[[Source], Document]
