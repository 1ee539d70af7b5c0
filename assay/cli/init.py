"""`assay init`: write a starter dataset to begin with."""

from __future__ import annotations

import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import orjson
from cyclopts import Parameter

from assay.config import Reading
from assay.contracts.documents import parse_uses
from assay.datasets.reader import find_datasets, read_documents
from assay.datasets.writing.catalog import choose_writer, find_writer
from assay.datasets.writing.contract import Losses, Writer
from assay.datasets.writing.conversion import convert_dataset
from assay.errors import ConfigError, list_names
from assay.starters import Template, read_starter
from evaluators.catalog import find_evaluator
from evaluators.contract import JudgeEvaluator

if TYPE_CHECKING:
    from assay.contracts.documents import Document
    from assay.datasets.contract import Dataset

Form: TypeAlias = Literal["m365", "foundry", "uipath", "csv"]
DEFAULT_NAMES = {
    "m365": "evals.json",  # where it is looked for when no file is named
    "foundry": "evals.jsonl",
    "csv": "evals.csv",
    "uipath": "evals-project",
    "parquet": "evals.parquet",
}
# Fields of an evaluation that UiPath does not have, and that are read all the same.
READ_EXTRAS = ("category", "tags", "notes", "context", "response")


def init(
    *,
    template: Template = "agent",
    to: Form | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    force: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Write a starter dataset: some test cases of one purpose, to be replaced by your own.

    Args:
        template: Purpose of the cases.
        to: Form of the dataset. Default: by the suffix of --out, else m365.
        out: File, for uipath the project folder. Default: evals.json, evals.jsonl, evals.csv or
            evals-project.
        force: Replace files that are there.
    """
    writer, place = choose_place(to, out)
    text = read_starter(template)
    with tempfile.TemporaryDirectory(prefix="assay-init-") as folder:
        source = Path(folder) / f"{template}.json"
        source.write_bytes(text)
        (starter,) = read_documents([str(source)])
        source.write_bytes(text if writer.name == "m365" else trim_starter(text, writer))
        (found,) = find_datasets([str(source)], Reading())
        conversion = convert_dataset(found.open(), writer, place, force=force)
    (written,) = read_documents([str(place)])
    _tell_losses(writer, conversion.losses)
    done = f"{place}: {conversion.items} test cases ({template}, {writer.name})"
    sys.stdout.write(f"{done}\nnext: {suggest_run(str(place), starter, written)}\n")
    return 0


def choose_place(to: Form | None, out: Path | None) -> tuple[Writer, Path]:
    """Return the writer that `--to` names, or that the suffix of `--out` means, and where it writes.

    A folder that is there takes a file under its usual name.

    Raises:
        ConfigError: The two contradict each other, or the suffix means nothing.
    """
    if out is None or (to is None and out.is_dir()):
        writer = find_writer(to or "m365")
    else:
        writer = find_writer(to) if to else choose_writer(out)
    if writer.name == "m365":
        writer = Writer("m365", writer.suffixes, _copy)
    place = Path(DEFAULT_NAMES[writer.name]) if out is None else out
    if writer.is_folder:
        return writer, place if place.name else place.resolve()
    if place.is_dir():
        place /= DEFAULT_NAMES[writer.name]
    if place.suffix.lower() not in writer.suffixes:
        accepted = list_names(writer.suffixes)
        raise ConfigError(f"--out {out}: {writer.name} is known by its suffix; accepted: {accepted}")
    return writer, place


def _tell_losses(writer: Writer, losses: Losses) -> None:
    """Say what is gone, and what a UiPath project keeps and nothing reads."""
    unread = [
        loss.field for loss in losses if not loss.kept or (writer.is_folder and loss.field not in READ_EXTRAS)
    ]
    if unread:
        sys.stderr.write(f"{writer.name} has no place for: {list_names(dict.fromkeys(unread))}\n")


def trim_starter(text: bytes, writer: Writer) -> bytes:
    """Leave out of a starter what the form would keep to no effect.

    Outside M365 only the last answer of a conversation is scored, and rows name no evaluators.
    """
    root = orjson.loads(text)
    for item in root["items"]:
        turns = item.get("turns", [item])
        for turn in turns[:-1]:
            turn.pop("expected_response", None)
        for turn in () if writer.is_folder else turns:
            turn.pop("evaluators", None)
            turn.pop("evaluators_mode", None)
    if not writer.is_folder:
        del root["default_evaluators"]
    return orjson.dumps(root)


def suggest_run(path: str, starter: Document, written: Document) -> str:
    """Return the command that runs a starter.

    Args:
        path: Where it was written.
        starter: The starter as it comes with assay.
        written: What was written, which may name fewer evaluators.
    """
    wanted = dict.fromkeys(use.evaluator for use in starter.defaults or ())
    named = _name_evaluators(written)
    missing = [name for name in wanted if name not in named]
    words = ["assay", "run", shlex.quote(path)]
    if missing:
        words += ["--evaluators", ("+" if named else "") + ",".join(missing)]
    if starter.rows["response"].null_count() or written.dialect == "uipath":  # its evaluators read a target
        words += ["--model", "MODEL"]
    if any(isinstance(find_evaluator(name), JudgeEvaluator) for name in (*named, *missing)):
        words += ["--judge", "MODEL"]
    return " ".join(words)


def _name_evaluators(document: Document) -> dict[str, None]:
    """Return the evaluators a dataset names, by their canonical names."""
    uses = list(document.defaults or ())
    for text in document.rows["evaluators_json"].drop_nulls():
        uses += parse_uses(text)
    return dict.fromkeys(find_evaluator(use.evaluator).name for use in uses)


def _copy(dataset: Dataset, out: Path, _: Losses) -> None:
    """Write a starter as it is: it is an M365 document."""
    for _block in dataset.blocks:
        out.write_bytes(dataset.file.path.read_bytes())
