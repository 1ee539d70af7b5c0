"""M365 eval documents: versioned objects, bare arrays, and paired lists of prompts and answers."""

from __future__ import annotations

from difflib import get_close_matches
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from assay.contracts.documents import Document, Notice
from assay.contracts.json_text import JsonValue, dump_json
from assay.datasets.cells import frame_rows, name_kind
from assay.datasets.contract import Dialect, open_document
from assay.datasets.faults import Fault
from assay.datasets.files import find_lines, plain_suffix
from assay.datasets.json_source import outer_keys, parse_document
from assay.datasets.m365_items import Form, read_item, read_uses, remark_later
from assay.datasets.m365_parts import FormError, Part, Remarks, find_places
from assay.datasets.m365_schema import find_deviations
from assay.datasets.m365_versions import Version, read_version
from assay.errors import list_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from assay.contracts.documents import EvaluatorUse
    from assay.datasets.faults import Faults
    from assay.datasets.files import Source
    from assay.datasets.m365_shapes import Deviation

ROOT_KEYS = frozenset({"schemaVersion", "items", "prompts"})
PAIR_KEYS = frozenset({"prompts", "expected_responses"})
ITEM_KEYS = frozenset({"prompt", "turns"})
ROOT_FIELDS = PAIR_KEYS | {
    "$schema",
    "schemaVersion",
    "metadata",
    "description",
    "default_evaluators",
    "default_allowed_tools",
    "items",
}
LIKENESS = 0.7  # from here on a key of the root is taken for a slip, below for the user's own


class _Pair(NamedTuple):
    """A prompt, and the answer that stands at its place in another list."""

    prompt: Part
    answer: Part | None


def claims(path: Path, head: str) -> bool:
    """Whether a JSON file has the keys of an eval document, or is blank."""
    if plain_suffix(path) != ".json":
        return False
    if head.lstrip().startswith("["):
        return bool(outer_keys(head) & ITEM_KEYS) or head.strip() == "[]"
    return not head.strip() or bool(outer_keys(head) & ROOT_KEYS)


def read(source: Source, faults: Faults) -> Document:
    """Read an eval document of version 1.0.0 to 1.11.x or 2.0.x; one row per item, or per turn of a thread.

    A bare array, or lists of prompts and expected responses, are read as a document of version 1.0.0.
    Recorded results (scores, status, diagnostics) are kept in `item_json`, the recorded response is the
    stored answer. Names of evaluators are passed on as written.

    Args:
        source: The file.
        faults: Takes every item that breaks the form; such an item has no rows.

    Returns:
        The document. Its notices tell what the published schema refuses and is read all the same;
        a strict reading compares with the whole schema of version 1.11.0.

    Raises:
        InputError: The document as a whole breaks the form, with a pointer into it.
    """
    root = Part(parse_document(source), "", 0, source.text)
    remarks = Remarks()
    try:
        version = read_version(root, remarks)
        form = Form(source.shown, version or Version(), remarks)
        defaults = _read_defaults(root, form)
        rows = _read_rows(_iterate_entries(root, remarks), form, faults, source.text)
    except FormError as error:
        raise source.error(error.message, offset=error.offset, pointer=error.pointer) from error
    notices = remarks.list_notices(source.shown, source.text)
    if version is None:
        missing = Notice("version_missing", "no schemaVersion; read as 1.0.0", source.shown, strict=True)
        notices = (missing, *notices)
    if source.reading.strict:
        notices += tuple(_compare(root, remarks.pointers, faults.rows, source))
    return Document(source.shown, "m365", rows, defaults, source.sha256, notices, form.version.text)


def _read_defaults(root: Part, form: Form) -> tuple[EvaluatorUse, ...] | None:
    """Read what the root says besides its items: the evaluators of every item."""
    if not isinstance(root.value, dict):
        return None
    for key in root.value:
        close = get_close_matches(key, ROOT_FIELDS, 1, LIKENESS)
        if key not in ROOT_FIELDS and close:
            form.remarks.add("unknown_key", f"not read; did you mean {close[0]}?", root, key, strict=False)
    if "default_evaluators" not in root.value:
        return None
    if form.version.lacks_evaluations:
        remark_later(root, "default_evaluators", form)
    return read_uses(root, "default_evaluators")


