"""JsonSchema: whether the answer is JSON that a JSON Schema accepts."""

from __future__ import annotations

from decimal import Decimal, DecimalException
from functools import cached_property, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urldefrag

from pydantic import ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from assay.contracts.json_text import Number, parse_json
from assay.errors import CallError
from evaluators.contract import Options, RowEvaluator, Verdict
from evaluators.is_json import FENCED, read_exactly
from evaluators.schema_patterns import check_patterns, guard_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jsonschema.exceptions import ValidationError

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

Schema: TypeAlias = dict[str, Any] | bool
Validate: TypeAlias = "Callable[[JsonValue], Iterator[ValidationError]]"

_MAX_FAULTS = 10  # that the details list
_MAX_SHOWN = 200  # characters of a message
_MAX_DIGITS = 4_300  # of a whole number, which is what Python reads and writes


class JsonSchemaOptions(Options):
    """Options of JsonSchema."""

    model_config = ConfigDict(populate_by_name=True)

    json_schema: Schema | None = Field(
        default=None,
        alias="schema",
        description="the JSON Schema, by its $schema or else of draft 2020-12; without it the row's "
        "expected_response holds one. Also spelt schema. References to other documents are never fetched",
    )
    fenced: bool = Field(default=False, description=FENCED)

    @property
    def extra_needs(self) -> tuple[str, ...]:
        """The reference, when no schema is given."""
        return ("expected_response",) if self.json_schema is None else ()

    @field_validator("json_schema")
    @classmethod
    def _check_schema(cls, schema: Schema | None) -> Schema | None:
        if schema is not None:
            try:
                _compile(schema)
            except ValueError as error:
                raise PydanticCustomError(
                    "schema", "a JSON Schema; {fault}", {"fault": str(error)}
                ) from error
        return schema

    @cached_property
    def find_faults(self) -> Validate | None:
        """The given schema, ready to validate."""
        return None if self.json_schema is None else _compile(self.json_schema)


def judge_schema(options: JsonSchemaOptions, fields: Fields) -> Verdict:
    """Score 1 where the answer is JSON and valid, else 0 with the first fault as reason, in document order.

    `format` is an annotation, not checked. Patterns are those of the Rust crate regex, matched in linear
    time: a schema with look-around or back references is refused. Whole numbers of up to 4,300 digits are
    exact.

    Raises:
        CallError: The schema in the row is none (`invalid_schema`), or refers to a document that is not
            part of it (`schema_reference`); a number is beyond what can be compared (`number_range`); the
            answer or what the schema says of it is nested too deeply (`too_deep`).
    """
    from referencing.exceptions import Unresolvable

    find_faults = options.find_faults or _read_schema(fields["expected_response"] or "")
    try:
        value = read_exactly(fields["response"] or "", fenced=options.fenced, number=_read_number)
    except ValueError as error:
        return Verdict(score=0.0, label="invalid_json", reason=str(error))
    try:
        faults = [_describe(fault) for fault in find_faults(value)]
    except RecursionError as error:
        raise CallError("too_deep", "answer and schema are nested too deeply to be compared") from error
    except Unresolvable as error:
        raise CallError("schema_reference", f"the schema refers to what is not in it: {error}") from error
    if not faults:
        return Verdict(score=1.0, label="valid")
    reason = f"{faults[0]['path']}: {faults[0]['message']}"
    details = {"faults": faults[:_MAX_FAULTS], "fault_count": len(faults)}
    return Verdict(score=0.0, label="invalid", reason=reason, details=details)


def _describe(fault: ValidationError) -> dict[str, str]:
    message = fault.message if len(fault.message) <= _MAX_SHOWN else f"{fault.message[:_MAX_SHOWN]}…"
    return {"path": _escape(fault.json_path), "message": _escape(message)}


def _escape(text: str) -> str:
    """Write half a surrogate pair, which no JSON of ours may hold, as the text of its escape."""
    return text.encode("utf-8", "backslashreplace").decode()


def _read_number(text: str) -> float:
    """Return a whole number beyond the range of floats as an integer, others as they are.

    Raises:
        CallError: `number_range`, for what is neither an integer of `_MAX_DIGITS` nor a float.
    """
    if len(text) <= _MAX_DIGITS and text.lstrip("-").isdecimal():
        return int(text)
    value = Number(text)
    if abs(value) != float("inf"):
        return value
    try:
        exact = Decimal(text)
        if exact.adjusted() < _MAX_DIGITS and exact == exact.to_integral_value():
            return int(exact)
    except DecimalException:
        pass
    raise CallError("number_range", f"{text[:_MAX_SHOWN]} is beyond the numbers that can be compared")


@lru_cache(maxsize=1_000)
def _read_schema(text: str) -> Validate:
    try:
        parse_json(text)  # refuses what is ambiguous
        schema = read_exactly(text, fenced=False, number=_read_number)
        if isinstance(schema, dict | bool):
            return _compile(schema)
    except ValueError as error:
        raise CallError("invalid_schema", str(error)) from error
    raise CallError("invalid_schema", "a JSON Schema is an object or a boolean")


def _compile(schema: Schema) -> Validate:
    """Prepare a validator that knows the schema and the published drafts, and nothing else.

    Raises:
        ValueError: It is no schema, refers to another document, is nested too deeply or has a pattern that
            cannot be matched in linear time.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    drafts: Any = import_module("jsonschema_specifications").REGISTRY
    kind: Any = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"{error.json_path}: {error.message[:_MAX_SHOWN]}") from error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    check_patterns(schema)
    known = {urldefrag(name).url for name in _list_texts(schema, "$id")}
    for reference in _list_texts(schema, "$ref"):
        document = urldefrag(reference).url
        if "://" in document and document not in known and document not in drafts:
            raise ValueError(f"$ref {reference}: other documents are never fetched")
    faults: Validate = guard_patterns(kind)(schema, registry=drafts).iter_errors
    return faults


def _list_texts(schema: JsonValue, key: str) -> Iterator[str]:
    """Yield every text that stands under `key` at any depth."""
    pending: list[JsonValue] = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            found = part.get(key)
            if isinstance(found, str):
                yield found
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)


EVALUATOR = RowEvaluator(
    name="JsonSchema",
    summary="Whether the answer is JSON that a JSON Schema accepts.",
    aliases=("json_schema", "jsonSchema"),
    needs=("response",),
    wants=("expected_response",),
    options=JsonSchemaOptions,
    judge=judge_schema,
    version=2,
)
