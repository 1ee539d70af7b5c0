"""Output: the options every command shares, and tables in the four or five forms they may take."""

from __future__ import annotations

import codecs
import io
import json
import logging
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import TYPE_CHECKING, Annotated, Literal

import polars as pl
import polars.selectors as cs
from cyclopts import Parameter

from assay.config import DEFAULT_STORE
from assay.contracts.hiding import hide_shown
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

Format = Literal["table", "json", "csv", "md", "parquet"]
Level = Literal["debug", "info", "warning", "error"]
SHOWN_ROWS = 500  # laying out a cell takes a tenth of a millisecond and more
PIPE_WIDTH = 160  # columns of a table that goes into a file or pipe
_BY_SUFFIX: Mapping[str, Format] = {".json": "json", ".csv": "csv", ".md": "md", ".parquet": "parquet"}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Output:
    """Where and how a command prints."""

    format: Format | None = None
    """Form of the data; parquet only with --out. Default: by the suffix of --out, else table."""
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None
    """File for the data instead of standard output."""
    store: Annotated[str, Parameter(env_var="ASSAY_STORE")] = DEFAULT_STORE
    """Folder of the history."""
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], negative="")] = False
    """No progress and no summary; errors and data only."""
    log_level: Level = "warning"
    """What the log on standard error tells."""
    log_file: Path | None = None
    """File that receives the whole log as JSON lines."""

    @property
    def form(self) -> Format:
        """The form to print in."""
        by_suffix = _BY_SUFFIX.get(self.out.suffix.lower()) if self.out else None
        return self.format or by_suffix or "table"

    @property
    def is_narrow(self) -> bool:
        """Whether the place of the data takes less than all characters."""
        return self.out is None and codecs.lookup(sys.stdout.encoding or "utf-8").name != "utf-8"

    def start_log(self) -> None:
        """Send the log where it belongs, and refuse a place for the data that cannot work.

        Raises:
            ConfigError: --out or --log-file cannot be written.
        """
        if self.form == "parquet" and self.out is None:
            raise ConfigError("--format parquet is binary; name a file with --out FILE")
        if self.out is not None and (self.out.is_dir() or self.out.parent.is_file()):
            raise ConfigError(f"--out {self.out}: is no place for a file")
        logger = logging.getLogger("assay")
        for handler in [*logger.handlers]:
            logger.removeHandler(handler)
            handler.close()
        logger.setLevel(logging.DEBUG)
        stream = logging.StreamHandler(sys.stderr)
        stream.setLevel(self.log_level.upper())
        stream.setFormatter(_Lines("%(levelname)s %(message)s"))
        logger.addHandler(stream)
        if self.log_file is not None:
            try:
                lines = logging.FileHandler(self.log_file, encoding="utf-8")
            except OSError as error:
                raise ConfigError(f"--log-file {self.log_file}: {error.strerror}") from error
            lines.setFormatter(_JsonLines())
            logger.addHandler(lines)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Write one record without secrets."""
        return hide_shown(super().format(record))


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Write one record as one JSON object."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat()
        entry = {"at": at, "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return hide_shown(json.dumps(entry, ensure_ascii=False))


def write_frame(frame: pl.DataFrame, output: Output, *, document: object = None) -> None:
    """Print a table in the form asked for.

    Args:
        frame: What to print; lists are joined or written as JSON.
        output: Form and place.
        document: For JSON: one document instead of an array of the rows.
    """
    form = output.form
    if form == "parquet":
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        emit(buffer.getvalue(), output)
        return
    if form == "json":
        finite = frame.with_columns(pl.when(cs.float().is_finite()).then(cs.float()))  # JSON has no NaN
        rows = finite.to_dicts() if document is None else document
        text = json.dumps(rows, default=_json, indent=2, ensure_ascii=output.is_narrow)
    elif form == "csv":
        text = _flat(frame).write_csv().removesuffix("\n")
    elif form == "md":
        text = write_markdown(frame)
    else:
        text = write_table(frame, to_file=output.out is not None)
    emit(text, output)


def emit(data: str | bytes, output: Output) -> None:
    """Write finished text, or a finished file, to standard output or the file."""
    if output.out is None:
        sys.stdout.write(f"{data!s}\n")
        return
    try:
        output.out.parent.mkdir(parents=True, exist_ok=True)
        output.out.write_bytes(data if isinstance(data, bytes) else f"{data}\n".encode())
    except OSError as error:
        raise ConfigError(f"--out {output.out}: {error.strerror}") from error


def write_table(frame: pl.DataFrame, *, to_file: bool = False) -> str:
    """Lay out the first `SHOWN_ROWS` in columns; numbers right, as wide as the terminal or `PIPE_WIDTH`."""
    from rich.table import Table  # rich takes long to import, and most output is not a table

    hidden = frame.height - SHOWN_ROWS
    frame = frame.head(SHOWN_ROWS)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, dtype in frame.schema.items():
        table.add_column(name, justify="right" if dtype.is_numeric() else "left", overflow="fold")
    for row in _flat(frame).iter_rows():
        table.add_row(*(_cell(value) for value in row))
    text = render(table, to_file=to_file)
    return text if hidden <= 0 else f"{text}\n… and {hidden} more rows; --format csv or json prints all"


def render(*parts: object, to_file: bool = False) -> str:
    """Render rich parts to text: colours only for a terminal."""
    from rich.console import Console

    terminal = sys.stdout.isatty() and not to_file
    buffer = io.StringIO()
    width = None if terminal else PIPE_WIDTH
    console = Console(
        file=buffer, force_terminal=terminal, width=width, highlight=False, emoji=False, markup=False
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip() for line in buffer.getvalue().rstrip("\n").split("\n"))


def write_markdown(frame: pl.DataFrame) -> str:
    """Write a table in GitHub's Markdown."""
    lines = [_md_row(frame.columns), _md_row(["---"] * frame.width)]
    lines += [_md_row([_cell(value) for value in row]) for row in _flat(frame).iter_rows()]
    return "\n".join(lines)


def _md_row(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", "<br>") for cell in cells) + " |"


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    lists = [name for name, dtype in frame.schema.items() if dtype == pl.List(pl.String)]
    nested = [n for n, dtype in frame.schema.items() if dtype.is_nested() and n not in lists]
    return frame.with_columns(
        *(pl.col(name).list.join(" ") for name in lists),
        *(pl.Series(n, [_nested(v) for v in frame[n].to_list()], pl.String) for n in nested),
    )


def _nested(value: object) -> str | None:
    return None if value is None else json.dumps(value, default=_json, ensure_ascii=False)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)


def _json(value: object) -> object:
    return value.isoformat() if isinstance(value, date | datetime) else str(value)
