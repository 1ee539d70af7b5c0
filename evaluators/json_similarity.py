"""JsonSimilarity: how much of an expected JSON value the answer has."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, InvalidOperation
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic import Field
from rapidfuzz.distance import Levenshtein

from assay.errors import CallError
from evaluators.contract import RowEvaluator, Verdict
from evaluators.output_sides import (
    OutputOptions,
    align_sides,
    exact_number,
    judge_lines,
    read_side,
    same_number,
    split_lines,
    tell_compat,
    to_python,
)

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

NEAR_ZERO = 1e-12  # numbers within this of 0 are 0


class _Absent:
    """Stands for a member that the answer does not have."""


_ABSENT: Final = _Absent()
_Member: TypeAlias = "JsonValue | _Absent"


class JsonSimilarityOptions(OutputOptions):
    """Options of JsonSimilarity."""

    case_sensitive: bool = Field(
        default=True, description="whether upper and lower case differ in texts; keys are always exact"
    )
    tolerance: float = Field(
        default=0.0,
        ge=0,
        allow_inf_nan=False,
        description="numbers that differ by at most this share of the expected one are the same",
    )


def measure_similarity(options: JsonSimilarityOptions, fields: Fields) -> Verdict:
    """Score the share of expected leaves that the answer matches, 0 to 1.

    A leaf is a number, text, boolean or null, or an empty object or list. Texts are as alike as
    1 - distance / longer length, by Levenshtein over code points; numbers as 1 - |e - a| / |e|, never
    below 0, and an expected 0 takes only 0; other leaves are the same or not. Leaves of other kinds, and
    those that the answer lacks, match nothing. What the answer has beyond the expected is not counted. The
    rule is that of UiPath's JSON similarity, which has no leaves in empty objects and lists.

    Raises:
        CallError: `missing_field`, when a side lacks the part that is to be compared.
    """
    return tell_compat(options, _measure(options, fields))


def _measure(options: JsonSimilarityOptions, fields: Fields) -> Verdict:
    got, wanted = _read_sides(options, fields)
    if options.line_by_line and _has_lines(options, got, wanted):
        return _compare_lines(options, got, wanted)
    matched, total = _match_sides(options, got, wanted)
    details = {"matched_leaves": matched, "total_leaves": total}
    reason = None if matched == total else f"{matched:g} of {total} leaves match"
    return Verdict(score=_divide(matched, total), reason=reason, details=details)


def _read_sides(options: JsonSimilarityOptions, fields: Fields) -> tuple[JsonValue, JsonValue]:
    sides: list[JsonValue] = []
    for name in ("response", "expected_response"):
        try:
            sides.append(read_side(options, fields, name))
        except CallError:
            if options.compat != "uipath-legacy":
                raise
            sides.append({})  # UiPath's older evaluator takes an unresolved side as an empty object
    return sides[0], sides[1]


def _has_lines(options: JsonSimilarityOptions, got: JsonValue, wanted: JsonValue) -> bool:
    if options.compat:
        return not isinstance(options.target_output_key, list)
    return isinstance(got, str) and isinstance(wanted, str)


def _compare_lines(options: JsonSimilarityOptions, got: JsonValue, wanted: JsonValue) -> Verdict:
    def score(left: str, right: str) -> float:
        return _divide(*_match_sides(options, left, right))

    exact = options.compat is not None
    texts = (str(to_python(got)), str(to_python(wanted)))
    left, right = (split_lines(text, options.line_delimiter, exact=exact) for text in texts)
    return judge_lines(left, right, score, empty=0.0 if exact else 1.0)


def _match_sides(options: JsonSimilarityOptions, got: JsonValue, wanted: JsonValue) -> tuple[float, int]:
    if options.compat:
        return match_leaves(options, to_python(got), to_python(wanted))
    return match_leaves(options, *align_sides(got, wanted, case_sensitive=options.case_sensitive))


def match_leaves(options: JsonSimilarityOptions, got: JsonValue, wanted: JsonValue) -> tuple[float, int]:
    """Return how many expected leaves are matched, in whole and in part, and how many there are."""
    matched, total = 0.0, 0
    pending: list[tuple[_Member, JsonValue]] = [(got, wanted)]
    while pending:
        left, right = pending.pop()
        if isinstance(right, dict | list) and (right or options.compat):
            pending.extend(reversed(_pair_members(left, right)))
        else:
            matched += _match_leaf(options, left, right)
            total += 1
    return matched, total


def _pair_members(
    got: _Member, wanted: dict[str, JsonValue] | list[JsonValue]
) -> list[tuple[_Member, JsonValue]]:
    """Pair every expected member with that of the answer, or with nothing."""
    if isinstance(wanted, dict):
        held = got if isinstance(got, dict) else {}
        return [(held.get(key, _ABSENT), member) for key, member in wanted.items()]
    items = got if isinstance(got, list) else []
    return [(items[n] if n < len(items) else _ABSENT, member) for n, member in enumerate(wanted)]


def _match_leaf(options: JsonSimilarityOptions, got: _Member, wanted: JsonValue) -> float:
    match got, wanted:
        case bool() | None, _:
            return float(got is wanted)
        case str(), str():
            return _compare_texts(got, wanted, case_sensitive=options.case_sensitive)
        case int() | float(), int() | float() if not isinstance(wanted, bool):
            return _compare_numbers(got, wanted, options.tolerance)
        case (dict(), dict()) | (list(), list()):
            return 1.0  # the expected one is empty, and what is beyond it does not count
        case _:
            return 0.0


def _compare_texts(got: str, wanted: str, *, case_sensitive: bool) -> float:
    left, right = (got, wanted) if case_sensitive else (got.casefold(), wanted.casefold())
    if left == right:
        return 1.0
    return 1.0 - Levenshtein.distance(left, right) / max(len(left), len(right))


def _compare_numbers(got: float, wanted: float, tolerance: float) -> float:
    if same_number(got, wanted):
        return 1.0
    if abs(wanted) <= NEAR_ZERO:
        return float(abs(got) <= NEAR_ZERO)
    try:
        ratio = abs(wanted - got) / abs(wanted)
    except OverflowError:
        ratio = nan
    if not isfinite(ratio):
        ratio = _find_ratio(got, wanted)
    if ratio <= tolerance:
        return 1.0
    return 0.0 if isnan(ratio) else max(0.0, 1.0 - ratio)  # infinite numbers have no ratio


def _find_ratio(got: float, wanted: float) -> float:
    """Return the difference as a share of `wanted`, of numbers that no float holds."""
    context = Context(Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
    try:
        right = exact_number(wanted)
        return float(context.divide(context.subtract(right, exact_number(got)), right).copy_abs())
    except InvalidOperation:
        return nan


def _divide(matched: float, total: int) -> float:
    return matched / total if total else 1.0


EVALUATOR = RowEvaluator(
    name="JsonSimilarity",
    summary="How much of the expected JSON value the answer has, leaf by leaf.",
    aliases=("json_similarity", "uipath-json-similarity"),
    needs=("response", "expected_response"),
    json_fields=("response", "expected_response"),
    options=JsonSimilarityOptions,
    threshold=0.5,
    judge=measure_similarity,
    version=2,
)
