"""Mapping: templates compiled to Polars expressions over source rows and answers."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import dump_json, parse_json
from assay.errors import ConfigError, list_names, nearest_names
from transforms.templates import MISSING, Missing, Reference, look_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from assay.contracts.json_text import JsonValue
    from transforms.templates import Path, Template

SAMPLE_PREFIX = "sample."  # columns of SAMPLES carry it when they stand beside those of ITEMS
SAMPLE_TEXT = ("output_text", "model", "finish_reason", "status")
SAMPLE_JSON = {
    "output_items": "output_items_json",
    "tool_calls": "tool_calls_json",
    "output_json": "output_text",
    "output_object": "output_text",
}
DEFAULT_COLUMNS = {
    "query": "query",
    "response": f"{SAMPLE_PREFIX}output_text",
    "expected_response": "expected_response",
    "context": "context",
    "messages": "messages_json",
    "tool_calls": f"{SAMPLE_PREFIX}tool_calls_json",
    "tool_definitions": "tool_definitions_json",
}

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOOKS_JSON = r"^\s*[-\d\[{]"
_RESPELT = r"\d\.\d*0\b|\d[eE]|\d{16}|-0|\b0\.0000"  # numbers a float round trip may spell anew
_VALUE = pl.Struct({"text": pl.String, "missing": pl.Boolean})


def map_fields(rows: pl.DataFrame, mapping: Mapping[str, Template], fields: Iterable[str]) -> pl.DataFrame:
    """Fill evaluator fields from source rows and answers.

    A field in `mapping` is rendered from its template, any other comes from its standard column. A
    sole placeholder gives its value (text as it is, other JSON as compact text, JSON null as null);
    inside text a null is empty. Inserted text is never read again.

    Args:
        rows: ITEMS columns, and SAMPLES columns under `SAMPLE_PREFIX`.
        mapping: Field to template.
        fields: Fields to fill.

    Returns:
        One String column per field, and `error_code`, `error_message`: `missing_field` where a
        placeholder has no value in that row, else null.
    """
    asked = list(fields)
    used = {str(ref): ref for f in asked if f in mapping for ref in mapping[f].references}
    known = rows.with_columns(value_of(ref).alias(f"@{name}") for name, ref in used.items())
    problems = [
        pl.when(pl.col(f"@{name}").struct.field("missing")).then(pl.lit(f"missing {name}")) for name in used
    ]
    message = pl.coalesce(problems) if problems else pl.lit(None, pl.String)
    code = pl.when(message.is_not_null()).then(pl.lit("missing_field"))
    columns = [(render(mapping[f]) if f in mapping else pl.col(DEFAULT_COLUMNS[f])).alias(f) for f in asked]
    return known.select(*columns, code.alias("error_code"), message.alias("error_message"))


def render(template: Template) -> pl.Expr:
    """Return the expression of a template's text over the columns of its references.

    The text is null only where a sole placeholder is null.
    """
    sole = template.sole
    if sole is not None:
        return _text_of(sole)
    pieces = [
        pl.lit(part) if isinstance(part, str) else _text_of(part).fill_null("") for part in template.parts
    ]
    return pl.concat_str(pieces)


def _text_of(reference: Reference) -> pl.Expr:
    return pl.col(f"@{reference}").struct.field("text")


def value_of(reference: Reference) -> pl.Expr:
    """Return the expression of one placeholder: a struct of `text` and `missing`."""
    if reference.root == "item":
        return _walk("item_json", reference.path, parse_json)
    head, rest = reference.path[0] if reference.path else None, reference.path[1:]
    if head in SAMPLE_TEXT:
        text = pl.col(f"{SAMPLE_PREFIX}{head}").cast(pl.String)
        return pl.struct(text.alias("text"), pl.lit(value=False).alias("missing"))
    column = SAMPLE_PREFIX + SAMPLE_JSON[str(head)]
    return _walk(column, rest, _answer_object if head == "output_object" else parse_json)


def _walk(column: str, path: Path, parse: Callable[[str], JsonValue]) -> pl.Expr:
    return pl.col(column).map_batches(partial(_extract, path=path, parse=parse), return_dtype=_VALUE)


def _extract(texts: pl.Series, *, path: Path, parse: Callable[[str], JsonValue]) -> pl.Series:
    """Read one path from a column of JSON texts; Polars does the plain cells, Python the doubtful ones.

    Doubtful is a cell where Polars cannot tell null from missing, or could respell a number.
    """
    pattern = _polars_path(path) if parse is parse_json else None
    if pattern is None:
        fast = pl.Series(texts.name, [None] * len(texts), pl.String)
    else:
        fast = texts.str.json_path_match(pattern)
    respelt = fast.str.contains(_LOOKS_JSON) & texts.str.contains(_RESPELT)
    doubtful = (fast.is_null() | respelt).arg_true()
    exact = [_read_text(text, path, parse) for text in texts.gather(doubtful)]
    missing = pl.repeat(value=False, n=len(texts), dtype=pl.Boolean, eager=True)
    missing = missing.scatter(doubtful, [found is MISSING for found in exact])
    values = fast.scatter(doubtful, [found if isinstance(found, str) else None for found in exact])
    return pl.DataFrame({"text": values, "missing": missing}).to_struct(texts.name)


def _read_text(text: str | None, path: Path, parse: Callable[[str], JsonValue]) -> str | Missing | None:
    if text is None:
        return MISSING
    try:
        found = look_up(parse(text), path)
    except ValueError:
        return MISSING
    if found is None and parse is _answer_object:
        return "null"  # a null that an agent put into its output is an answer, not the lack of one
    if isinstance(found, Missing) or found is None or isinstance(found, str):
        return found
    return dump_json(found)


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


def check_mapping(items: pl.DataFrame, mapping: Mapping[str, Template], *, has_target: bool) -> None:
    """Refuse a mapping that cannot work for any row, before any call is made.

    Args:
        items: ITEMS of the run.
        mapping: Field to template.
        has_target: Whether answers will exist that `sample.*` can read.

    Raises:
        ConfigError: A field that no item has (nearest names given), or `sample.*` without a target.
    """
    for field, template in mapping.items():
        for reference in template.references:
            if reference.root == "sample":
                _check_sample(field, reference, has_target=has_target)
            elif items.select(value_of(reference).struct.field("missing").all()).item():
                raise ConfigError(_no_such_field(items, field, reference))


def plain_mapping(rows: pl.DataFrame, mapping: Mapping[str, str]) -> dict[str, str]:
    """Write bare column names out as placeholders: `question` becomes `{{item["question"]}}`.

    Other text without placeholders is a constant, but a single word that names no field is taken for
    a slip.

    Raises:
        ConfigError: A single word that is no field of any item; the nearest are named.
    """
    plain: dict[str, str] = {}
    for key, text in mapping.items():
        reference = Reference("item", (text,))
        if any(mark in text for mark in ("{{", "<<", "${")):
            plain[key] = text
        elif not rows.select(value_of(reference).struct.field("missing").all()).item():
            plain[key] = f"{{{{item[{dump_json(text)}]}}}}"
        elif _PLAIN_KEY.fullmatch(text):
            raise ConfigError(_no_such_field(rows, key, reference))
        else:
            plain[key] = text
    return plain


def _check_sample(field: str, reference: Reference, *, has_target: bool) -> None:
    head = str(reference.path[0]) if reference.path else ""
    if head not in SAMPLE_TEXT and head not in SAMPLE_JSON:
        known = (*SAMPLE_TEXT, *SAMPLE_JSON)
        raise ConfigError.unknown("field of sample", head, known, where=f"mapping {field}")
    if not has_target:
        raise ConfigError(f"mapping {field}: sample.* needs a target (--target) or answers (--responses)")


def _no_such_field(items: pl.DataFrame, field: str, reference: Reference) -> str:
    known: dict[str, None] = {}
    for text in items["item_json"]:
        source = parse_json(text)
        known |= dict.fromkeys(source) if isinstance(source, dict) else {}
    shown = str(reference).removeprefix("item").removeprefix(".")
    close = nearest_names(shown, known)
    hint = f"; did you mean {list_names(close)}?" if close else ""
    return f"mapping {field}: item has no field {shown} (fields: {list_names(known)}){hint}"
