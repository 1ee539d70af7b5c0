"""Evaluator files of a UiPath project, of both generations, and the references to them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from assay.datasets.files import read_source
from assay.datasets.json_source import parse_document
from assay.errors import InputError, list_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.json_text import JsonValue

# (category, type) of an older file to the type id of today; None stands for any type.
LEGACY_TYPES: Mapping[tuple[int, int | None], str] = {
    (0, 1): "uipath-exact-match",
    (0, 6): "uipath-json-similarity",
    (1, None): "uipath-llm-judge-output-semantic-similarity",
    (3, None): "uipath-llm-judge-trajectory-similarity",
}


@dataclass(frozen=True, slots=True)
class Evaluator:
    """One evaluator file.

    Attributes:
        shown: The file, for messages.
        stem: Its name without suffix.
        id: Its `id`; empty when it has none.
        name: Its own name, else its id, else the stem.
        legacy: Whether it is of the older generation, known by `category` and `type`.
        body: The whole file.
        config: Where its settings stand: `evaluatorConfig`, in older files the body itself.
        sha256: Hash of the file.
    """

    shown: str
    stem: str
    id: str
    name: str
    legacy: bool
    body: Mapping[str, JsonValue]
    config: Mapping[str, JsonValue]
    sha256: str

    @property
    def type_id(self) -> str:
        """The type id, such as `uipath-exact-match`.

        Raises:
            InputError: The file has none, or a category and type that nothing corresponds to.
        """
        if not self.legacy:
            type_id = self.body.get("evaluatorTypeId")
            if isinstance(type_id, str):
                return type_id
            raise InputError("no evaluatorTypeId, and no category", path=self.shown)
        category, kind = self.body.get("category"), self.body.get("type")
        if isinstance(category, int) and (kind is None or isinstance(kind, int)):
            for key in ((category, kind), (category, None)):
                if key in LEGACY_TYPES:
                    return LEGACY_TYPES[key]
        message = (
            f"category {category} with type {kind} is not supported; accepted: category 0 with type 1 "
            "(equals) or 6 (JSON similarity), category 1 (judge), category 3 (trajectory)"
        )
        raise InputError(message, path=self.shown)


def pick(holder: Mapping[str, JsonValue], camel: str) -> JsonValue:
    """Return a setting under its camelCase name, else its snake_case name, else null."""
    name = find_name(holder, camel)
    return None if name is None else holder[name]


def find_name(holder: Mapping[str, JsonValue], camel: str) -> str | None:
    """Return how `holder` spells a setting, `camelCase` or `snake_case`, if it is there and not null."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in camel)
    return next((name for name in (camel, snake) if holder.get(name) is not None), None)


def read_evaluators(folder: Path, *, shown: str) -> list[Evaluator]:
    """Read the evaluator files of a folder, sorted by name; none when the folder is missing.

    Raises:
        InputError: A file is not a JSON object, or two share an id.
    """
    evaluators: dict[str, Evaluator] = {}
    for path in sorted(folder.glob("*.json")):
        evaluator = _read_evaluator(path, shown=str(Path(shown) / path.name))
        key = evaluator.id.casefold() or evaluator.shown
        if key in evaluators:
            message = f"id {evaluator.id!r} is also that of {evaluators[key].shown}"
            raise InputError(message, path=evaluator.shown, pointer="id")
        evaluators[key] = evaluator
    return list(evaluators.values())


def bind_reference(reference: str, evaluators: Sequence[Evaluator]) -> Evaluator | None:
    """Find the evaluator that a reference means: by id, then file stem, then name."""
    ranked = (
        [evaluator for evaluator in evaluators if evaluator.id.casefold() == reference.casefold()],
        [evaluator for evaluator in evaluators if evaluator.stem == reference],
        [evaluator for evaluator in evaluators if evaluator.name == reference],
    )
    return next((found[0] for found in ranked if found), None)


def describe_evaluators(evaluators: Sequence[Evaluator]) -> str:
    """List evaluators for a message, each by id and file."""
    named = (f"{evaluator.id or evaluator.name} ({Path(evaluator.shown).name})" for evaluator in evaluators)
    return list_names(named) or "none"


def _read_evaluator(path: Path, *, shown: str) -> Evaluator:
    source = read_source(path, shown=shown)
    body = parse_document(source)
    if not isinstance(body, dict):
        raise source.error("an evaluator file holds one object")
    legacy = "evaluatorTypeId" not in body and "category" in body
    config = body if legacy else body.get("evaluatorConfig") or {}
    if not isinstance(config, dict):
        raise source.error("expected an object", pointer="evaluatorConfig")
    names = (body.get("name"), config.get("name"), body.get("id"), path.stem)
    return Evaluator(
        shown=shown,
        stem=path.stem,
        id=str(body.get("id") or ""),
        name=next(name for name in names if isinstance(name, str) and name),
        legacy=legacy,
        body=body,
        config=config,
        sha256=source.sha256,
    )
