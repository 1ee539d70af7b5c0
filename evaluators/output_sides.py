"""The two sides of a comparison of outputs as JSON values: read, selected by key, and compared by line."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from math import isinf
from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field

from assay.contracts.json_text import Number, dump_json, parse_json
from assay.datasets.uipath_templates import parse_target, value_at
from assay.errors import CallError, ConfigError
from evaluators.contract import Options, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields

Compat: TypeAlias = Literal["uipath", "uipath-legacy"] | None
MAX_NAMED = 5  # lines that a reason names


class OutputOptions(Options):
    """Options of evaluators that compare the output of an agent with an expected one."""

    compat: Compat = Field(
        default=None,
        description="reproduce the scores of UiPath's coded evaluators (`uipath`) or of its older ones "
        "(`uipath-legacy`), quirks included",
    )
    target_output_key: str | list[str] | None = Field(
        default=None,
        description="the part of both sides that counts, such as `a.b[0]`, or several parts; "
        "without it, and for `*`, all",
    )
    line_by_line: bool = Field(
        default=False,
        description="whether texts are compared line by line; the score is the mean of the lines",
    )
    line_delimiter: str = Field(default="\n", min_length=1, description="what separates lines")

    @property
    def keeps_blank(self) -> bool:
        """In `compat` an empty text is one to compare with or, for UiPathContains, found everywhere."""
        return self.compat is not None

    def check_setup(self) -> None:
        """Refuse lines of several parts, which UiPath leaves out without a word.

        Raises:
            ConfigError: As said.
        """
        if self.line_by_line and isinstance(self.target_output_key, list) and self.compat is None:
            raise ConfigError(
                "line_by_line: several target_output_key are no text; give one key, or leave it out"
            )


def read_side(options: OutputOptions, fields: Fields, name: str) -> JsonValue:
    """Return the part of a field that counts; a field that is not strict JSON is a text.

    Raises:
        CallError: `missing_field`, when the field has no such part.
    """
    value = read_json(fields[name] or "")
    keys = options.target_output_key
    if isinstance(keys, list):
        return {key: _select(value, key, name) for key in keys}
    return value if keys is None else _select(value, keys, name)


def read_json(text: str) -> JsonValue:
    """Return the value that a text writes as strict JSON, else the text itself."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return text


def _select(value: JsonValue, key: str, name: str) -> JsonValue:
    try:
        return value_at(value, parse_target(key))
    except LookupError as error:
        raise CallError("missing_field", f"{name} has no {key!r} (at {error.args[0]!r})") from error


def align_sides(got: JsonValue, wanted: JsonValue, *, case_sensitive: bool) -> tuple[JsonValue, JsonValue]:
    """Read texts as the JSON they hold where both sides are comparable only then.

    Two texts that both hold JSON are read, unless that leaves one a text and the other not. A text against
    anything else is read when it can be.
    """
    if isinstance(got, str) and isinstance(wanted, str):
        read = read_json(got), read_json(wanted)
        return read if isinstance(read[0], str) == isinstance(read[1], str) else (got, wanted)
    if isinstance(got, str):
        return read_json(got if case_sensitive else _fold_literal(got)), wanted
    if isinstance(wanted, str):
        return got, read_json(wanted if case_sensitive else _fold_literal(wanted))
    return got, wanted


def _fold_literal(text: str) -> str:
    """Bring `TRUE` and `Null` into the case JSON has, and leave anything longer alone."""
    folded = text.strip().casefold()
    return folded if folded in {"true", "false", "null"} else text


def write_text(value: JsonValue) -> str:
    """Return a text as it is, any other value as compact JSON."""
    return value if isinstance(value, str) else dump_json(value)


def to_python(value: JsonValue) -> JsonValue:
    """Turn every number into a float, as UiPath does before it compares; booleans stay."""
    match value:
        case dict():
            return {key: to_python(member) for key, member in value.items()}
        case list():
            return [to_python(member) for member in value]
        case bool() | str() | None:
            return value
        case Number():
            return float(value.text)
        case _:
            return float(value)


def same_number(left: float, right: float) -> bool:
    """Whether two numbers have one value: whole ones to the last digit, others as floats.

    A `Number` beyond the range of floats, or too near to 0 for it, counts as it is written.
    """
    if isinstance(left, int) and isinstance(right, int):
        return left == right
    if isinstance(left, float) and isinstance(right, float) and left != right:
        return False
    try:
        exact = exact_number(left), exact_number(right)
    except InvalidOperation:  # an exponent that even a Decimal does not hold
        return str(getattr(left, "text", left)) == str(getattr(right, "text", right))
    if exact[0] == exact[1]:
        return True
    whole = all(each.is_finite() and each == each.to_integral_value() for each in exact)
    return left == right and not whole and not isinf(left) and left != 0


def exact_number(number: float) -> Decimal:
    """Return a number as it is written; a float that does not know how, as Python writes it.

    Raises:
        decimal.InvalidOperation: Its exponent has about twenty digits.
    """
    if isinstance(number, int):
        return Decimal(number)
    return Decimal(number.text if isinstance(number, Number) else repr(number))


def tell_compat(options: OutputOptions, verdict: Verdict) -> Verdict:
    """Put `compat`, where it is set, into the details of a verdict."""
    if options.compat is None:
        return verdict
    return replace(verdict, details={**(verdict.details or {}), "compat": options.compat})


def split_lines(text: str, delimiter: str, *, exact: bool) -> list[str]:
    """Return the lines of a text that are not blank; unless `exact`, without a carriage return at the end."""
    lines = text.split(delimiter)
    kept = lines if exact or delimiter != "\n" else [line.removesuffix("\r") for line in lines]
    return [line for line in kept if line.strip()]


def judge_lines(
    got: Sequence[str], wanted: Sequence[str], score: Callable[[str, str], float], *, empty: float
) -> Verdict:
    """Pair lines by position, a missing one being empty, and score the mean of the pairs.

    Args:
        got: Lines of the answer.
        wanted: Lines that are expected.
        score: Compares one pair, 0 to 1.
        empty: Score when there is no line on either side.

    Returns:
        The mean; details list every pair with its score.
    """
    pairs = list(zip_longest(got, wanted, fillvalue=""))
    scores = [score(left, right) for left, right in pairs]
    lines = [
        {"line": n, "got": left, "expected": right, "score": each}
        for n, ((left, right), each) in enumerate(zip(pairs, scores, strict=True), start=1)
    ]
    short = [str(n) for n, each in enumerate(scores, start=1) if each < 1]
    more = ", …" if len(short) > MAX_NAMED else ""
    reason = f"lines that differ: {', '.join(short[:MAX_NAMED])}{more}" if short else None
    details = {"lines": lines, "got_lines": len(got), "expected_lines": len(wanted)}
    return Verdict(score=sum(scores) / len(scores) if scores else empty, reason=reason, details=details)
