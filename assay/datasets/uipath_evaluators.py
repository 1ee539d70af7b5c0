"""Evaluator files of a UiPath project, of both generations, and what a set calls them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from assay.contracts.documents import Notice
from assay.datasets.cells import name_kind
from assay.datasets.files import Input, find_place, read_source
from assay.datasets.json_source import parse_document
from assay.datasets.m365_parts import Part
from assay.errors import list_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.config import Reading
    from assay.contracts.json_text import JsonValue
    from assay.datasets.files import Source
    from assay.errors import InputError

# (category, type) of an older file to the type id of today; None stands for any other type. Today's
# generation has no ids for the last three of a type of their own; these are ours.
LEGACY_TYPES: Mapping[tuple[int, int | None], str] = {
    (0, 1): "uipath-exact-match",
    (0, 6): "uipath-json-similarity",
    (0, 10): "uipath-csv-column-match",
    (1, 8): "uipath-context-precision",
    (1, 9): "uipath-faithfulness",
    (1, None): "uipath-llm-judge-output-semantic-similarity",
    (3, None): "uipath-llm-judge-trajectory-similarity",
}
VERSION = "1.0"


@dataclass(frozen=True, slots=True)
class Evaluator:
    """One evaluator file.

    Attributes:
        source: The file.
        root: Its content.
        id: Its `id`; empty when it has none.
        name: Its own name, else its id, else the stem.
        config: Where its settings stand: `evaluatorConfig`, in older files the body itself.
        path: Keys that lead to its settings.
    """

    source: Source
    root: Part
    id: str
    name: str
    config: Mapping[str, JsonValue]
    path: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The file, for messages."""
        return self.source.shown

    @property
    def legacy(self) -> bool:
        """Whether it is of the older generation, known by `category` and `type`."""
        return _is_legacy(self.root.members)

    @property
    def custom(self) -> str | None:
        """The class that a custom evaluator names, such as `file://x.py:Class`."""
        schema = pick(self.root.members, "evaluatorSchema")
        return schema if isinstance(schema, str) and schema.startswith("file://") else None

    @property
    def type_id(self) -> str:
        """The type id, such as `uipath-exact-match`; of a custom evaluator its name.

        Raises:
            InputError: The file has none, or a category and type that nothing corresponds to.
        """
        if self.custom:
            return self.name
        body = self.root.members
        if not self.legacy:
            type_id = pick(body, "evaluatorTypeId")
            if isinstance(type_id, str) and type_id:
                return type_id
            raise self.error("no evaluatorTypeId, and no category")
        category, kind = body.get("category"), body.get("type")
        if isinstance(category, int) and (kind is None or isinstance(kind, int)):
            for key in ((category, kind), (category, None)):
                if key in LEGACY_TYPES:
                    return LEGACY_TYPES[key]
        message = (
            f"category {category} with type {kind} is not supported; accepted: category 0 with type 1 "
            "(equals), 6 (JSON similarity) or 10 (CSV column), category 1 (judge), category 3 (trajectory)"
        )
        raise self.error(message, "type")

    def error(self, message: str, *keys: str) -> InputError:
        """Build an error about what stands in the file under `keys`."""
        found = self.root.error(message, *keys)
        return self.source.error(message, offset=found.offset, pointer=found.pointer)

    def list_notices(self) -> list[Notice]:
        """Return what a user should know about the file."""
        notices: list[Notice] = []
        version = self.root.members.get("version")
        if version is not None and version != VERSION:
            message = f'not the text "{VERSION}", the only version UiPath itself reads; read all the same'
            notices.append(self._note("version_form", message, "version", strict=True))
        if self.custom:
            message = f"a custom evaluator; its class is not run, and {self.name!r} is looked for here"
            name = find_name(self.root.members, "evaluatorSchema")
            notices.append(self._note("custom_evaluator", message, str(name)))
        if "ignoreCase" in self.config:
            message = "not a setting of UiPath's evaluators, which compare without case; it is caseSensitive"
            notices.append(self._note("unknown_setting", message, *self.path, "ignoreCase"))
        return notices

    def _note(self, code: str, message: str, *keys: str, strict: bool = False) -> Notice:
        line, column = find_place(self.source.text, self.root.find(*keys))
        return Notice(code, message, self.shown, line, column, self.root.point(*keys), strict)


