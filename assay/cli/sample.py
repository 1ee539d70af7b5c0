"""`assay sample`: a reproducible sample of the items of a dataset, in the dataset's own form."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotation
from typing import TYPE_CHECKING, Annotated

import orjson
import polars as pl
from cyclopts import Parameter

from assay.cli.reading import Files
from assay.contracts.json_text import JsonValue, dump_json, parse_json, sha_text
from assay.datasets import uipath
from assay.datasets.cells import STANDARD_NAMES, text_of
from assay.datasets.excerpts import copy_records, cut_document
from assay.datasets.files import plain_suffix, read_source
from assay.datasets.reader import find_datasets
from assay.datasets.strata import Pick, Stratum, allocate
from assay.errors import ConfigError, InputError, list_names, nearest_names
from transforms.templates import Missing, look_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from assay.datasets.reader import Found

DOCUMENTS = {"m365": ("items", "prompts", "expected_responses"), "uipath": ("evaluations",)}
LINES, TABLE = "foundry", "csv"
SHOWN_STRATA = 50
NONE = "(none)"  # the stratum of items that lack the field
COLUMNS = {name: column for column, names in STANDARD_NAMES.items() for name in names}
UNREAD = ("messages", "tool_definitions", "tool_calls")  # standard names that are no text column of a row


def sample(
    *file: str,
    n: Annotated[int, Parameter(name="-n")] = 20,
    seed: int = 1,
    by: str | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    files: Files = Files(),
) -> int:
    """Take a reproducible sample of items (conversations whole) and write it in the form of its file.

    An item is taken by a hash of the seed and its id, or of its text when it has none: neither the order
    of rows nor other items make a difference. Lines, records and items are written as they stand in the
    file; the rest of a document is kept. Parquet, Arrow, JSON arrays and spreadsheets become JSON lines.

    Args:
        file: Dataset files; several of them of one form that has rows.
        n: How many items; where there are fewer, all.
        seed: Another seed gives another sample.
        by: Field whose values share the sample in proportion, each with one item at least while n allows:
            a standard name, or any field of the source, such as meta.topic.
        out: File to write. Default: standard output.
        files: How the files are read.
    """
    if not file:
        raise ConfigError("no dataset named: assay sample FILE …")
    if n < 1:
        raise ConfigError(f"-n {n}: accepted is 1 or more")
    found = find_datasets(file, files.reading)
    _check_forms(found)
    _check_out(out, found)
    strata = _gather(found, n, seed, by)
    numbers = allocate({name: stratum.count for name, stratum in strata.items()}, n)
    picks = [pick for name, number in numbers.items() for pick in strata[name].take(number)]
    _emit(b"".join(_write_sample(found, picks)), out)
    sys.stderr.write(_describe(strata, numbers, n, seed))
    if out is not None and found[0].dialect is uipath.DIALECT:
        folder = out.parent / ".." / uipath.EVALUATORS
        sys.stderr.write("" if folder.is_dir() else f"its evaluators are looked for in {folder}\n")
    return 0


def _check_forms(found: Sequence[Found]) -> None:
    """Refuse several files that one file cannot hold."""
    forms = dict.fromkeys(each.dialect.name for each in found)
    if len(found) > 1 and (len(forms) > 1 or not forms.keys().isdisjoint(DOCUMENTS)):
        shown = list_names(f"{each.file.shown} ({each.dialect.name})" for each in found)
        raise ConfigError(f"several files make a sample only when all are rows of one form; named: {shown}")


def _check_out(out: Path | None, found: Sequence[Found]) -> None:
    if out is None:
        return
    if out.suffix.lower() in (".gz", ".zst"):
        raise ConfigError(f"--out {out}: a sample is written uncompressed; drop the suffix {out.suffix}")
    own = (*DOCUMENTS, LINES, TABLE)
    forms = {plain_suffix(each.file.path) if each.dialect.name in own else ".jsonl" for each in found}
    if out.suffix and plain_suffix(out) not in forms:
        form = list_names(sorted(forms))
        raise ConfigError(
            f"--out {out}: a sample has the form of its input ({form}); assay convert changes it"
        )
    if out.exists() and any(out.samefile(each.file.path) for each in found):
        raise ConfigError(f"--out {out}: is the dataset itself; name another file")


def _gather(found: Sequence[Found], n: int, seed: int, by: str | None) -> dict[str, Stratum]:
    """Read the files once and keep the first items of every stratum.

    Raises:
        ConfigError: No item has the field to sample by.
    """
    strata: dict[str, Stratum] = {}
    known: dict[str, None] = {}
    for number, each in enumerate(found):
        whole = each.dialect.name not in (*DOCUMENTS, LINES, TABLE)
        for block in each.open().blocks:
            known |= dict.fromkeys(_list_fields(block))
            for pick, value in _read_items(block, by, seed, (number, whole)):
                name = "" if by is None else NONE if value is None else value
                if name not in strata:
                    strata[name] = Stratum(n)
                strata[name].add(pick)
    if by is not None and strata and strata.keys() <= {NONE}:
        close = nearest_names(by, known)
        hint = f"; did you mean {list_names(close)}?" if close else ""
        raise ConfigError(f"--by {by}: no item has this field (fields: {list_names(known)}){hint}")
    return strata


def _list_fields(block: pl.DataFrame) -> list[str]:
    """Return the fields of the first item of a block, for messages."""
    first: JsonValue = orjson.loads(block["item_json"][0]) if block.height else None
    return [*first] if isinstance(first, dict) else []


def _read_items(
    block: pl.DataFrame, by: str | None, seed: int, place: tuple[int, bool]
) -> Iterator[tuple[Pick, str | None]]:
    """Yield every item of a block with its value of the field `by`.

    Args:
        block: Table ROWS.
        by: The field.
        seed: Part of the hash.
        place: Index of the file, and whether the text of an item has to be kept.
    """
    file, whole = place
    column = None if by is None or by in UNREAD else COLUMNS.get(by)
    items = block.group_by("item_index", maintain_order=True).agg(
        pl.col("id").first(),
        pl.col("source_line").first(),
        pl.col("item_json").alias("texts"),
        pl.col(column).first().alias("value") if column else pl.lit(None, pl.String).first().alias("value"),
    )
    path = tuple(by.split(".")) if by is not None and column is None else None
    for item, name, line, texts, value in items.iter_rows():
        content = sha_text(*texts)
        key = sha_text(str(seed), content) if name is None else sha_text(str(seed), "id", name)
        found = _label(value) if path is None else _look_up(texts[0], path)
        yield Pick(key, content, file, item, line, texts[0] if whole else None), found


def _look_up(text: str, path: tuple[str, ...]) -> str | None:
    item: JsonValue = orjson.loads(text)
    for start in (path, ("thread", *path)):
        value = look_up(item, start)
        if not isinstance(value, Missing):
            return _label(value)
    return None


def _label(value: JsonValue) -> str | None:
    if isinstance(value, list):
        return ", ".join(str(text_of(entry)) for entry in value) or None
    return text_of(value)


def _write_sample(found: Sequence[Found], picks: Sequence[Pick]) -> Iterator[bytes]:
    """Yield what was taken of each file; of several tables one header."""
    header: bytes | None = None
    for number, each in enumerate(found):
        own = sorted((pick for pick in picks if pick.file == number), key=lambda pick: pick.item)
        parts = list(_write_part(each, own))
        if parts and each.dialect.name == TABLE:
            first = parts.pop(0)
            if header is None:
                header = first
                yield header
            elif header != first:
                raise InputError("its header differs from that of the first file", path=each.file.shown)
        yield from parts


def _write_part(found: Found, picks: Sequence[Pick]) -> Iterator[bytes]:
    """Yield what was taken of one file, as its form wants it; of a table the header first."""
    form = found.dialect.name
    lines = [pick.line or 0 for pick in picks]
    if form in DOCUMENTS:
        text = read_source(found.file).text
        yield cut_document(text, DOCUMENTS[form], [pick.item for pick in picks]).encode()
    elif form == LINES:
        yield from copy_records(found.file, lines, quoted=False)
    elif form == TABLE:
        yield from copy_records(found.file, [0, *lines], quoted=True)
    else:
        yield from (f"{_write_line(str(pick.text))}\n".encode() for pick in picks)


def _write_line(text: str) -> str:
    return dump_json(parse_json(text)) if "\n" in text or "\r" in text else text


def _emit(data: bytes, out: Path | None) -> None:
    if out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = out.with_name(f".{out.name}.new")
        beside.write_bytes(data)
        beside.replace(out)
    except OSError as error:
        raise ConfigError(f"--out {out}: {error.strerror}") from error


def _describe(strata: Mapping[str, Stratum], numbers: Mapping[str, int], n: int, seed: int) -> str:
    """Say how many items of each stratum were taken."""
    total = sum(stratum.count for stratum in strata.values())
    lines = [f"{sum(numbers.values())} of {total} items, seed {seed}"]
    if n > total:
        lines[0] += f"; there are no {n}, so all are taken"
    if set(strata) - {""}:
        order = sorted(strata, key=lambda name: (-strata[name].count, name))
        width = max(map(len, order[:SHOWN_STRATA]))
        lines += [
            f"  {name:{width}}  {numbers.get(name, 0)} of {strata[name].count}"
            for name in order[:SHOWN_STRATA]
        ]
        if len(order) > SHOWN_STRATA:
            lines.append(f"  and {len(order) - SHOWN_STRATA} more values")
    return "\n".join(lines) + "\n"
