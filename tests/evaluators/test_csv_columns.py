from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import CallError
from evaluators.csv_columns import CsvColumnsOptions, compare_columns

if TYPE_CHECKING:
    from evaluators.contract import Verdict

EXPECTED = "Name,Age,City\nAda,36,London\nBob,41,Paris"
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(
    lambda text: bool(text.strip())
)


def compare(got: str, expected: str = EXPECTED, **options: Any) -> Verdict:
    fields = {"response": json.dumps(got), "expected_response": json.dumps(expected)}
    return compare_columns(CsvColumnsOptions.model_validate(options), fields)


def write_csv(rows: list[list[str]]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "got",
    [
        EXPECTED,
        "City,name,AGE\nLondon, Ada ,36\r\n\nParis,Bob,41\n",
        'age,name,city,more\n36,"Ada","London",x\n41,Bob,Paris,"y\nz"',
        f"\ufeff{EXPECTED}",
    ],
)
def test_order_of_columns_spaces_and_further_columns_do_not_count(got: str) -> None:
    assert compare(got).score == 1.0


@pytest.mark.parametrize(
    ("got", "reason"),
    [
        ("Name,Age,City\nAda,36,London\nBob,42,Paris", "row 2: expected ('Bob', '41', 'Paris')"),
        ("Name,Age,City\nada,36,London\nBob,41,Paris", "row 1: expected ('Ada', '36', 'London')"),
        ("Name,Age,City\nAda,36,London", "1 rows, 2 expected"),
        ("Name,Age\nAda,36\nBob,41", "no column 'city'"),
        ("no table at all", "no column 'name'"),
        ("", "no column 'name'"),
    ],
)
def test_the_reason_names_what_differs(got: str, reason: str) -> None:
    verdict = compare(got)
    assert verdict.score == 0.0
    assert (verdict.reason or "").startswith(reason)


def test_only_the_named_columns_count() -> None:
    got = "name,age\nADA,36\nBob,1"
    assert compare(got, columns=["Name"], case_sensitive=False).score == 1.0
    assert compare(got, columns=["Name"]).score == 0.0
    assert compare("name;age\nAda;36", "Name;Age\nAda;36", separator=";").score == 1.0


def test_by_line_rows_are_compared_in_pairs() -> None:
    verdict = compare("name\nA\nX", "name\nA\nB\nC", line_by_line=True)
    assert verdict.score == pytest.approx(1 / 3)
    assert verdict.reason == "lines that differ: 2, 3"
    assert compare('a,b\n"x,y",z', 'a,b\nx,"y,z"', line_by_line=True).score == 0.0
    assert compare("a", "a", line_by_line=True).score == 1.0


def test_the_content_of_an_answer_object_is_its_text() -> None:
    fields = {"response": json.dumps({"content": EXPECTED}), "expected_response": EXPECTED}
    assert compare_columns(CsvColumnsOptions(), fields).score == 1.0


def test_an_expected_text_without_the_columns_is_an_error() -> None:
    with pytest.raises(CallError, match=r"bad_csv: no column 'zip'"):
        compare(EXPECTED, columns=["zip"])


def test_compat_compares_the_first_row_alone_and_takes_faults_for_errors() -> None:
    assert compare("Name\nAda\nX", "Name\nAda\nBob", columns=["Name"], compat="uipath-legacy").score == 1.0
    for got in ("Name", "Age\n1", ""):
        with pytest.raises(CallError, match="bad_csv"):
            compare(got, "Name\nAda", columns=["Name"], compat="uipath-legacy")


def test_a_header_with_a_column_twice_is_an_error_where_it_counts() -> None:
    for got, expected in (("n, N\n1,2", "n\n1"), ("n\n1", "n,n\n1,2"), ("n,n\n1,2", "n,n\n1,2")):
        with pytest.raises(CallError, match="duplicate_column: column 'n' stands in the header twice"):
            compare(got, expected)
    assert compare("n,x,x\n1,2,3", "n\n1").score == 1.0
    assert compare("n,n\n1,2", "n\n2", columns=["n"], compat="uipath-legacy").score == 1.0


def test_long_cells_are_read() -> None:
    table = f"n\n{'x' * 200_000}"
    assert compare(table, table).score == 1.0
    assert compare(table, f"{table}y").score == 0.0


def test_compat_is_told_in_the_details() -> None:
    assert compare("n\n1", "n\n1", columns=["n"], compat="uipath-legacy").details == {
        "compat": "uipath-legacy"
    }


@given(st.lists(st.lists(NAMES, min_size=2, max_size=2), min_size=1, max_size=4))
def test_every_table_equals_itself(rows: list[list[str]]) -> None:
    text = write_csv([["a", "b"], *rows])
    assert compare(text, text).score == 1.0
    assert compare(text, text, line_by_line=True).score == 1.0
