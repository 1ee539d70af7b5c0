from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.contracts.json_text import dump_json
from assay.errors import CallError
from evaluators.uipath_contains import EVALUATOR, UiPathContainsOptions, find_text


def find(output: str, needle: str, **options: Any) -> float | None:
    fields = {"response": output, "expected_response": needle}
    return find_text(UiPathContainsOptions.model_validate(options), fields).score


@pytest.mark.parametrize(
    ("output", "needle", "found"),
    [
        ('"all OK"', "ok", 1.0),
        ("all OK", "ok", 1.0),
        ('"STRASSE"', "stra\u00dfe", 1.0),
        ('{"r":"all"}', '"r":"all"', 1.0),
        ('{"r":"all","n":[1,2]}', '"n": [1, 2]', 1.0),
        ('{"r":"all"}', "'r'", 0.0),
        ("8", "8", 1.0),
        ("8", "8.0", 0.0),
        ("1.10", "1.10", 1.0),
        ("true", "TRUE", 1.0),
    ],
)
def test_outputs_are_searched_as_text_or_json(output: str, needle: str, found: float) -> None:
    assert find(output, needle) == found
    assert find(output, needle, negated=True) == 1 - found


def test_case_counts_when_it_is_to() -> None:
    assert find('"all OK"', "ok", case_sensitive=True) == 0.0
    assert find('"all OK"', "OK", case_sensitive=True) == 1.0


def test_every_line_is_searched_for_the_whole_text() -> None:
    assert find("abc\nxyz", "a", line_by_line=True) == 0.5
    assert find("a b\r\na\n\n", "a", line_by_line=True) == 1.0
    assert find("a;b", "a", line_by_line=True, line_delimiter=";") == 0.5
    assert find("\n", "a", line_by_line=True) == 0.0
    assert find('{"r":"a\\nb"}', "a", line_by_line=True) == 1.0


def test_parts_of_the_output_can_be_selected() -> None:
    assert find('{"a":"x","b":"z"}', "z", target_output_key="a") == 0.0
    assert find('{"a":"x","b":"z"}', "z", target_output_key=["a", "b"]) == 1.0
    with pytest.raises(CallError, match="response has no 'c'"):
        find('{"a":"x"}', "x", target_output_key="c")


def test_a_blank_text_is_looked_for_in_compat_alone() -> None:
    assert not UiPathContainsOptions().keeps_blank
    assert UiPathContainsOptions(compat="uipath").keeps_blank
    assert EVALUATOR.aliases == ("uipath-contains",)


def test_compat_is_told_in_the_details() -> None:
    fields = {"response": "abc", "expected_response": "b"}
    assert find_text(UiPathContainsOptions(compat="uipath"), fields).details == {"compat": "uipath"}
    assert find_text(UiPathContainsOptions(), fields).details is None


@given(st.text(), st.text(), st.text())
def test_a_text_contains_each_of_its_parts(before: str, needle: str, after: str) -> None:
    assert find(dump_json(before + needle + after), needle, case_sensitive=True) == 1.0
