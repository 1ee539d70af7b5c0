"""`assay validate`: check dataset files without running anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

import orjson
import polars as pl
from cyclopts import Parameter

from assay.cli.output import Output, write_frame
from assay.cli.reading import Files
from assay.contracts.documents import Notice, parse_uses
from assay.datasets.cells import name_kind
from assay.datasets.reader import find_datasets
from assay.engine.own import open_catalog
from assay.errors import ConfigError, InputError
from assay.settings import make_config
from transforms.ids import IdRegister
from transforms.items import build_block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from assay.config import Reading
    from assay.contracts.documents import EvaluatorUse
    from assay.datasets.contract import Dataset
    from assay.datasets.faults import Fault
    from assay.datasets.reader import Found
    from evaluators.catalog import Catalog

EXIT_OK, EXIT_STRICT, EXIT_INVALID = 0, 1, 2
MAX_ENTRIES = 1000  # of one file; a broken file of millions of rows needs no report as long as itself
MAX_COLUMNS = 200
Entry: TypeAlias = "dict[str, str | int | None]"


@dataclass(slots=True)
class Report:
    """What is known of one dataset; `errors` make it unusable, or under a strict reading unwanted."""

    file: str
    dialect: str | None = None
    schema_version: str | None = None
    items: int = 0
    rows: int = 0
    bad_rows: int = 0
    evaluators: str = ""
    columns: dict[str, dict[str, int]] = field(default_factory=dict[str, "dict[str, int]"])
    warnings: list[Entry] = field(default_factory=list["Entry"])
    errors: list[Entry] = field(default_factory=list["Entry"])


def validate(
    *file: str,
    evaluator: Annotated[tuple[str, ...], Parameter(negative="")] = (),
    files: Files = Files(),
    output: Output = Output(),
) -> int:
    """Check dataset files without running anything.

    Exit codes: 0 all can be read, 2 some cannot; with --strict 1 when all can be read, but the published
    format of one forbids something.

    Args:
        file: Dataset files, globs or folders; `-` is standard input.
        evaluator: FILE.py:NAME of an evaluator of your own, or its folder; repeatable.
    """
    output.start_log()
    if not file:
        raise ConfigError("no file named: assay validate FILE …")
    reading = files.reading
    lax = reading.model_copy(update={"on_bad_row": "quarantine"})
    catalog = open_catalog(make_config([], {"own_evaluators": list(evaluator)}))
    checked = [_check(found, lax, catalog) for path in file for found in _find(path, lax)]
    reports = [report for report, _ in checked]
    flat = pl.DataFrame(list(map(_flatten, reports)), infer_schema_length=None)
    write_frame(flat, output, document=[asdict(report) for report in reports])
    return _judge(checked, strict=reading.strict)


def _judge(checked: list[tuple[Report, bool]], *, strict: bool) -> int:
    """Return the exit code for reports and whether their files are broken."""
    if any(broken for _, broken in checked):
        return EXIT_INVALID
    return EXIT_STRICT if strict and any(report.errors for report, _ in checked) else EXIT_OK


def _flatten(report: Report) -> dict[str, object]:
    row: dict[str, object] = {
        **asdict(report),
        "warnings": _join(report.warnings),
        "errors": _join(report.errors),
    }
    del row["columns"]
    return row


def _find(path: str, reading: Reading) -> list[Found | Report]:
    try:
        return list(find_datasets([path], reading))
    except InputError as error:
        return [Report(path, errors=[_entry(error)])]


def _check(found: Found | Report, reading: Reading, catalog: Catalog) -> tuple[Report, bool]:
    """Return the report on a file, and whether the file cannot be read."""
    if isinstance(found, Report):
        return found, True
    repeats: frozenset[int] = frozenset()
    while True:
        check = _Check(found, IdRegister(repeats), catalog)
        check.run(strict=reading.strict)
        repeats = check.register.find_repeats()
        if not repeats or check.broken:
            return check.report, check.broken


class _Check:
    """The check of one dataset."""

    def __init__(self, found: Found, register: IdRegister, catalog: Catalog) -> None:
        self.found, self.register, self.catalog = found, register, catalog
        self.report = Report(found.file.shown, found.dialect.name)
        self.broken = False
        self._uses: dict[str, None] = {}
        self._labels: dict[str, None] = {}
        self._kinds: dict[str, Counter[str]] = {}

    def run(self, *, strict: bool) -> None:
        """Read the dataset to its end and fill the report."""
        report, dataset = self.report, None
        try:
            dataset = self.found.dialect.open(self.found.file)
            report.schema_version = dataset.schema_version
            self._check_uses(dataset.defaults or ())
            for rows in dataset.blocks:
                self._look(rows)
                self._add_faults(dataset.faults.take())
            self._close(dataset, strict=strict)
        except (InputError, ConfigError) as error:
            self._refuse(_entry(error))
        if dataset is not None:
            self._add_faults(dataset.faults.take())
            report.bad_rows = len(dataset.faults)
        report.evaluators = " ".join(self._labels)
        report.columns = {name: dict(kinds) for name, kinds in self._kinds.items()}
        for kinds in report.columns.values():
            missing = report.rows - sum(kinds.values())
            if missing:
                kinds["missing"] = missing

    def _look(self, rows: pl.DataFrame) -> None:
        self.report.rows += rows.height
        self.report.items += rows["item_index"].n_unique()
        build_block(rows, 0, {}, self.register)
        for text in rows["evaluators_json"].drop_nulls().unique(maintain_order=True):
            if text not in self._uses:
                self._uses[text] = None
                self._check_uses(parse_uses(text))
        for text in rows["item_json"]:
            for name, value in orjson.loads(text).items():
                if name in self._kinds or len(self._kinds) < MAX_COLUMNS:
                    self._kinds.setdefault(name, Counter())[name_kind(value).split(" ")[-1]] += 1

    def _check_uses(self, uses: Iterable[EvaluatorUse]) -> None:
        for use in uses:
            try:
                label = self.catalog.resolve(use.evaluator, use.options, where=use.where).label
                self._labels[label] = None
            except ConfigError as error:
                self._refuse(_entry(error))

    def _close(self, dataset: Dataset, *, strict: bool) -> None:
        report = self.report
        self._add_faults(dataset.faults.take())
        report.bad_rows = len(dataset.faults)
        refused = [notice for notice in dataset.faults.notices if strict and notice.strict]
        report.errors += map(_notice_entry, refused)
        told = [notice for notice in dataset.faults.notices if not (strict and notice.strict)]
        report.warnings += [_notice_entry(notice) for notice in told[:MAX_ENTRIES]]
        report.warnings += [_place_nothing("repeated_id", text) for text in self.register.warnings]
        if not report.rows and not report.bad_rows and not dataset.file.reading.allow_empty:
            raise dataset.file.no_rows

    def _add_faults(self, faults: list[Fault]) -> None:
        for fault in faults:
            self._refuse(
                {
                    "line": fault.line,
                    "column": fault.column,
                    "pointer": fault.pointer,
                    "code": fault.code,
                    "message": fault.message,
                }
            )

    def _refuse(self, entry: Entry) -> None:
        self.broken = True
        if len(self.report.errors) < MAX_ENTRIES:
            self.report.errors.append(entry)


def _entry(error: InputError | ConfigError) -> Entry:
    if isinstance(error, InputError):
        return {
            "line": error.line,
            "column": error.column,
            "pointer": error.pointer,
            "code": "unreadable",
            "message": str(error),
        }
    return _place_nothing("config", str(error))


def _notice_entry(notice: Notice) -> Entry:
    return {
        "line": notice.line,
        "column": notice.column,
        "pointer": notice.pointer,
        "code": notice.code,
        "message": notice.message,
    }


def _place_nothing(code: str, message: str) -> Entry:
    return {"line": None, "column": None, "pointer": "", "code": code, "message": message}


def _join(entries: list[Entry]) -> str:
    return "; ".join(_describe(entry) for entry in entries)


def _describe(entry: Entry) -> str:
    place = f"line {entry['line']}: " if entry["line"] is not None and entry["code"] != "unreadable" else ""
    pointer = f"{entry['pointer']}: " if entry["pointer"] and entry["code"] != "unreadable" else ""
    return f"{place}{pointer}{entry['message']}"
