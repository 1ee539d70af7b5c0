"""Versions of eval documents: which are read, and what each of them may hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from assay.contracts.json_text import dump_json

if TYPE_CHECKING:
    from assay.datasets.m365_parts import Part, Remarks

FIRST = "1.0.0"
ACCEPTED = "1.0.0 to 1.11.x and 2.0.x"
NEWEST_MINOR = {1: 11, 2: 0}
EVALUATIONS = (1, 2)  # the version from which on turns and evaluators may stand in a document

_FORM = re.compile(r"(\d+)\.(\d+)\.(\d+)", re.ASCII)
_SHORT = re.compile(r"\d+(\.\d+)?", re.ASCII)


class Version(NamedTuple):
    """The version of a document.

    Attributes:
        text: As written; the first version when nothing is written.
        major: Its first number.
        minor: Its second number.
    """

    text: str = FIRST
    major: int = 1
    minor: int = 0

    @property
    def is_open(self) -> bool:
        """Whether its items may hold fields that the format does not name; later versions close them."""
        return (self.major, self.minor) == (1, 0)

    @property
    def lacks_evaluations(self) -> bool:
        """Whether it comes before turns and evaluators."""
        return (self.major, self.minor) < EVALUATIONS


def read_version(root: Part, remarks: Remarks) -> Version | None:
    """Read the version that a document states; one newer than what is known is remarked on.

    Returns:
        The version; None when the document states none.

    Raises:
        FormError: It is no version, or one whose major number is unknown.
    """
    if not isinstance(root.value, dict) or "schemaVersion" not in root.value:
        return None
    stated = root.value["schemaVersion"]
    if not isinstance(stated, str) or not (numbers := _FORM.fullmatch(stated)):
        raise root.error(
            f"{dump_json(stated)} is not a version; {_describe_accepted(stated)}", "schemaVersion"
        )
    major, minor = (int(number.lstrip("0")[:9] or 0) for number in numbers.groups()[:2])
    if major not in NEWEST_MINOR:
        message = f"{dump_json(stated)} is not supported; {_describe_accepted(stated)}"
        raise root.error(message, "schemaVersion")
    if minor > NEWEST_MINOR[major]:
        message = f"{stated} is newer than what is known ({ACCEPTED}); fields that came later are refused"
        remarks.add("version_too_new", message, root, "schemaVersion")
    return Version(stated, major, minor)


def _describe_accepted(stated: object) -> str:
    text = stated if isinstance(stated, str) else dump_json(stated)
    short = _SHORT.fullmatch(text)
    if short and text.split(".")[0] in {"1", "2"}:
        full = ".".join([*text.split("."), "0", "0"][:3])
        return f'did you mean "{full}"? accepted: {ACCEPTED}'
    return f"accepted: {ACCEPTED}"
