"""JsonEquals: whether two JSON values are the same."""

from __future__ import annotations

from collections import Counter
from math import isinf
from typing import TYPE_CHECKING, Final, TypeAlias, TypeGuard

from pydantic import Field

from assay.contracts.json_text import Number, dump_json
from assay.errors import CallError, ConfigError
from evaluators.confusion import Aggregator, read_pairs
from evaluators.contract import RowEvaluator, Verdict
from evaluators.output_sides import (
    OutputOptions,
    align_sides,
    judge_lines,
    read_side,
    same_number,
    split_lines,
    tell_compat,
    to_python,
    write_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Aggregate, Fields

MAX_SHOWN = 60  # characters of a value in a reason


class _Absent:
    """Stands for a member that one side does not have."""


_ABSENT: Final = _Absent()
_Member: TypeAlias = "JsonValue | _Absent"
_Pair: TypeAlias = "tuple[str, _Member, _Member]"


class JsonEqualsOptions(OutputOptions):
    """Options of JsonEquals."""

    case_sensitive: bool = Field(
        default=True, description="whether upper and lower case differ in texts; keys are always exact"
    )
    negated: bool = Field(default=False, description="pass where the values differ")
    aggregators: list[Aggregator] = Field(
        default_factory=list[Aggregator],
        description="figures over all rows that take the values as classes: precision, recall, fscore, "
        "confusion_matrix, each with its classes, averaging (macro, micro) and f_value",
    )

    def check_setup(self) -> None:
        """Refuse aggregators beside options that leave no class to count, and equal ones.

        Raises:
            ConfigError: As said.
        """
        super().check_setup()
        if not self.aggregators:
            return
        others = {
            "case_sensitive": self.case_sensitive,
            "negated": self.negated,
            "line_by_line": self.line_by_line,
        }
        beside = [name for name, on in others.items() if on]
        if beside:
            raise ConfigError(
                f"JsonEquals.aggregators: classes have no case and no lines; set {beside[0]}: false"
            )
        twice = [
            name for name, count in Counter(each.metric for each in self.aggregators).items() if count > 1
        ]
        if twice:
            raise ConfigError(f"JsonEquals.aggregators: {twice[0]} stands there twice")


def compare_values(options: JsonEqualsOptions, fields: Fields) -> Verdict:
    """Score 1 where both fields hold the same JSON value, else 0 with the first difference as reason.

    A field that is not strict JSON is taken as text. Numbers are compared by value (1 equals 1.0, whole ones
    of any size exactly, 1e400 is not 2e400), a boolean is no number, the order counts in lists but not in
    objects. Where whole fields are texts, they are read as the JSON they hold: the text "8" equals 8.0.

    Raises:
        CallError: `missing_field`, when a side lacks the part that is to be compared.
    """
    return tell_compat(options, _compare(options, fields))


def _compare(options: JsonEqualsOptions, fields: Fields) -> Verdict:
    try:
        got, wanted = (read_side(options, fields, name) for name in ("response", "expected_response"))
    except CallError:
        if options.compat != "uipath-legacy":
            raise
        got, wanted = {}, {}  # unresolved on either side, UiPath's older evaluator compares nothing
    if options.line_by_line and _has_lines(options, got, wanted):
        return _compare_lines(options, got, wanted)
    difference = _differ(options, got, wanted)
    details = None
    if options.aggregators:
        write = str if options.compat else write_text
        details = {"expected_class": write(wanted), "actual_class": write(got)}
    return Verdict(score=float((difference is None) != options.negated), reason=difference, details=details)


def _has_lines(options: JsonEqualsOptions, got: JsonValue, wanted: JsonValue) -> bool:
    if options.compat:
        return not isinstance(options.target_output_key, list)
    return isinstance(got, str) and isinstance(wanted, str)


def _compare_lines(options: JsonEqualsOptions, got: JsonValue, wanted: JsonValue) -> Verdict:
    def score(left: str, right: str) -> float:
        return float((_differ(options, left, right) is None) != options.negated)

    exact = options.compat is not None
    texts = [str(to_python(each)) if exact else write_text(each) for each in (got, wanted)]
    left, right = (split_lines(text, options.line_delimiter, exact=exact) for text in texts)
    return judge_lines(left, right, score, empty=0.0 if exact else score("", ""))


def _differ(options: JsonEqualsOptions, got: JsonValue, wanted: JsonValue) -> str | None:
    """Describe the first difference under the options, None when there is none."""
    exact = options.case_sensitive
    if options.compat:
        same = _equal_python if options.compat == "uipath" else _equal_canonical
        left, right = to_python(got), to_python(wanted)
        return None if same(left, right, case_sensitive=exact) else _describe(got, wanted, left, right)
    return find_difference(*align_sides(got, wanted, case_sensitive=exact), case_sensitive=exact)


def _describe(got: JsonValue, wanted: JsonValue, left: JsonValue, right: JsonValue) -> str:
    """Say where two values that UiPath tells apart differ, as it sees them inside objects and lists."""
    if isinstance(got, dict | list) and isinstance(wanted, dict | list):
        found = find_difference(left, right, case_sensitive=True)
        if found is not None:
            return found
    return f"$: expected {_show(wanted)}, got {_show(got)}"


def _equal_python(got: JsonValue, wanted: JsonValue, *, case_sensitive: bool) -> bool:
    """Compare as UiPath does: as Python's texts where one side is a text, else as Python's values."""
    if not isinstance(got, str) and not isinstance(wanted, str):
        return got == wanted
    left, right = str(got), str(wanted)
    return left == right if case_sensitive else left.lower() == right.lower()


def _equal_canonical(got: JsonValue, wanted: JsonValue, *, case_sensitive: bool) -> bool:
    """Compare as UiPath's older evaluator does, where case always counts and true is not 1."""
    del case_sensitive
    return find_difference(got, wanted, case_sensitive=True) is None


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
    if _is_number(left) and _is_number(right):
        return same_number(left, right)
    return type(left) is type(right) and left == right


def _is_number(value: _Member) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _show(value: _Member) -> str:
    if isinstance(value, _Absent):
        return "nothing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    vast = isinstance(value, float) and isinf(value) and not isinstance(value, Number)
    text = str(value) if vast else dump_json(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def sum_up(options: JsonEqualsOptions, rows: pl.DataFrame) -> Sequence[Aggregate]:
    """Return the figures that the aggregators ask for; rows that were not compared do not count."""
    pairs = read_pairs(rows)
    return [each.count(pairs, exact=options.compat is not None) for each in options.aggregators]


EVALUATOR = RowEvaluator(
    name="JsonEquals",
    summary="Whether the answer and the expected answer are the same JSON value.",
    aliases=("json_equals", "uipath-exact-match"),
    needs=("response", "expected_response"),
    json_fields=("response", "expected_response"),
    options=JsonEqualsOptions,
    judge=compare_values,
    aggregate=sum_up,
    version=3,
)
