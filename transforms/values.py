"""Values: what the placeholders of templates stand for, read column-wise as text or as JSON text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import polars as pl

from assay.contracts.json_text import JsonValue, dump_json, parse_json
from transforms.members import cut_members
from transforms.templates import MISSING, Missing, look_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from transforms.templates import Path, Reference

    Parse: TypeAlias = "Callable[[str], JsonValue]"

SAMPLE_PREFIX = "sample."  # columns of SAMPLES carry it when they stand beside those of ITEMS
USAGE = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
SAMPLE_TEXT = ("output_text", "model", "finish_reason", "status")

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOOKS_JSON = r"^\s*[-0-9\[{]"
_RESPELT = (  # numbers that a float round trip may spell anew
    r"[0-9]\.[0-9]*0(?:[^0-9]|$)|[0-9][eE]|[0-9][0-9.]{15}|-0|(?:^|[^0-9])0\.0000"
)


@dataclass(frozen=True, slots=True)
class Found:
    """The values of one placeholder.

    Attributes:
        values: String; null where there is no value.
        missing: Boolean; where the row has no such place. A JSON null is not missing.
    """

    values: pl.Series
    missing: pl.Series


@dataclass(frozen=True, slots=True)
class _Form:
    """How values are written.

    Attributes:
        of_member: From a value as the source spells it to the value, and whether that is undecided.
        of_text: From a text to the value.
        walk: Reads JSON texts at a path.
    """

    of_member: Callable[[pl.Expr], tuple[pl.Expr, pl.Expr]]
    of_text: Callable[[pl.Expr], pl.Expr]
    walk: Callable[[pl.Series, Path, Parse], Found]


def read_texts(rows: pl.DataFrame, references: Iterable[Reference]) -> dict[Reference, Found]:
    """Read placeholders as text: texts as they are, other JSON compact, JSON null as null.

    Args:
        rows: `item_json`, and the columns of SAMPLES that are referred to, under `SAMPLE_PREFIX`.
        references: Placeholders; those of the answer begin with a field of `SAMPLE_TEXT` or `SAMPLE_JSON`.
    """
    return _read(rows, references, _Form(_member_text, lambda text: text, _walk_texts))


def read_json(rows: pl.DataFrame, references: Iterable[Reference]) -> dict[Reference, Found]:
    """Read placeholders as compact JSON text; a JSON null is the text `null`, missing is null.

    Args:
        rows: As for `read_texts`.
        references: As for `read_texts`.
    """
    return _read(rows, references, _Form(_member_json, encode_text, _walk_json))


def encode_text(text: pl.Expr) -> pl.Expr:
    """Return the expression of a text as a JSON string; null becomes `null`."""
    return pl.struct(text.alias("v")).struct.json_encode().str.slice(len('{"v":')).str.head(-1)


def _read(rows: pl.DataFrame, references: Iterable[Reference], form: _Form) -> dict[Reference, Found]:
    asked = list(references)
    items = [reference for reference in asked if reference.root == "item"]
    found: dict[Reference, Found] = {}
    if items:
        texts = rows["item_json"]
        cut = cut_members(texts, [reference.path for reference in items], form.of_member)
        for place, reference in enumerate(items):
            found[reference] = _complete(texts, reference.path, cut[f"{place}"], cut[f"{place}?"], form)
    for reference in asked:
        if reference.root == "sample":
            found[reference] = _read_sample(rows, reference.path, form)
    return found


def _complete(texts: pl.Series, path: Path, values: pl.Series, undecided: pl.Series, form: _Form) -> Found:
    """Walk the rows whose value could not be cut out."""
    missing = _repeat(len(texts), value=False)
    if not undecided.any():
        return Found(values, missing)
    places = undecided.arg_true()
    walked = form.walk(texts.gather(places), path, parse_json)
    return Found(values.scatter(places, walked.values), missing.scatter(places, walked.missing))


def _read_sample(rows: pl.DataFrame, path: Path, form: _Form) -> Found:
    head, rest = str(path[0]), path[1:]
    if head in SAMPLE_TEXT:
        text = pl.col(f"{SAMPLE_PREFIX}{head}").cast(pl.String)
        values = rows.select(form.of_text(text)).to_series()
        return Found(values, _repeat(rows.height, value=False))
    if head == "usage":
        counts = pl.struct(pl.col(f"{SAMPLE_PREFIX}{name}").alias(name) for name in USAGE)
        return form.walk(rows.select(counts.struct.json_encode()).to_series(), rest, parse_json)
    column, parse = SAMPLE_JSON[head]
    return form.walk(rows[f"{SAMPLE_PREFIX}{column}"].cast(pl.String), rest, parse)


def _member_text(member: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    escaped = member.str.contains("\\", literal=True)
    decoded = pl.when(escaped).then(member).str.json_path_match("$")  # rows that are null cost nothing
    plain = member.str.strip_chars('"')  # without escapes a text has quotes at its ends alone
    return pl.when(escaped).then(decoded).when(member != "null").then(plain), member.is_null()


def _member_json(member: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    respelt = member.str.contains(r"\\[u/]")  # escapes that canonical JSON does not need
    return member, member.is_null() | respelt


def _walk_texts(texts: pl.Series, path: Path, parse: Parse) -> Found:
    """Read one path from JSON texts; Polars does the plain cells, Python the doubtful ones.

    Doubtful is a cell where Polars cannot tell null from missing, or could respell a number.
    """
    pattern = _polars_path(path) if parse is parse_json else None
    values = texts.str.json_path_match(pattern) if pattern else texts.clear(len(texts))
    numeric = values.str.contains(_LOOKS_JSON).arg_true()
    respelt = numeric.filter(texts.gather(numeric).str.contains(_RESPELT))
    absent = values.is_null() & ~_may_hold(texts, path, parse)
    doubtful = pl.concat([(values.is_null() & ~absent).arg_true(), respelt])
    found = [_look(text, path, parse) for text in texts.gather(doubtful)]
    written = [_write_text(value, parse) for value in found]
    return Found(
        values.scatter(doubtful, pl.Series(written, dtype=pl.String)),
        absent.scatter(doubtful, [value is MISSING for value in found]),
    )


def _walk_json(texts: pl.Series, path: Path, parse: Parse) -> Found:
    found = [_look(text, path, parse) for text in texts]
    written = [None if isinstance(value, Missing) else dump_json(value) for value in found]
    missing = pl.Series([value is MISSING for value in found], dtype=pl.Boolean)
    return Found(pl.Series(written, dtype=pl.String), missing)


def _may_hold(texts: pl.Series, path: Path, parse: Parse) -> pl.Series:
    r"""Whether a text may have the last key of a path; false only where it certainly has not.

    A key ends like that key, also where it stands for several that dots join. Plain ones have no other
    spelling than with `\u` escapes.
    """
    keys = [step for step in path if isinstance(step, str)]
    if parse is not parse_json or not keys or not _PLAIN_KEY.fullmatch(keys[-1]):
        return _repeat(len(texts), value=True)
    spelt = texts.str.contains(f'{keys[-1]}"', literal=True) | texts.str.contains("\\u", literal=True)
    return spelt.fill_null(value=False)


def _repeat(count: int, *, value: bool) -> pl.Series:
    return pl.Series([value]).new_from_index(0, count)


def _look(text: str | None, path: Path, parse: Parse) -> JsonValue | Missing:
    if text is None:
        return MISSING
    try:
        return look_up(parse(text), path)
    except ValueError:
        return MISSING


def _write_text(value: JsonValue | Missing, parse: Parse) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, Missing) or (value is None and parse is not _answer_object):
        return None
    return dump_json(value)  # a null that an agent put into its output is an answer, not the lack of one


def _polars_path(path: Path) -> str | None:
    """Write a path for `json_path_match`, or None where it is not certain to do the same.

    It clamps indexes before the first element, and its quoting is its own.
    """
    if not all(step >= -1 if isinstance(step, int) else _PLAIN_KEY.fullmatch(step) for step in path):
        return None
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _answer_object(text: str) -> JsonValue:
    """Read an answer as the output object of an agent: its JSON object, else `{"content": answer}`."""
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"content": text}


def _citations(text: str) -> JsonValue:
    """Read the citations that stand beside the content of an answer's messages, those of the last one."""
    items = parse_json(text)
    for item in reversed(items if isinstance(items, list) else []):
        if isinstance(item, dict) and "citations" in item:
            return item["citations"]
    return None


def _chat_calls(text: str) -> JsonValue:
    """Read tool calls in chat-completions form, whose arguments are text."""
    calls = parse_json(text)
    return [_chat_call(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else None


def _chat_call(call: dict[str, JsonValue]) -> JsonValue:
    if "function" in call:
        return call
    arguments = call.get("arguments")
    written = arguments if isinstance(arguments, str) else dump_json({} if arguments is None else arguments)
    function: dict[str, JsonValue] = {"name": call.get("name"), "arguments": written}
    return {"id": call.get("tool_call_id"), "type": "function", "function": function}


SAMPLE_JSON: dict[str, tuple[str, Parse]] = {
    "output_items": ("output_items_json", parse_json),
    "tool_calls": ("tool_calls_json", parse_json),
    "output_tools": ("tool_calls_json", _chat_calls),
    "output_json": ("output_text", parse_json),
    "output_object": ("output_text", _answer_object),
    "retrieval": ("retrieval_json", parse_json),
    "retrieval_executions": ("retrieval_json", parse_json),
    "citations": ("output_items_json", _citations),
    **{name: (name, parse_json) for name in (*USAGE, "cost_usd", "latency_ms")},
}
"""Fields of the answer that hold JSON: their column of SAMPLES, and how its text is read."""
