"""IsJson: whether the answer is one JSON value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal, NoReturn

import orjson
from pydantic import Field

from assay.contracts.json_text import Number
from evaluators.contract import Options, RowEvaluator, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

FENCED = "whether a Markdown code fence around the whole answer is taken off first"
_FENCES = {"```", "~~~"}
_KINDS = {"dict": "object", "list": "array", "str": "string", "bool": "boolean", "NoneType": "null"}


class IsJsonOptions(Options):
    """Options of IsJson."""

    fenced: bool = Field(default=False, description=FENCED)
    kind: Literal["any", "object", "array"] = Field(default="any", description="what the value has to be")


def judge_json(options: IsJsonOptions, fields: Fields) -> Verdict:
    """Score 1 where the answer is JSON as RFC 8259 writes it, of the kind asked for, else 0.

    NaN and Infinity are not JSON; a key that stands twice in an object is no fault.
    """
    try:
        value = read_answer(fields["response"] or "", fenced=options.fenced)
    except ValueError as error:
        return Verdict(score=0.0, label="invalid", reason=str(error))
    label = _KINDS.get(type(value).__name__, "number")
    fits = options.kind in {"any", label}
    reason = None if fits else f"the value is of kind {label}, not {options.kind}"
    return Verdict(score=float(fits), label=label, reason=reason)


def read_answer(text: str, *, fenced: bool) -> JsonValue:
    """Read an answer as JSON.

    Raises:
        ValueError: It is none; the message says what is wrong and where.
    """
    body = _open_fence(text) if fenced else text
    try:
        return orjson.loads(body)
    except ValueError:
        return _decode(body, Number)  # an integer may have more digits than Python reads


def _open_fence(text: str) -> str:
    """Return what stands between the first line and the last mark of a code fence, if the text is one."""
    first, _, rest = text.strip().partition("\n")
    mark = first[:3]
    return rest.rstrip(mark) if mark in _FENCES and rest.endswith(mark) else text


def read_exactly(text: str, *, fenced: bool, number: Callable[[str], float]) -> JsonValue:
    """Read an answer as `read_answer` does, its numbers by `number`.

    Raises:
        ValueError: As `read_answer`.
    """
    return _decode(_open_fence(text) if fenced else text, number)


def _decode(text: str, number: Callable[[str], float]) -> JsonValue:
    """Read also what orjson refuses although it is JSON, such as half a surrogate pair, and name faults."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=number, parse_float=number)
    except RecursionError as error:
        raise ValueError("not JSON that can be read: nested too deeply") from error
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error


def _refuse(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is none of its numbers")


EVALUATOR = RowEvaluator(
    name="IsJson",
    summary="Whether the answer is valid JSON.",
    aliases=("is_json", "isJson"),
    needs=("response",),
    options=IsJsonOptions,
    judge=judge_json,
    version=2,
)
