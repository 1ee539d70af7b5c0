"""Parts of an eval document with their places, what breaks its form, and what is worth saying about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from assay.contracts.documents import Notice
from assay.contracts.json_text import JsonValue, walk_json
from assay.datasets.cells import name_kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_KEY = re.compile(r'\s*[{,]\s*"(?:[^"\\]|\\.)*"\s*:')


class FormError(ValueError):
    """A part of a document breaks its form.

    Attributes:
        message: What is wrong and what would be accepted.
        pointer: Path inside the document.
        offset: Characters before the place.
    """

    def __init__(self, message: str, pointer: str, offset: int) -> None:
        """Keep the parts."""
        super().__init__(message)
        self.message, self.pointer, self.offset = message, pointer, offset


class Part(NamedTuple):
    """A value of a document and where it stands.

    Attributes:
        value: The value.
        pointer: Path inside the document; empty for its root.
        offset: Characters of the document before it.
        text: The value as the document spells it.
    """

    value: JsonValue
    pointer: str
    offset: int
    text: str

    @property
    def members(self) -> dict[str, JsonValue]:
        """The value as an object.

        Raises:
            FormError: It is something else.
        """
        if isinstance(self.value, dict):
            return self.value
        raise self.error(f"{name_kind(self.value)}, expected an object")

    def error(self, message: str, *keys: str) -> FormError:
        """Build an error about this part, or about what stands in it under `keys`."""
        return FormError(message, self.point(*keys), self.find(*keys))

    def point(self, *keys: str) -> str:
        """Return the path of what stands in this part under `keys`."""
        return ".".join(filter(None, (self.pointer, *keys)))

    def find(self, *keys: str | int) -> int:
        """Return the offset of what stands in this part under `keys`, as deep as they exist."""
        start = 0
        for key in keys:
            found = next((begin for name, begin, _ in walk_json(self.text, start) if name == key), None)
            if found is None:
                break
            start = found
        return self.offset + start

    def iterate(self, key: str | None = None) -> Iterator[Part]:
        """Yield the elements of a list: of this part, or of its member under `key`, which it has.

        Raises:
            FormError: It is no list.
        """
        keys = () if key is None else (key,)
        values, start = (self.value, 0) if key is None else (self.members[key], self._find_start(key))
        if not isinstance(values, list):
            raise self.error(f"{name_kind(values)}, expected a list", *keys)
        pointer = self.point(*keys)
        for value, (index, begin, end) in zip(values, walk_json(self.text, start), strict=True):
            yield Part(value, f"{pointer}[{index}]", self.offset + begin, self.text[begin:end])

    def _find_start(self, key: str) -> int:
        """Return where a member begins without reading it, as `walk_json` would."""
        before = list(self.members).index(key)
        ends = [0, *(end for _, _, end in islice(walk_json(self.text), before))]
        named = _KEY.match(self.text, ends[-1])
        return named.end() if named else 0


@dataclass(slots=True)
class _Remark:
    """One thing said about a document, with its first place and how often it holds."""

    message: str
    part: Part
    keys: tuple[str, ...]
    strict: bool
    count: int = 0


class Remarks:
    """What a user should know about a document: each thing once, at its first place, with a count.

    Attributes:
        pointers: Every place that something was said about.
    """

    def __init__(self) -> None:
        """Start without any."""
        self.pointers: set[str] = set()
        self._found: dict[tuple[str, tuple[str, ...]], _Remark] = {}

    def add(self, code: str, message: str, part: Part, *keys: str, strict: bool = True) -> None:
        """Say something about a part, or about what stands in it under `keys`."""
        self.pointers.add(part.point(*keys))
        remark = self._found.setdefault((code, keys), _Remark(message, part, keys, strict))
        remark.count += 1

    def list_notices(self, shown: str, text: str) -> tuple[Notice, ...]:
        """Return the notices in the order of their places.

        Args:
            shown: The file as the user named it.
            text: The document.
        """
        found = [(remark.part.find(*remark.keys), code, remark) for (code, _), remark in self._found.items()]
        found.sort(key=lambda entry: entry[0])
        places = find_places(text, (offset for offset, _, _ in found))
        return tuple(
            Notice(
                code,
                remark.message + (f"; {remark.count} times in this file" if remark.count > 1 else ""),
                shown,
                line,
                column,
                remark.part.point(*remark.keys),
                remark.strict,
            )
            for (_, code, remark), (line, column) in zip(found, places, strict=True)
        )


def find_places(text: str, offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Return the 1-based line and column of each of some ascending character offsets, in one pass."""
    line, start, passed = 1, 0, 0
    places: list[tuple[int, int]] = []
    for offset in offsets:
        line += text.count("\n", passed, offset)
        start = max(start, text.rfind("\n", passed, offset) + 1)
        places.append((line, offset - start + 1))
        passed = offset
    return places
