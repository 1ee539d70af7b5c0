"""Eval documents of an older form, brought to today's where they lie, with a backup beside."""

from __future__ import annotations

import secrets
import shutil
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from assay.contracts.json_text import JsonValue, parse_json
from assay.datasets import m365
from assay.datasets.faults import Faults
from assay.datasets.files import Source, read_source
from assay.datasets.writing.m365 import VERSION
from assay.datasets.writing.pretty import write_pretty
from assay.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from assay.datasets.files import Input
    from assay.datasets.writing.cases import JsonObject

FIRST_VERSION = "1.0.0"  # what a document without a version is read as
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


class Upgrade(NamedTuple):
    """What was done to a file.

    Attributes:
        backup: The file as it was.
        version: The version that it states now.
    """

    backup: Path
    version: str


def upgrade_document(file: Input, now: datetime) -> Upgrade | None:
    """Give an eval document its version, and items instead of a bare array or paired lists.

    Everything else stays: order, further fields, and numbers as they are spelt; lines are indented by two
    spaces. The version is the newest that the document is valid under, else the one it was read as.

    Args:
        file: The document.
        now: Local time, for the name of the backup.

    Returns:
        What was done; None where nothing is to do.

    Raises:
        InputError: The file is no eval document, or breaks its form; it is not touched.
        ConfigError: The file is compressed or no file, or it or its backup cannot be written.
    """
    source = _read_plain(file)
    rows = _count_rows(source)
    root = parse_json(source.text)
    if isinstance(root, dict) and "schemaVersion" in root:
        return None
    version, text = VERSION, _write_document(root, VERSION)
    if not _is_valid(source, text, rows):
        version, text = FIRST_VERSION, _write_document(root, FIRST_VERSION)
    return Upgrade(_replace_file(file.path.resolve(), text, now), version)


def _read_plain(file: Input) -> Source:
    if file.keep is not None:
        raise ConfigError("standard input cannot be changed in place; name a file")
    source = read_source(file)
    with file.path.open("rb") as raw:
        if raw.read(4).startswith(_COMPRESSED):
            raise ConfigError(f"{file.shown}: is compressed and cannot be changed in place; unpack it first")
    return source


def _count_rows(source: Source) -> int:
    """Read a document, and say how many rows it has; one that breaks its form is an InputError."""
    faults = Faults(source.shown, "item")
    rows = m365.read(source, faults).rows.height
    faults.raise_any()
    return rows


def _is_valid(source: Source, text: str, rows: int) -> bool:
    """Whether a document reads as it did before."""
    try:
        return _count_rows(Source(source.path, source.shown, text, "")) == rows
    except InputError:
        return False


def _write_document(root: JsonValue, version: str) -> str:
    document: JsonObject = {"schemaVersion": version}
    if not isinstance(root, dict):
        document["items"] = root
    elif "items" in root:
        document |= root
    else:
        for key, value in root.items():
            if key == "prompts":
                document["items"] = [*_join_pairs(root)]
            elif key != "expected_responses":
                document[key] = value
    return f"{write_pretty(document)}\n"


def _join_pairs(root: JsonObject) -> Iterator[JsonValue]:
    prompts, answers = root["prompts"], root.get("expected_responses")
    for prompt, answer in zip_longest(
        prompts if isinstance(prompts, list) else [], answers if isinstance(answers, list) else []
    ):
        yield {"prompt": prompt} if answer is None else {"prompt": prompt, "expected_response": answer}


def _replace_file(path: Path, text: str, now: datetime) -> Path:
    """Write a file anew, whole or not at all, once it is copied under another name."""
    backup = path.with_name(f"{path.name}.bak.{now:%Y%m%d%H%M%S}")
    staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with backup.open("xb") as copy:
            copy.write(path.read_bytes())
        shutil.copystat(path, backup)
        staged.write_text(text, encoding="utf-8", newline="\n")
        shutil.copymode(path, staged)
        staged.replace(path)
    except FileExistsError as error:
        raise ConfigError(f"{backup}: is there already; nothing was changed") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be changed in place: {error.strerror or error}") from error
    finally:
        staged.unlink(missing_ok=True)
    return backup
