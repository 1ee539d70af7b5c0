"""`assay convert`: write a dataset in another form, or bring an older eval document up to date."""

from __future__ import annotations

import logging
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import TYPE_CHECKING, Annotated, Literal

import polars as pl
from cyclopts import Parameter

from assay.cli.output import Output, write_frame
from assay.cli.reading import Files
from assay.datasets.reader import find_datasets
from assay.datasets.writing.catalog import choose_writer, find_writer
from assay.datasets.writing.conversion import check_place, convert_dataset
from assay.datasets.writing.upgrade import upgrade_document
from assay.errors import ConfigError, list_names

if TYPE_CHECKING:
    from assay.datasets.reader import Found
    from assay.datasets.writing.conversion import Conversion

logger = logging.getLogger("assay")
EXIT_OK, EXIT_LOST = 0, 2
Form = Literal["m365", "foundry", "uipath", "csv", "parquet"]
_SCHEMA = {
    "field": pl.String,
    "outcome": pl.String,
    "kept": pl.Boolean,
    "first": pl.String,
    "count": pl.Int64,
}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Writing:
    """How the dataset is written."""

    to: Form | None = None
    """Form to write. Default: by the suffix of OUT; a name without one is a UiPath project folder."""
    force: Annotated[bool, Parameter(negative="")] = False
    """Replace files that are there already."""
    fail_on_loss: Annotated[bool, Parameter(negative="")] = False
    """Write nothing, and exit with 2, when the form has no place for something."""
    in_place: Annotated[bool, Parameter(negative="")] = False
    """Bring an eval document without a version up to date where it lies; FILE.bak.TIME keeps the old one."""


PLAIN = Writing()


def convert(
    file: str,
    out: Path | None = None,
    /,
    *,
    writing: Writing = PLAIN,
    files: Files = Files(),
    output: Output = Output(),
) -> int:
    """Write a dataset in another form, and say what it has no place for.

    Args:
        file: Dataset file, UiPath project folder with one set, or - for standard input.
        out: File, or for UiPath the folder, to write.
    """
    output.start_log()
    found = _find_one(file, files)
    if writing.in_place:
        _upgrade(found, out, writing, output)
        return EXIT_OK
    if out is not None and out.exists() and not (out.is_file() or out.is_dir()):
        raise ConfigError(f"{out}: is no file; name a file to write, as standard output is for the report")
    if out is None:
        raise ConfigError("no place to write to: assay convert IN OUT, or with --in-place IN alone")
    writer = find_writer(writing.to) if writing.to else choose_writer(out)
    check_place(out, writer, force=writing.force)
    dataset = found.open()
    conversion = convert_dataset(dataset, writer, out, force=writing.force, keep_all=writing.fail_on_loss)
    for notice in dataset.faults.notices:
        logger.warning(str(notice))
    _report(file, conversion, writer.name, output)
    return EXIT_OK if conversion.is_written else EXIT_LOST


def _find_one(file: str, files: Files) -> Found:
    found = find_datasets([file], files.reading)
    if len(found) != 1:
        names = list_names(each.file.shown for each in found)
        raise ConfigError(f"{file} holds {len(found)} datasets; name one of them: {names}")
    return found[0]


def _upgrade(found: Found, out: Path | None, writing: Writing, output: Output) -> None:
    if out is not None or writing.to is not None:
        raise ConfigError("--in-place changes IN itself; leave OUT and --to away")
    shown = found.file.shown
    upgrade = upgrade_document(found.file, datetime.now(UTC).astimezone())
    told = {
        "file": shown,
        "schema_version": upgrade and upgrade.version,
        "backup": upgrade and str(upgrade.backup),
    }
    if upgrade is None:
        said = f"{shown}: states its version already; nothing to do\n"
    else:
        said = f"{shown}: has schemaVersion {upgrade.version} now; {upgrade.backup} is the file as it was\n"
    if not output.quiet:
        sys.stderr.write(said)
    if output.form != "table":
        write_frame(pl.DataFrame([told]), output, document=told)


def _report(file: str, conversion: Conversion, form: str, output: Output) -> None:
    """Print what the form has no place for, and on standard error one line about the whole."""
    losses = [asdict(loss) for loss in conversion.losses]
    gone = len(conversion.losses.gone)
    told = {
        "in": file,
        "out": str(conversion.out) if conversion.is_written else None,
        "to": form,
        "items": conversion.items,
        "rows": conversion.rows,
        "losses": losses,
    }
    if not output.quiet:
        kept = f"{gone} kinds of things lost" if gone else "nothing lost"
        what = "written" if conversion.is_written else "not written"
        sys.stderr.write(f"{conversion.out}: {what}; {conversion.items} items as {form}, {kept}\n")
    if losses or output.form != "table":
        frame = pl.DataFrame(losses, schema=_SCHEMA).select("field", "count", "first", "kept", "outcome")
        write_frame(frame, output, document=told)
