"""JsonEquals: whether two JSON values are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import Field

from assay.contracts.json_text import dump_json, parse_json
from evaluators.contract import Options, RowEvaluator, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

MAX_SHOWN = 60  # characters of a value in a reason


class _Absent:
    """Stands for a member that one side does not have."""


_ABSENT: Final = _Absent()
_Member: TypeAlias = "JsonValue | _Absent"
_Pair: TypeAlias = "tuple[str, _Member, _Member]"


class JsonEqualsOptions(Options):
    """Options of JsonEquals."""

    case_sensitive: bool = Field(
        default=True, description="whether upper and lower case differ in texts; keys are always exact"
    )
    negated: bool = Field(default=False, description="pass where the values differ")


def compare_values(options: JsonEqualsOptions, fields: Fields) -> Verdict:
    """Score 1 where both fields hold the same JSON value, else 0 with the first difference as reason.

    A field that is not strict JSON is taken as text. Numbers are compared by value (1 equals 1.0, integers
    of any size exactly), a boolean is no number, the order counts in lists but not in objects. Only when
    whole fields differ in kind, text against number, boolean or null, is the text read as JSON: the text
    "8" equals 8.0.
    """
    got, wanted = (_read_value(fields[name] or "") for name in ("response", "expected_response"))
    exact = options.case_sensitive
    got, wanted = _align(got, wanted, case_sensitive=exact), _align(wanted, got, case_sensitive=exact)
    difference = find_difference(got, wanted, case_sensitive=exact)
    return Verdict(score=float((difference is None) != options.negated), reason=difference)


def find_difference(got: JsonValue, wanted: JsonValue, *, case_sensitive: bool) -> str | None:
    """Describe the first place where two values differ, in the order of `wanted`, None when equal."""
    pending: list[_Pair] = [("$", got, wanted)]
    while pending:
        path, left, right = pending.pop()
        members = _pair_members(path, left, right)
        if members is not None:
            pending.extend(reversed(list(members)))
        elif not _equal_leaves(left, right, case_sensitive=case_sensitive):
            return f"{path}: expected {_show(right)}, got {_show(left)}"
    return None


def _read_value(text: str) -> JsonValue:
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return text


def _align(value: JsonValue, other: JsonValue, *, case_sensitive: bool) -> JsonValue:
    """Read a text as JSON when the other side is a number, boolean or null."""
    if isinstance(value, str) and not isinstance(other, str | list | dict):
        return _read_value(value if case_sensitive else value.casefold())
    return value


def _pair_members(path: str, left: _Member, right: _Member) -> Iterator[_Pair] | None:
    """Return the members of two objects or two lists side by side; None for anything else."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = [*right, *(key for key in left if key not in right)]
        return ((_step(path, key), left.get(key, _ABSENT), right.get(key, _ABSENT)) for key in keys)
    if isinstance(left, list) and isinstance(right, list):
        size = range(max(len(left), len(right)))
        return ((f"{path}[{n}]", _item(left, n), _item(right, n)) for n in size)
    return None


def _item(values: list[JsonValue], index: int) -> _Member:
    return values[index] if index < len(values) else _ABSENT


def _step(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{dump_json(key)}]"


def _equal_leaves(left: _Member, right: _Member, *, case_sensitive: bool) -> bool:
    if isinstance(left, str) and isinstance(right, str) and not case_sensitive:
        return left.casefold() == right.casefold()
    return _kind(left) == _kind(right) and left == right


def _kind(value: _Member) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number"
    return type(value).__name__


def _show(value: _Member) -> str:
    if isinstance(value, _Absent):
        return "nothing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = dump_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


EVALUATOR = RowEvaluator(
    name="JsonEquals",
    summary="Whether the answer and the expected answer are the same JSON value.",
    aliases=("json_equals", "uipath-exact-match"),
    needs=("response", "expected_response"),
    options=JsonEqualsOptions,
    judge=compare_values,
)