@dataclass(slots=True)
class Evaluators:
    """The evaluator files of a project.

    Attributes:
        folder: Where they lie, for messages.
        files: Each of them; None when there is no such folder.
    """

    folder: str
    files: Sequence[Evaluator] | None
    _ranked: tuple[dict[str, list[Evaluator]], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Sort the files by what they may be called."""
        ids: dict[str, list[Evaluator]] = {}
        stems: dict[str, list[Evaluator]] = {}
        names: dict[str, list[Evaluator]] = {}
        for each in self.files or ():
            called = ((ids, each.id.casefold()), (stems, each.source.path.stem), (names, each.name))
            for rank, name in called:
                rank.setdefault(name, []).append(each)
        self._ranked = (ids, stems, names)

    def bind(self, reference: str, part: Part, *keys: str) -> Evaluator:
        """Find the evaluator that a reference means: by id, then file stem, then name.

        Args:
            reference: What the set says; ids are the same in either case.
            part: Where it says so, or in it under `keys`.
            keys: See `part`.

        Raises:
            FormError: No evaluator is called so, or two have the name.
        """
        called = zip(self._ranked, (reference.casefold(), reference, reference), strict=True)
        found = next((rank[name] for rank, name in called if name in rank), None)
        if not found or not reference:
            message = f"unknown evaluator {reference!r}; known in {self.folder}: {self._describe()}"
            raise part.error(message, *keys)
        if len(found) > 1:
            files = list_names(evaluator.shown for evaluator in found)
            raise part.error(f"{reference!r} is the name of several evaluators: {files}; use the id", *keys)
        return found[0]

    def _describe(self) -> str:
        named = (f"{each.id or each.name} ({Path(each.shown).name})" for each in self.files or ())
        return list_names(named) or "none"


def pick(holder: Mapping[str, JsonValue], camel: str) -> JsonValue:
    """Return a setting under its camelCase name, else its snake_case name, else null."""
    name = find_name(holder, camel)
    return None if name is None else holder[name]


def find_name(holder: Mapping[str, JsonValue], camel: str) -> str | None:
    """Return how `holder` spells a setting, `camelCase` or `snake_case`, if it is there and not null."""
    if holder.get(camel) is not None:
        return camel
    snake = to_snake(camel)
    return snake if holder.get(snake) is not None else None


@cache
def to_snake(camel: str) -> str:
    """Write `camelCase` as `snake_case`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)


def read_evaluators(folder: Path, shown: str, reading: Reading) -> Evaluators:
    """Read the evaluator files of a folder, sorted by name.

    Args:
        folder: Where they lie.
        shown: The folder as messages call it.
        reading: How files are read.

    Raises:
        InputError: A file is not a JSON object, or two share an id.
    """
    if not folder.is_dir():
        return Evaluators(shown, None)
    found: dict[str, Evaluator] = {}
    for path in sorted(folder.glob("*.json")):
        evaluator = _read_evaluator(Input(path, str(Path(shown) / path.name), reading))
        key = evaluator.id.casefold() or evaluator.shown
        if key in found:
            raise evaluator.error(f"id {evaluator.id!r} is also that of {found[key].shown}", "id")
        found[key] = evaluator
    return Evaluators(shown, list(found.values()))


def _read_evaluator(file: Input) -> Evaluator:
    source = read_source(file)
    root = Part(parse_document(source), "", 0, source.text)
    body = root.value
    if not isinstance(body, dict):
        raise source.error(f"{name_kind(body)}; an evaluator file holds one object", offset=0)
    name = None if _is_legacy(body) else find_name(body, "evaluatorConfig")
    config = body if _is_legacy(body) else body.get(name or "", {})
    if not isinstance(config, dict):
        message = f"{name_kind(config)}, expected an object"
        raise source.error(message, offset=root.find(str(name)), pointer=str(name))
    names = (body.get("name"), config.get("name"), body.get("id"), file.path.stem)
    return Evaluator(
        source=source,
        root=root,
        id=str(body.get("id") or ""),
        name=next(name for name in names if isinstance(name, str) and name),
        config=config,
        path=() if name is None else (name,),
    )


def _is_legacy(body: Mapping[str, JsonValue]) -> bool:
    coded = ("evaluatorTypeId", "evaluatorSchema")
    return "category" in body and not any(find_name(body, name) for name in coded)
