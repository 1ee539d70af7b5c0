"""`assay validate`: check dataset files without running anything."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TypeAlias

import polars as pl

from assay.cli.output import Output, write_frame
from assay.contracts.documents import Document, EvaluatorUse, parse_uses
from assay.datasets.reader import read_documents
from assay.errors import ConfigError, InputError
from evaluators.catalog import resolve_evaluation
from transforms.items import build_items

EXIT_OK, EXIT_INVALID = 0, 2
Entry: TypeAlias = "dict[str, str | int | None]"


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of one dataset; `errors` make it unusable."""

    file: str
    dialect: str | None = None
    items: int = 0
    rows: int = 0
    evaluators: str = ""
    warnings: list[Entry] = field(default_factory=list["Entry"])
    errors: list[Entry] = field(default_factory=list["Entry"])


def validate(*file: str, output: Output = Output()) -> int:
    """Check dataset files without running anything.

    Args:
        file: Dataset files or project folders.
    """
    output.start_log()
    if not file:
        raise ConfigError("no file named: assay validate FILE …")
    reports = [report for path in file for report in _check(path)]
    flat = pl.DataFrame(
        [
            asdict(report) | {"warnings": _join(report.warnings), "errors": _join(report.errors)}
            for report in reports
        ],
        infer_schema_length=None,
    )
    write_frame(flat, output, document=[asdict(report) for report in reports])
    return EXIT_INVALID if any(report.errors for report in reports) else EXIT_OK


def _check(path: str) -> list[Report]:
    try:
        documents = read_documents([path])
        return [_report(document) for document in documents]
    except (InputError, ConfigError) as error:
        return [Report(path, errors=[_entry(error)])]


def _report(document: Document) -> Report:
    errors: list[Entry] = []
    warnings: list[str] = list(document.warnings)
    try:
        warnings += build_items([document.rows], {}).warnings
    except ConfigError as error:
        errors.append(_entry(error))
    named: dict[str, None] = {}
    for use in _uses(document):
        try:
            named[resolve_evaluation(use.evaluator, use.options, where=use.where).label] = None
        except ConfigError as error:
            errors.append(_entry(error))
    return Report(
        document.path,
        dialect=document.dialect,
        items=document.rows["item_index"].n_unique(),
        rows=document.rows.height,
        evaluators=" ".join(named),
        warnings=[{"message": warning} for warning in warnings],
        errors=errors,
    )


def _uses(document: Document) -> list[EvaluatorUse]:
    uses = list(document.defaults or ())
    for text in document.rows["evaluators_json"].drop_nulls().unique(maintain_order=True):
        uses += parse_uses(text)
    return uses


def _entry(error: InputError | ConfigError) -> Entry:
    if isinstance(error, InputError):
        return {
            "line": error.line,
            "column": error.column,
            "pointer": error.pointer,
            "message": str(error),
        }
    return {"line": None, "column": None, "pointer": "", "message": str(error)}


def _join(entries: list[Entry]) -> str:
    return "; ".join(str(entry["message"]) for entry in entries)
