"""Mapping: the fields of evaluators, filled from source rows and answers."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

import orjson
import polars as pl

from assay.contracts.json_text import dump_json
from assay.errors import ConfigError, list_names, nearest_names
from transforms.fields import read_defaults
from transforms.rendering import fill_columns, list_references, render
from transforms.templates import Reference
from transforms.values import SAMPLE_JSON, SAMPLE_TEXT, encode_text, read_json, read_texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.contracts.json_text import JsonValue
    from transforms.templates import Template

MAX_KEYS = 5_000  # names of fields remembered for a message
FIRST_ROWS = 16  # most fields show in these, and then nothing more is to be done

_ELSEWHERE = {"tool_definitions": "{{item.tool_definitions}}"}  # where an answer's field stands with us
_MARKS = ("{{", "<<", "${")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNREAD = re.compile(r"\$\{(?!data\.|target\.)\s*(?:data|target|run|inputs|outputs)\b[^}]*\}?")


def map_fields(rows: pl.DataFrame, mapping: Mapping[str, Template], fields: Iterable[str]) -> pl.DataFrame:
    """Fill evaluator fields with text.

    A field in `mapping` is rendered from its template, any other comes from its standard source. A
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
    texts = read_texts(rows, list_references(mapping[f] for f in asked if f in mapping))
    standard = read_defaults(rows, (field for field in asked if field not in mapping), typed=False)
    columns = {f: render(mapping[f]) if f in mapping else standard[f] for f in asked}
    return fill_columns(rows, columns, texts, {})


def map_values(rows: pl.DataFrame, mapping: Mapping[str, Template], fields: Iterable[str]) -> pl.DataFrame:
    """Fill evaluator fields with JSON text, so that lists, objects and numbers keep their type.

    Args:
        rows: As for `map_fields`.
        mapping: Field to template.
        fields: Fields to fill.

    Returns:
        As `map_fields`, but with compact JSON in the fields: the value of a sole placeholder, a string
        for any other template. A JSON null is the text `null`; null is what has no value.
    """
    asked = list(fields)
    mapped = [mapping[field] for field in asked if field in mapping]
    typed = read_json(rows, list_references(template for template in mapped if template.sole))
    texts = read_texts(rows, list_references(template for template in mapped if not template.sole))
    standard = read_defaults(rows, (field for field in asked if field not in mapping), typed=True)
    columns = {f: _render_json(mapping[f]) if f in mapping else standard[f] for f in asked}
    return fill_columns(rows, columns, texts, typed)


def _render_json(template: Template) -> pl.Expr:
    return pl.col(f"#{template.sole}") if template.sole else encode_text(render(template))


def is_ambiguous(mapping: Mapping[str, str]) -> bool:
    """Whether a text may be a column or a constant, which only the rows can tell."""
    return any(not _is_template(text) and not _WORD.fullmatch(text) for text in mapping.values())


def plain_mapping(rows: pl.DataFrame, mapping: Mapping[str, str]) -> dict[str, str]:
    """Write bare column names out as placeholders: `question` becomes `{{item["question"]}}`.

    A single word is a column; whether there is one is for `FieldCheck` to tell. Other text without
    placeholders is a column where a row has it, else a constant.

    Args:
        rows: `item_json` of rows that show the columns; all of them where `is_ambiguous`.
        mapping: Field to text.

    Raises:
        ConfigError: A `${...}` that looks like a placeholder but is none.
    """
    plain: dict[str, str] = {}
    for field, text in mapping.items():
        column = Reference("item", (text,))
        unread = _UNREAD.search(text)
        if unread:
            raise ConfigError(
                f"mapping {field}: {unread.group()} is not read; write ${{data.FIELD}}, ${{target.FIELD}}, "
                "{{item.FIELD}} or {{sample.output_text}}"
            )
        if _is_template(text):
            plain[field] = text
        elif _WORD.fullmatch(text) or not read_texts(rows, [column])[column].missing.all():
            plain[field] = f"{{{{item[{dump_json(text)}]}}}}"
        else:
            plain[field] = text
    return plain


def _is_template(text: str) -> bool:
    return any(mark in text for mark in _MARKS)


class FieldCheck:
    """Templates, and which of their fields no row had so far."""

    def __init__(self, mapping: Mapping[str, Template], *, has_target: bool, what: str = "mapping") -> None:
        """Check what needs no data.

        Args:
            mapping: Field to template.
            has_target: Whether answers will exist that `sample.*` can read.
            what: What the fields belong to, for messages.

        Raises:
            ConfigError: A field that no answer has, or `sample.*` without a target.
        """
        self._wanted: dict[Reference, str] = {}
        self._keys: dict[str, None] = {}
        self._rows = 0
        for field, template in mapping.items():
            for reference in template.references:
                if reference.root == "sample":
                    _check_sample(f"{what} {field}", reference, has_target=has_target)
                else:
                    self._wanted.setdefault(reference, f"{what} {field}")

    def look(self, rows: pl.DataFrame) -> None:
        """Note which fields a block of rows has.

        Args:
            rows: `item_json`.
        """
        self._rows += rows.height
        for part in (rows.head(FIRST_ROWS), rows):
            if not self._wanted:
                return
            found = read_texts(part, self._wanted)
            self._wanted = {ref: place for ref, place in self._wanted.items() if found[ref].missing.all()}
        if self._wanted:
            self._note_keys(rows)

    def finish(self) -> None:
        """Refuse fields that no row of any block had; without rows there is nothing to refuse.

        Raises:
            ConfigError: A field is nowhere; the fields there are and the nearest are named.
        """
        if not self._rows:
            return
        for reference, place in self._wanted.items():
            alone = len(reference.path) == 1
            shown = str(reference.path[0]) if alone else str(reference).removeprefix("item").removeprefix(".")
            close = nearest_names(shown, self._keys)
            hint = f"; did you mean {list_names(close)}?" if close else ""
            raise ConfigError(f"{place}: item has no field {shown} (fields: {list_names(self._keys)}){hint}")

    def _note_keys(self, rows: pl.DataFrame) -> None:
        for text in rows["item_json"]:
            room = MAX_KEYS - len(self._keys)
            if room <= 0:
                return
            source: JsonValue = orjson.loads(text)
            self._keys |= dict.fromkeys(islice(source, room)) if isinstance(source, dict) else {}


def _check_sample(place: str, reference: Reference, *, has_target: bool) -> None:
    head = str(reference.path[0]) if reference.path else ""
    if head in _ELSEWHERE:
        raise ConfigError(f"{place}: answers hold no {head}; write {_ELSEWHERE[head]}")
    known = (*SAMPLE_TEXT, *SAMPLE_JSON, "usage")
    if head not in known:
        raise ConfigError.unknown("field of sample", head, known, where=place)
    if head in SAMPLE_TEXT and len(reference.path) > 1:
        raise ConfigError(f"{place}: sample.{head} is text without members; output_json reads JSON answers")
    if not has_target:
        raise ConfigError(f"{place}: sample.* needs a target (--target) or answers (--responses)")
