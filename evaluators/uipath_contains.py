"""UiPathContains: whether the output of an agent holds a text, whatever JSON the output is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import Field

from assay.contracts.json_text import dump_json
from evaluators.contract import RowEvaluator, Verdict
from evaluators.output_sides import OutputOptions, judge_lines, read_side, split_lines, tell_compat, to_python

if TYPE_CHECKING:
    from assay.contracts.json_text import JsonValue
    from evaluators.contract import Fields


class UiPathContainsOptions(OutputOptions):
    """Options of UiPathContains."""

    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")
    negated: bool = Field(default=False, description="pass where the text is absent")


def find_text(options: UiPathContainsOptions, fields: Fields) -> Verdict:
    """Score 1 where the expected text stands in the output (or, negated, does not), else 0.

    A text is searched as it is; any other value as JSON, with and without spaces after commas and colons.
    By line every line of the output is searched for the whole text; `compat` counts lines of the text
    beyond those of the output as empty ones, and searches what Python would print.

    Raises:
        CallError: `missing_field`, when the output lacks the part that is to be searched.
    """
    return tell_compat(options, _find(options, fields))


def _find(options: UiPathContainsOptions, fields: Fields) -> Verdict:
    output, needle = read_side(options, fields, "response"), fields["expected_response"] or ""
    exact = options.compat is not None
    forms = [str(to_python(output))] if exact else _write_forms(output)
    lines = options.line_by_line and not isinstance(options.target_output_key, list)
    if not lines or not (exact or isinstance(output, str)):
        return Verdict(score=_search(options, forms, needle))
    got = split_lines(forms[0], options.line_delimiter, exact=exact)
    wanted = split_lines(needle, options.line_delimiter, exact=exact) if exact else []
    whole = 0.0 if exact else _search(options, forms, needle)
    return judge_lines(got, wanted, lambda line, _: _search(options, [line], needle), empty=whole)


def _write_forms(value: JsonValue) -> list[str]:
    if isinstance(value, str):
        return [value]
    compact = dump_json(value)
    if not isinstance(value, dict | list):
        return [compact]
    return [compact, json.dumps(value, ensure_ascii=False)]


def _search(options: UiPathContainsOptions, forms: list[str], needle: str) -> float:
    if not options.case_sensitive:
        fold = str.lower if options.compat else str.casefold
        forms, needle = [fold(form) for form in forms], fold(needle)
    return float(any(needle in form for form in forms) != options.negated)


EVALUATOR = RowEvaluator(
    name="UiPathContains",
    summary="Whether the output of an agent contains the expected text, as a whole or line by line.",
    aliases=("uipath-contains",),
    needs=("response", "expected_response"),
    json_fields=("response",),
    options=UiPathContainsOptions,
    judge=find_text,
)
