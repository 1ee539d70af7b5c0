"""`assay validate`: check dataset files without running anything."""

from __future__ import annotations

import polars as pl
from evaluators.catalog import resolve_evaluation

from assay.cli.output import Output, write_frame
from assay.contracts.documents import Document, EvaluatorUse, parse_uses
from assay.datasets.reader import read_documents
from assay.errors import ConfigError, InputError
from transforms.items import build_items

EXIT_OK, EXIT_INVALID = 0, 2


def validate(*file: str, output: Output | None = None) -> int:
    """Check dataset files without running anything.

    Examples:
        assay validate data/m365/support-desk.json

        assay validate data/foundry/support.jsonl data/csv/faq.csv --format json

    Args:
        file: Dataset files or project folders.
    """
    output = output or Output()
    output.start_log()
    if not file:
        raise ConfigError("no file named: assay validate FILE …")
    reports = [report for path in file for report in _check(path)]
    flat = pl.DataFrame(
        [
            report | {"warnings": _join(report["warnings"]), "errors": _join(report["errors"])}
            for report in reports
        ],
        infer_schema_length=None,
    )
    write_frame(flat, output, document=reports)
    return EXIT_INVALID if any(report["errors"] for report in reports) else EXIT_OK


def _check(path: str) -> list[dict[str, object]]:
    try:
        documents = read_documents([path])
        return [_report(document) for document in documents]
    except (InputError, ConfigError) as error:
        return [_shape(path, errors=[_entry(error)])]


def _report(document: Document) -> dict[str, object]:
    errors: list[dict[str, object]] = []
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
    return _shape(
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


def _shape(path: str, **known: object) -> dict[str, object]:
    empty: dict[str, object] = {
        "file": path, "dialect": None, "items": 0, "rows": 0, "evaluators": "", "warnings": [], "errors": [],
    }  # fmt: skip
    return empty | known


def _entry(error: InputError | ConfigError) -> dict[str, object]:
    if isinstance(error, InputError):
        return {
            "line": error.line,
            "column": error.column,
            "pointer": error.pointer,
            "message": str(error),
        }
    return {"line": None, "column": None, "pointer": "", "message": str(error)}


def _join(entries: object) -> str:
    return "; ".join(str(entry["message"]) for entry in entries) if isinstance(entries, list) else ""
