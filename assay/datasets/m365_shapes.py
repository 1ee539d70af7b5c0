"""Shapes of JSON values: each says where and how a value deviates from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from assay.contracts.json_text import JsonValue, dump_json
from assay.datasets.cells import name_kind
from assay.errors import list_names, nearest_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Path: TypeAlias = "tuple[str | int, ...]"


@dataclass(frozen=True, slots=True)
class Deviation:
    """A place where a value is not what it should be.

    Attributes:
        path: Keys and indexes that lead there.
        message: What is wrong and what would be accepted.
    """

    path: Path
    message: str

    @property
    def pointer(self) -> str:
        """The path as text, such as `items[0].turns[1].prompt`."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return "".join(steps).removeprefix(".")


Shape: TypeAlias = "Callable[[JsonValue, Path], Iterator[Deviation]]"


def accept_any(value: JsonValue, path: Path) -> Iterator[Deviation]:
    """Accept every value."""
    del value, path
    return iter(())


def accept_text(least: int = 0) -> Shape:
    """Accept text of at least so many characters."""

    def check(value: JsonValue, path: Path) -> Iterator[Deviation]:
        if not isinstance(value, str):
            yield Deviation(path, f"{name_kind(value)}, expected text")
        elif len(value) < least:
            yield Deviation(path, "empty")

    return check


def accept_visible_text(value: JsonValue, path: Path) -> Iterator[Deviation]:
    """Accept text that is not blank."""
    yield from accept_text(1)(value, path)
    if isinstance(value, str) and value.isspace():
        yield Deviation(path, "blank")


def accept_one_of(*accepted: str) -> Shape:
    """Accept one of some texts."""

    def check(value: JsonValue, path: Path) -> Iterator[Deviation]:
        if not isinstance(value, str) or value not in accepted:
            shown = dump_json(value) if isinstance(value, str) else name_kind(value)
            yield Deviation(path, f"{shown}; accepted: {', '.join(accepted)}")

    return check


def accept_flag(value: JsonValue, path: Path) -> Iterator[Deviation]:
    """Accept true and false."""
    if not isinstance(value, bool):
        yield Deviation(path, f"{name_kind(value)}, expected true or false")


def accept_number(low: float | None = None, high: float | None = None, *, whole: bool = False) -> Shape:
    """Accept a number within bounds; `2.0` is a whole one."""

    def check(value: JsonValue, path: Path) -> Iterator[Deviation]:
        if isinstance(value, bool) or not isinstance(value, int | float):
            yield Deviation(path, f"{name_kind(value)}, expected a number")
        elif whole and isinstance(value, float) and not value.is_integer():
            yield Deviation(path, f"{dump_json(value)}, expected a whole number")
        elif low is not None and value < low:
            yield Deviation(path, f"{dump_json(value)}, expected {low} or more")
        elif high is not None and value > high:
            yield Deviation(path, f"{dump_json(value)}, expected {high} or less")

    return check


def accept_null_or(shape: Shape) -> Shape:
    """Accept null beside what `shape` accepts."""

    def check(value: JsonValue, path: Path) -> Iterator[Deviation]:
        if value is not None:
            yield from shape(value, path)

    return check


def accept_list(shape: Shape, least: int = 0, most: int | None = None) -> Shape:
    """Accept a list of so many values of one shape."""

    def check(value: JsonValue, path: Path) -> Iterator[Deviation]:
        if not isinstance(value, list):
            yield Deviation(path, f"{name_kind(value)}, expected a list")
            return
        if len(value) < least:
            yield Deviation(path, "empty")
        if most is not None and len(value) > most:
            yield Deviation(path, f"{len(value)} entries, at most {most} are accepted")
        for index, entry in enumerate(value):
            yield from shape(entry, (*path, index))

    return check


def accept_object(
    fields: Mapping[str, Shape], required: tuple[str, ...] = (), others: Shape | None = None
) -> Shape:
    """Accept an object.

    Args:
        fields: Shape of each member that has a name.
        required: Names of members that must be there.
        others: Shape of members without a name here; None: there may be none.
    """

    def check(value: JsonValue, path: Path) -> Iterator[Deviation]:
        if not isinstance(value, dict):
            yield Deviation(path, f"{name_kind(value)}, expected an object")
            return
        for name in required:
            if name not in value:
                yield Deviation((*path, name), "missing")
        for name, member in value.items():
            shape = fields.get(name, others)
            if shape is None:
                yield Deviation((*path, name), _describe_unknown(name, fields))
            else:
                yield from shape(member, (*path, name))

    return check


def _describe_unknown(name: str, known: Mapping[str, Shape]) -> str:
    close = nearest_names(name, known)
    hint = f"did you mean {list_names(close)}?" if close else f"known: {list_names(sorted(known))}"
    return f"unknown field; {hint}"