def _iterate_entries(root: Part, remarks: Remarks) -> Iterator[Part | _Pair]:
    if isinstance(root.value, list):
        message = "a bare array, read as the items of a document; the file stays as it is"
        remarks.add("version_upgraded", message, root, strict=False)
        return root.iterate()
    if not isinstance(root.value, dict):
        raise root.error(f"{name_kind(root.value)}, expected an object with items")
    if "items" in root.value:
        for key in PAIR_KEYS & root.value.keys():
            remarks.add("unknown_key", "not read, as items stand beside it", root, key, strict=False)
        return root.iterate("items")
    if "prompts" not in root.value:
        raise root.error(f"no items; found: {list_names(root.value) or 'nothing'}")
    message = "a list of prompts, read as the items of a document; the file stays as it is"
    remarks.add("version_upgraded", message, root, "prompts", strict=False)
    return _iterate_pairs(root)


def _iterate_pairs(root: Part) -> Iterator[_Pair]:
    prompts = list(root.iterate("prompts"))
    answers: list[Part] = []
    if "expected_responses" in root.members:
        answers = list(root.iterate("expected_responses"))
    if answers and len(answers) != len(prompts):
        raise root.error(f"{len(prompts)} prompts, but {len(answers)} expected_responses", "prompts")
    return (_Pair(prompt, answer) for prompt, answer in zip_longest(prompts, answers))


def _read_rows(entries: Iterable[Part | _Pair], form: Form, faults: Faults, text: str) -> pl.DataFrame:
    """Read every entry, note those that break the form, and frame the rows of the others."""
    records: list[dict[str, object]] = []
    found: list[tuple[FormError, int, str]] = []
    for index, entry in enumerate(entries):
        try:
            item = entry if isinstance(entry, Part) else _join_pair(entry)
            records += [{**record, "item_index": index} for record in read_item(item, form)]
        except FormError as error:
            found.append((error, index, entry.text if isinstance(entry, Part) else _spell_pair(entry)))
    found.sort(key=lambda fault: fault[0].offset)
    places = find_places(text, (error.offset for error, _, _ in found))
    for (error, index, item_text), (line, column) in zip(found, places, strict=True):
        fault = Fault(line, error.message, column, error.pointer, text=item_text, row=index)
        faults.add_fault(fault)
    rows = frame_rows(records)
    lines = find_lines(text, rows["source_line"].to_list())
    return rows.with_columns(source_line=pl.Series(lines, dtype=pl.Int64))


def _join_pair(pair: _Pair) -> Part:
    """Return a pair as an item, at the place of its prompt.

    Raises:
        FormError: One of the two is no text, or the prompt is empty.
    """
    prompt, answer = pair
    value: dict[str, JsonValue] = {"prompt": prompt.value}
    if not isinstance(prompt.value, str):
        raise prompt.error(f"{name_kind(prompt.value)}, expected text")
    if not prompt.value:
        raise prompt.error("empty")
    if answer is not None and answer.value is not None:
        if not isinstance(answer.value, str):
            raise answer.error(f"{name_kind(answer.value)}, expected text or null")
        value["expected_response"] = answer.value
    return Part(value, prompt.pointer, prompt.offset, dump_json(value))


def _spell_pair(pair: _Pair) -> str:
    prompt, answer = pair
    return dump_json({"prompt": prompt.value, "expected_response": answer.value if answer else None})


def _compare(root: Part, said: set[str], refused: set[int], source: Source) -> Iterator[Notice]:
    """Yield what the published schema says beyond what was said already.

    The version is left out, as `read_version` has its own rules: later ones are read as well.
    """
    deviations = [
        deviation
        for deviation in find_deviations(root.value)
        if deviation.pointer not in said
        and deviation.path != ("schemaVersion",)
        and not (deviation.path[:1] == ("items",) and refused.intersection(deviation.path[1:2]))
    ]
    in_items = any(each.path[:1] == ("items",) and len(each.path) > 1 for each in deviations)
    items = list(root.iterate("items")) if in_items else []
    placed = [(_find(each, root, items), each) for each in deviations]
    placed.sort(key=lambda entry: entry[0])
    places = find_places(source.text, (offset for offset, _ in placed))
    for (_, each), (line, column) in zip(placed, places, strict=True):
        yield Notice("schema", each.message, source.shown, line, column, each.pointer, strict=True)


def _find(deviation: Deviation, root: Part, items: Sequence[Part]) -> int:
    match deviation.path:
        case ("items", int() as index, *path):
            return items[index].find(*path)
        case path:
            return root.find(*path)


DIALECT = Dialect("m365", "M365 eval document (.json with items)", claims, open_document("m365", read))
