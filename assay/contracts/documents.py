"""What a dataset reader hands on: rows, the evaluators its file names, and what it wants to say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from assay.contracts.json_text import JsonValue, dump_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl


@dataclass(frozen=True, slots=True)
class EvaluatorUse:
    """One evaluator as a file names it.

    Attributes:
        evaluator: Name or alias, as written (`PartialMatch`, `uipath-exact-match`).
        options: Options as written, `threshold` among them.
        name: The file's own name for this use, if it has one; two uses of one evaluator differ by it.
        mapping: Field to template, where the file says which field reads what.
        where: Place in the file, for messages (`items[3].evaluators.Citations`).
    """

    evaluator: str
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    name: str | None = None
    mapping: Mapping[str, str] = field(default_factory=dict[str, str])
    where: str = ""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something about a file that its user should know, at its place.

    Attributes:
        code: Short stable name, such as `version_missing`.
        message: What is the matter, without the place.
        path: The file as the user named it.
        line: 1-based line, if known.
        column: 1-based column, if known.
        pointer: Path inside a JSON document, such as `items[0].turns`.
        strict: Whether a strict reading refuses the file for it.
    """

    code: str
    message: str
    path: str
    line: int | None = None
    column: int | None = None
    pointer: str = ""
    strict: bool = False

    def __str__(self) -> str:
        """Write `path:line:column: pointer: message` from the parts that are known."""
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        return ": ".join(part for part in (place, self.pointer, self.message) if part)


@dataclass(frozen=True, slots=True)
class Document:
    """One dataset, read whole.

    Attributes:
        path: The file or project folder as the user named it.
        dialect: Which reader understood it (`m365`, `foundry`, `uipath`, `csv`).
        rows: One row per turn, table ROWS.
        defaults: Evaluators the file applies to every item; None when it names none.
        sha256: Hash of the bytes that were read, after decompression.
        notices: What the user should know.
        schema_version: The version the file states, for dialects that have one.
    """

    path: str
    dialect: str
    rows: pl.DataFrame
    defaults: tuple[EvaluatorUse, ...] | None
    sha256: str
    notices: tuple[Notice, ...] = ()
    schema_version: str | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notices as sentences, each naming its place."""
        return tuple(map(str, self.notices))


def dump_uses(uses: Sequence[EvaluatorUse]) -> str:
    """Write evaluator uses as canonical JSON for a column."""
    return dump_json(
        [
            {
                "evaluator": use.evaluator,
                "options": dict(use.options),
                "name": use.name,
                "mapping": dict(use.mapping),
                "where": use.where,
            }
            for use in uses
        ]
    )


def parse_uses(text: str) -> tuple[EvaluatorUse, ...]:
    """Read back what `dump_uses` wrote."""
    uses: list[EvaluatorUse] = []
    for entry in _objects(parse_json(text)):
        options, mapping, name = entry["options"], entry["mapping"], entry["name"]
        uses.append(
            EvaluatorUse(
                evaluator=str(entry["evaluator"]),
                options=options if isinstance(options, dict) else {},
                name=None if name is None else str(name),
                mapping={k: str(v) for k, v in mapping.items()} if isinstance(mapping, dict) else {},
                where=str(entry["where"]),
            )
        )
    return tuple(uses)


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []
