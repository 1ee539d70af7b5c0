"""M365 eval documents: versioned objects, bare arrays, and paired lists of prompts and answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.documents import Document, EvaluatorUse, dump_uses
from assay.contracts.json_text import JsonValue, dump_json, walk_json
from assay.datasets.cells import frame_rows, name_kind, tag_list, text_of
from assay.datasets.contract import Dialect
from assay.datasets.files import find_lines, plain_suffix
from assay.datasets.json_source import outer_keys, parse_document
from assay.errors import list_names, nearest_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from assay.datasets.files import Source
    from assay.errors import InputError

MAX_TURNS = 20
MODES = ("extend", "replace")
LABELS = ("name", "category", "notes")
ROOT_KEYS = frozenset({"schemaVersion", "items", "prompts"})
ITEM_KEYS = frozenset({"prompt", "turns"})

_VERSION = re.compile(r"[12](\.\d+){1,2}")
_TEXTS = ("prompt", "expected_response", "response", "context")
_RECORDED = {
    "scores",
    "diagnostics",
    "citations",
    "status",
    "error",
    "conversation_id",
    "summary",
    "allowed_tools",
    "allowed_tools_mode",
}
_TURN_FIELDS = _RECORDED | {*_TEXTS, "evaluators", "evaluators_mode", "tags", "extensions"}
_LABEL_FIELDS = {"testId", "id", *LABELS, "tags", "extensions"}
_SINGLE_FIELDS = _TURN_FIELDS | _LABEL_FIELDS
_THREAD_FIELDS = _RECORDED | _LABEL_FIELDS | {"turns", "description"}
_NOT_BESIDE_TURNS = (*_TEXTS[1:], "evaluators", "evaluators_mode")


@dataclass(frozen=True, slots=True)
class _Node:
    """An object of the document and where it stands."""

    source: Source
    value: Mapping[str, JsonValue]
    pointer: str
    offset: int | None = None
    text: str = ""

    def error(self, message: str, field: str = "") -> InputError:
        pointer = ".".join(part for part in (self.pointer, field) if part)
        return self.source.error(message, offset=self.offset, pointer=pointer)


def claims(path: Path, head: str) -> bool:
    """Whether a JSON file has the keys of an eval document, or is blank."""
    if plain_suffix(path) != ".json":
        return False
    if head.lstrip().startswith("["):
        return bool(outer_keys(head) & ITEM_KEYS) or head.strip() == "[]"
    return not head.strip() or bool(outer_keys(head) & ROOT_KEYS)


def read(source: Source) -> Document:
    """Read an eval document; one row per item, or per turn of a thread.

    Recorded results (scores, status, diagnostics) are kept in `item_json` and not read. Names of
    evaluators are passed on as written.

    Raises:
        InputError: With a pointer into the document, when it breaks the published schema. `testId`,
            `id`, `name`, `category` and `notes` are accepted on top of it, there or in `extensions`.
    """
    root = parse_document(source)
    warnings = _check_version(source, root)
    defaults = None
    if isinstance(root, dict) and "default_evaluators" in root:
        defaults = _read_uses(_Node(source, root, ""), "default_evaluators")
    records = [
        {**record, "item_index": index}
        for index, node in enumerate(_iterate_items(source, root))
        for record in _read_item(node)
    ]
    rows = frame_rows(records)
    lines = find_lines(source.text, rows["source_line"].to_list())
    rows = rows.with_columns(source_line=pl.Series(lines, dtype=pl.Int64))
    return Document(source.shown, "m365", rows, defaults, source.sha256, warnings)


def _check_version(source: Source, root: JsonValue) -> tuple[str, ...]:
    """Refuse a version that is neither 1.x nor 2.x; warn about a missing one."""
    version = root.get("schemaVersion") if isinstance(root, dict) else None
    if version is None:
        return (f"{source.shown}: no schemaVersion; read as 1.0.0",)
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        message = f'{dump_json(version)} is not supported; accepted: 1.x and 2.x, such as "1.2.0"'
        raise source.error(message, pointer="schemaVersion")
    return ()


def _iterate_items(source: Source, root: JsonValue) -> Iterator[_Node]:
    if isinstance(root, list):
        yield from _iterate_nodes(source, root, "", 0)
        return
    if not isinstance(root, dict):
        raise source.error(f"{name_kind(root)}, expected an object with items")
    places = {key: start for key, start, _ in walk_json(source.text)}
    if "items" in root:
        yield from _iterate_nodes(source, root["items"], "items", places["items"])
    elif "prompts" in root:
        yield from _iterate_pairs(source, root, places["prompts"])
    else:
        raise source.error(f"no items; found: {list_names(root) or 'nothing'}")


def _iterate_nodes(source: Source, values: JsonValue, pointer: str, start: int) -> Iterator[_Node]:
    if not isinstance(values, list):
        raise source.error(f"{name_kind(values)}, expected a list", offset=start, pointer=pointer)
    for value, (index, begin, end) in zip(values, walk_json(source.text, start), strict=True):
        place = f"{pointer}[{index}]"
        if not isinstance(value, dict):
            raise source.error(f"{name_kind(value)}, expected an object", offset=begin, pointer=place)
        yield _Node(source, value, place, begin, source.text[begin:end])


def _iterate_pairs(source: Source, root: Mapping[str, JsonValue], start: int) -> Iterator[_Node]:
    prompts = root["prompts"]
    answers = root.get("expected_responses", [])
    if not isinstance(prompts, list) or not isinstance(answers, list):
        raise source.error("prompts and expected_responses must be lists", offset=start, pointer="prompts")
    if answers and len(answers) != len(prompts):
        message = f"{len(prompts)} prompts, but {len(answers)} expected_responses"
        raise source.error(message, offset=start, pointer="prompts")
    for n, (index, begin, _) in enumerate(walk_json(source.text, start)):
        pair: dict[str, JsonValue] = {"prompt": prompts[n]}
        if answers and answers[n] is not None:
            pair["expected_response"] = answers[n]
        yield _Node(source, pair, f"prompts[{index}]", begin, dump_json(pair))


def _read_item(node: _Node) -> list[dict[str, object]]:
    value = node.value
    if "turns" not in value:
        _check_fields(node, _SINGLE_FIELDS)
        if "prompt" not in value:
            raise node.error("neither prompt nor turns; an item holds one of them")
        return [{**_read_turn(node), **_read_labels(node), "turn": 0, "turn_count": 1}]
    if "prompt" in value:
        raise node.error("both prompt and turns; an item holds one of them")
    return _read_thread(node)


def _read_thread(node: _Node) -> list[dict[str, object]]:
    value = node.value
    for field in _NOT_BESIDE_TURNS:
        if field in value:
            raise node.error("stands beside turns; it belongs into a turn", field)
    _check_fields(node, _THREAD_FIELDS)
    start = next(start for key, start, _ in walk_json(node.text) if key == "turns")
    pointer = f"{node.pointer}.turns"
    turns = list(_iterate_nodes(node.source, value["turns"], pointer, (node.offset or 0) + start))
    if not 1 <= len(turns) <= MAX_TURNS:
        raise node.error(f"{len(turns)} turns; accepted: 1 to {MAX_TURNS}", "turns")
    for turn in turns:
        _check_fields(turn, _TURN_FIELDS)
    labels = _read_labels(node)
    thread = dump_json({key: member for key, member in value.items() if key != "turns"})
    return [
        {**_read_turn(turn), **labels, "turn": n, "turn_count": len(turns), "item_json": _join(turn, thread)}
        for n, turn in enumerate(turns)
    ]


def _join(turn: _Node, thread: str) -> str:
    """Return the turn's source text with the other fields of its thread under the key `thread`."""
    return f'{turn.text.rstrip().removesuffix("}")},"thread":{thread}}}'


