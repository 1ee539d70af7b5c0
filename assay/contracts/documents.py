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
class Document:
    """One dataset, read.

    Attributes:
        path: The file or project folder as the user named it.
        dialect: Which reader understood it (`m365`, `foundry`, `uipath`, `csv`).
        rows: One row per turn, table ROWS.
        defaults: Evaluators the file applies to every item; None when it names none.
        sha256: Hash of the bytes that were read, after decompression.
        warnings: Sentences for the user, each naming its place.
    """

    path: str
    dialect: str
    rows: pl.DataFrame
    defaults: tuple[EvaluatorUse, ...] | None
    sha256: str
    warnings: tuple[str, ...] = ()


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
