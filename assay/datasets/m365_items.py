"""Items of an eval document as rows: questions, threads, labels, evaluators, and recorded results."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from assay.contracts.documents import EvaluatorUse, dump_uses
from assay.contracts.json_text import JsonValue, dump_json, walk_json
from assay.datasets.cells import name_kind, tag_list, text_of
from assay.errors import list_names, nearest_names

if TYPE_CHECKING:
    from assay.datasets.m365_parts import Part, Remarks
    from assay.datasets.m365_versions import Version

MAX_TURNS = 20
MODES = ("extend", "replace")

_TEXTS = ("prompt", "expected_response", "response", "context")
_EVALUATION = ("evaluators", "evaluators_mode")
_LABELS = ("testId", "id", "name", "category", "notes")
_RECORDED = frozenset(
    {
        "allowed_tools",
        "allowed_tools_mode",
        "citations",
        "conversation_id",
        "diagnostics",
        "error",
        "scores",
        "status",
        "summary",
    }
)
_LABEL_FIELDS = frozenset({*_LABELS, "description"})
_TURN_FIELDS = _RECORDED | {*_TEXTS, *_EVALUATION, "tags", "extensions"}
_SINGLE_FIELDS = _TURN_FIELDS | _LABEL_FIELDS
_THREAD_FIELDS = _RECORDED | _LABEL_FIELDS | {"turns", "tags", "extensions"}
_LABEL_SOURCES = frozenset({*_LABELS, "tags", "extensions"})
# What the published schema refuses, though the first published samples have it.
_FOREIGN = frozenset({"testId", "id", "category", "notes"})
_FOREIGN_TO_SINGLE = _LABEL_FIELDS
_LATER = frozenset({"turns", *_EVALUATION})
_THREAD_KEY = "thread"


class Form(NamedTuple):
    """How the items of one document are to be read.

    Attributes:
        shown: The file as the user named it.
        version: The version of the document.
        remarks: Takes what is worth saying.
    """

    shown: str
    version: Version
    remarks: Remarks


def read_item(item: Part, form: Form) -> list[dict[str, object]]:
    """Read an item as one row, or a thread as one row per turn.

    `source_line` is left an offset of characters, as lines are counted over all rows at once. An item
    or turn that records the status `error` and an empty response has no stored answer.

    Raises:
        FormError: The item breaks the form.
    """
    value = item.members
    if "turns" in value:
        if "prompt" in value:
            raise item.error("both prompt and turns; an item holds one of them")
        return _read_thread(item, form)
    _check_fields(item, _SINGLE_FIELDS, form)
    if "prompt" not in value:
        raise item.error(f"neither prompt nor turns; an item holds one of them{_hint_at(item, 'prompt')}")
    _remark_fields(item, _FOREIGN_TO_SINGLE, form)
    return [{**_read_turn(item, form), **_read_labels(item), "turn": 0, "turn_count": 1}]


def read_uses(part: Part, field: str) -> tuple[EvaluatorUse, ...]:
    """Read the evaluators that stand in an object under `field`.

    Raises:
        FormError: They are no object of objects.
    """
    named = part.members[field]
    if not isinstance(named, dict):
        raise part.error(f"{name_kind(named)}, expected an object of evaluator names", field)
    prefix = part.point(field)
    for name, options in named.items():
        if not isinstance(options, dict):
            message = f"{name_kind(options)}, expected an object of options ({{}} for the defaults)"
            raise part.error(message, field, name)
    return tuple(
        EvaluatorUse(name, options, where=f"{prefix}.{name}")
        for name, options in named.items()
        if isinstance(options, dict)
    )


def _read_thread(item: Part, form: Form) -> list[dict[str, object]]:
    value = item.members
    for field in (*_TEXTS[1:], *_EVALUATION):
        if field in value:
            raise item.error("stands beside turns; it belongs into a turn", field)
    _check_fields(item, _THREAD_FIELDS, form)
    _remark_fields(item, _FOREIGN, form)
    turns = list(item.iterate("turns"))
    if not turns:
        raise item.error(f"no turns; accepted: 1 to {MAX_TURNS}", "turns")
    if len(turns) > MAX_TURNS:
        message = f"{len(turns)} turns; the format has room for {MAX_TURNS}"
        form.remarks.add("too_many_turns", message, item, "turns")
    labels = {**_read_labels(item), "turn_count": len(turns)}
    thread = _dump_thread(item)
    rows: list[dict[str, object]] = []
    for number, turn in enumerate(turns):
        _check_fields(turn, _TURN_FIELDS, form)
        if _THREAD_KEY in turn.members:
            raise turn.error("a turn keeps the fields of its thread under this name; rename it", _THREAD_KEY)
        _remark_fields(turn, frozenset(), form)
        rows.append({**_read_turn(turn, form), **labels, "turn": number, "item_json": _join(turn, thread)})
    return rows


def _dump_thread(item: Part) -> str:
    """Write the thread without its turns, each value as the document spells it."""
    members = (
        f"{dump_json(key)}:{item.text[begin:end]}"
        for key, begin, end in walk_json(item.text)
        if key != "turns"
    )
    return f"{{{','.join(members)}}}"


def _join(turn: Part, thread: str) -> str:
    """Return the turn as the document spells it, with its thread under a key of its own."""
    return f'{turn.text.rstrip().removesuffix("}")},"{_THREAD_KEY}":{thread}}}'


def _check_fields(part: Part, known: frozenset[str], form: Form) -> None:
    value = part.members
    if known.issuperset(value):
        return
    for field in value:
        if field in known:
            continue
        if form.version.is_open:
            message = f"unknown field, kept and not read; {_describe_known(field, known)}"
            form.remarks.add("unknown_field", message, part, field)
        else:
            raise part.error(f"unknown field; {_describe_known(field, known)}", field)


def _describe_known(field: str, known: frozenset[str]) -> str:
    if field in _LABEL_FIELDS:
        return "it belongs into the item, beside turns"
    close = nearest_names(field, known)
    return f"did you mean {list_names(close)}?" if close else f"known: {list_names(sorted(known))}"


def _hint_at(part: Part, field: str) -> str:
    close = nearest_names(field, part.members, 1)
    return f"; did you mean {field} by {close[0]}?" if close else ""


def _remark_fields(part: Part, foreign: frozenset[str], form: Form) -> None:
    """Remark on fields that the published schema refuses, or that its version does not have yet."""
    value = part.members
    if not foreign.isdisjoint(value):
        for field in value:
            if field in foreign:
                message = "read, though the published schema has no such field here; extensions may hold it"
                form.remarks.add("foreign_field", message, part, field)
    if form.version.lacks_evaluations and not _LATER.isdisjoint(value):
        for field in value:
            if field in _LATER:
                remark_later(part, field, form)


def remark_later(part: Part, field: str, form: Form) -> None:
    """Remark on a field that came with a later version than the document states."""
    message = f"needs schemaVersion 1.2.0 or later; this document is {form.version.text}"
    form.remarks.add("version_too_low", message, part, field)


def _read_turn(part: Part, form: Form) -> dict[str, object]:
    value = part.members
    if "prompt" not in value:
        raise part.error(f"no prompt{_hint_at(part, 'prompt')}")
    for field in _TEXTS:
        text = value.get(field, "")
        if not isinstance(text, str):
            raise part.error(f"{name_kind(text)}, expected text", field)
    if not value["prompt"]:
        raise part.error("empty", "prompt")
    uses, mode = _read_evaluation(part)
    response = value.get("response")
    return {
        "query": value["prompt"],
        "expected_response": value.get("expected_response"),
        "response": None if not response and value.get("status") == "error" else response,
        "context": value.get("context"),
        "evaluators_json": dump_uses(uses) if uses else None,
        "evaluators_mode": mode,
        "source_file": form.shown,
        "source_line": part.offset,  # a line once all rows are framed
        "item_json": part.text,
    }


def _read_evaluation(part: Part) -> tuple[tuple[EvaluatorUse, ...], JsonValue]:
    uses = read_uses(part, "evaluators") if "evaluators" in part.members else ()
    mode = part.members.get("evaluators_mode", "extend")
    if mode not in MODES:
        raise part.error(f"{dump_json(mode)}; accepted: {list_names(MODES)}", "evaluators_mode")
    if mode == "replace" and not uses:
        raise part.error("replace without evaluators would score nothing; name some", "evaluators_mode")
    return uses, mode


def _read_labels(item: Part) -> dict[str, object]:
    """Read the labels of an item, its own before those in `extensions`; an empty id is null."""
    value = item.members
    if _LABEL_SOURCES.isdisjoint(value):
        return {}
    extensions = value.get("extensions", {})
    if not isinstance(extensions, dict):
        raise item.error(f"{name_kind(extensions)}, expected an object", "extensions")
    own = {field: _read_label(item, field) for field in _LABELS if field in value}
    other = {field: _text_label(extensions[field]) for field in _LABELS if field in extensions}
    ids = (own.get("testId"), own.get("id"), other.get("testId"), other.get("id"))
    labels = {**other, **{field: label for field, label in own.items() if label is not None}}
    tags = value.get("tags")
    return {
        "id": next(filter(None, ids), None),
        "name": labels.get("name"),
        "category": labels.get("category"),
        "notes": labels.get("notes"),
        "tags": tag_list(extensions.get("tags") if tags is None else tags),
    }


def _read_label(item: Part, field: str) -> str | None:
    value = item.members[field]
    label = _text_label(value)
    if label is None and value is not None:
        raise item.error(f"{name_kind(value)}, expected text", field)
    return label


def _text_label(value: JsonValue) -> str | None:
    return None if isinstance(value, bool | list | dict) else text_of(value)
