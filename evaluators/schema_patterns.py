"""Patterns of a JSON Schema, matched in linear time instead of by Python's `re`."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic_core import SchemaError, SchemaValidator, core_schema

from assay.errors import CallError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jsonschema.exceptions import ValidationError

    from assay.contracts.json_text import JsonValue

_Part: TypeAlias = Any  # of a schema, a value, or what the validator makes of them: it has no types

_DATA = {"const", "enum", "default", "examples", "example"}  # keywords that hold values, not schemas
_REPEATS = re.compile(r"[*+?{|]")


@lru_cache(maxsize=10_000)
def compile_pattern(pattern: str) -> SchemaValidator:
    """Prepare a pattern for `search`; its engine takes linear time, whatever the text.

    Raises:
        ValueError: The engine, Rust's crate regex, does not know the pattern; the message names both.
    """
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError as error:
        lines = str(error).splitlines()
        fault = next((line for line in lines if line.startswith("error: ")), lines[-1].strip())
        raise ValueError(
            f"pattern {pattern!r} cannot be matched in linear time: {fault.removeprefix('error: ')}"
        ) from error


def search(pattern: str, text: str) -> bool:
    """Whether a pattern is found anywhere in a text; half a surrogate pair counts as U+FFFD.

    Raises:
        CallError: `invalid_schema`, for a pattern that `compile_pattern` refuses.
    """
    try:
        compiled = compile_pattern(pattern)
    except ValueError as error:
        raise CallError("invalid_schema", str(error)) from error
    whole = text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return compiled.isinstance_python(whole)


def check_patterns(schema: JsonValue) -> None:
    """Refuse patterns that cannot be matched in linear time.

    Beside `unevaluatedProperties` the validator asks Python's `re` about names, so there a pattern has to be
    harmless in itself: without repeats and choices, or with one behind `^`.

    Raises:
        ValueError: As said; the message names the pattern.
    """
    names: list[str] = []
    plain = True
    for part in _list_objects(schema):
        plain = plain and "unevaluatedProperties" not in part
        keyed = part.get("patternProperties")
        names.extend(keyed if isinstance(keyed, dict) else ())
        pattern = part.get("pattern")
        if isinstance(pattern, str):
            compile_pattern(pattern)
    for name in names:
        compile_pattern(name)
        if not plain and len(_REPEATS.findall(name)) > name.startswith("^"):
            raise ValueError(
                f"patternProperties {name!r}: beside unevaluatedProperties one repeat after ^ is all"
            )


def _list_objects(schema: JsonValue) -> Iterator[dict[str, JsonValue]]:
    pending: list[JsonValue] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending.extend(member for key, member in part.items() if key not in _DATA)
        elif isinstance(part, list):
            pending.extend(part)


@lru_cache(maxsize=100)
def guard_patterns(kind: _Part) -> _Part:
    """Return a class of validators like `kind` that matches patterns by `search`, at every depth."""
    if hasattr(kind, "guarded"):
        return kind
    extend: _Part = import_module("jsonschema.validators").extend
    fields: _Part = import_module("attrs").fields
    ours = {"pattern": _match_text, "patternProperties": _match_names}
    known: Mapping[str, _Part] = kind.VALIDATORS
    stock = known.get("additionalProperties")
    changed = {name: check for name, check in ours.items() if name in known}
    if stock is not None:
        changed["additionalProperties"] = _ask_without_patterns(stock)
    guarded: _Part = extend(kind, validators=changed)
    evolve_stock: _Part = guarded.evolve

    def evolve(validator: _Part, **changes: _Part) -> _Part:
        """Stay guarded where a part of the schema names its own draft."""
        made = evolve_stock(validator, **changes)
        own: _Part = made.__class__
        wanted = guard_patterns(own)
        if own is wanted:
            return made
        kept = {each.alias: getattr(made, each.name) for each in fields(own) if each.init}
        return wanted(**kept)

    guarded.evolve = evolve
    guarded.guarded = True
    return guarded


def _match_text(validator: _Part, pattern: str, value: _Part, _: object) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(value, "string") and not search(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _match_names(
    validator: _Part, patterns: Mapping[str, _Part], value: _Part, _: object
) -> Iterator[ValidationError]:
    if validator.is_type(value, "object"):
        for pattern, schema in patterns.items():
            for name in value:
                if search(pattern, name):
                    yield from validator.descend(value[name], schema, path=name, schema_path=pattern)


def _ask_without_patterns(stock: _Part) -> _Part:
    """Wrap `additionalProperties`: names that a pattern matches go in as properties."""

    def check(validator: _Part, rule: _Part, value: _Part, schema: _Part) -> Iterator[ValidationError]:
        patterns = schema.get("patternProperties")
        if patterns and validator.is_type(value, "object"):
            matched = {name: True for name in value if any(search(each, name) for each in patterns)}
            schema = {key: part for key, part in schema.items() if key != "patternProperties"}
            schema["properties"] = matched | schema.get("properties", {})
        yield from stock(validator, rule, value, schema) or ()

    return check