def _check_fields(node: _Node, known: set[str]) -> None:
    for field in node.value:
        if field not in known:
            close = nearest_names(field, known)
            hint = f"did you mean {list_names(close)}?" if close else f"known: {list_names(sorted(known))}"
            raise node.error(f"unknown field; {hint}", field)


def _read_turn(node: _Node) -> dict[str, object]:
    if "prompt" not in node.value:
        raise node.error("no prompt")
    for field in _TEXTS:
        text = node.value.get(field, "")
        if not isinstance(text, str):
            raise node.error(f"{name_kind(text)}, expected text", field)
    if not node.value["prompt"]:
        raise node.error("empty", "prompt")
    uses, mode = _read_evaluation(node)
    return {
        "query": node.value["prompt"],
        **{field: node.value.get(field) for field in _TEXTS[1:]},
        "evaluators_json": dump_uses(uses) if uses else None,
        "evaluators_mode": mode,
        "source_file": node.source.shown,
        "source_line": node.offset,  # a line once all rows are framed
        "item_json": node.text,
    }


def _read_evaluation(node: _Node) -> tuple[tuple[EvaluatorUse, ...], JsonValue]:
    uses = _read_uses(node, "evaluators") if "evaluators" in node.value else ()
    mode = node.value.get("evaluators_mode", "extend")
    if mode not in MODES:
        raise node.error(f"{dump_json(mode)}; accepted: {list_names(MODES)}", "evaluators_mode")
    if mode == "replace" and not uses:
        raise node.error("replace without evaluators would score nothing; name some", "evaluators_mode")
    return uses, mode


def _read_labels(node: _Node) -> dict[str, object]:
    """Read the labels of an item, its own before those in `extensions`; an empty id is null."""
    extensions = node.value.get("extensions", {})
    if not isinstance(extensions, dict):
        raise node.error(f"{name_kind(extensions)}, expected an object", "extensions")
    own = {field: _read_label(node, field) for field in ("testId", "id", *LABELS)}
    other = {field: _text_label(extensions.get(field)) for field in ("testId", *LABELS)}
    tags = node.value.get("tags")
    return {
        "id": own["testId"] or own["id"] or other["testId"] or None,
        **{field: other[field] if own[field] is None else own[field] for field in LABELS},
        "tags": tag_list(extensions.get("tags") if tags is None else tags),
    }


def _read_label(node: _Node, field: str) -> str | None:
    value = node.value.get(field)
    if value is not None and _text_label(value) is None:
        raise node.error(f"{name_kind(value)}, expected text", field)
    return _text_label(value)


def _text_label(value: JsonValue) -> str | None:
    return None if isinstance(value, bool | list | dict) else text_of(value)


def _read_uses(node: _Node, field: str) -> tuple[EvaluatorUse, ...]:
    named = node.value[field]
    if not isinstance(named, dict):
        raise node.error(f"{name_kind(named)}, expected an object of evaluator names", field)
    prefix = f"{node.pointer}.{field}" if node.pointer else field
    uses: list[EvaluatorUse] = []
    for name, options in named.items():
        if not isinstance(options, dict):
            message = f"{name_kind(options)}, expected an object of options ({{}} for the defaults)"
            raise node.error(message, f"{field}.{name}")
        uses.append(EvaluatorUse(name, options, where=f"{prefix}.{name}"))
    return tuple(uses)


DIALECT = Dialect("m365", "M365 eval document (.json with items)", claims, read)
