from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


@pytest.mark.parametrize(
    ("response", "reference"),
    [
        ("The answer is 1,234.56.", "1234.56"),
        ("1.234,56 \u20ac", "1234.56"),
        ("12.345.678", "12345678"),
        ("1'234.5", "1234.5"),
        ("1\u202f234,5", "1234.5"),
        ("0,125", "0.125"),
        ("3,14", "3.14"),
        ("1,234", "1234"),
        ("1.234", "1.234"),
        ("3-5 days", "5"),
        ("x=-7", "-7"),
        ("\u22127", "-7"),
        ("-$5.50", "-5.5"),
        ("$-5.50", "-5.5"),
        ("+5", "5"),
        ("\uff14\uff12", "42"),
        ("\u0663\u066b\u0665", "3.5"),
        ("6.02e23", "602e21"),
        ("1e-5", "0.00001"),
        ("2E+3 m", "2000"),
        (".5", "0.5"),
        ("50%", "0.5"),
        ("5.1 %", "0.051"),
        ("about .5%", "0.005"),
        ("on 2024.01.15", "15"),
        ("007", "7"),
        ("-0", "0"),
        ("12345678901234567890", "+12345678901234567890"),
        ("1e30", f"1{'0' * 30}"),
        ("10000000000000000.0", "10000000000000000"),
        ("1e400", f"10{'0' * 399}.00"),
        ("-0.001e19", "-1e16"),
        ("1e18%", "1e16"),
        ("0e5", "-0.00"),
        (f"1e{'9' * 30}", f"1e{'9' * 30}"),
        ("\U0001ccf1 \U00010d41 5", "5"),  # digits of scripts that Python does not read
    ],
)
def test_one_number_is_written_in_many_ways(
    score: Callable[..., pl.DataFrame], response: str, reference: str
) -> None:
    result = score("NumericMatch", {"response": [response], "expected_response": [reference]})
    assert (result["score"].item(), result["reason"].item()) == (1.0, None)


@pytest.mark.parametrize(
    ("response", "reference", "options", "reason"),
    [
        ("seven", "7", {}, "no number in the answer"),
        ("8", "7", {}, "8.0 is not 7.0"),
        (
            "12345678901234567891",
            "12345678901234567890",
            {},
            "12345678901234567891 is not 12345678901234567890",
        ),
        ("7 of 9", "7", {}, "9.0 is not 7.0"),
        ("7 of 9", "7", {"which": "only"}, "2 numbers in the answer"),
        ("50%", "50", {}, "0.5 is not 50.0"),
        ("1,234", "1.234", {"locale": "en"}, "1234.0 is not 1.234"),
        ("1.234", "1.234", {"locale": "de"}, "1234.0 is not 1.234"),
        ("3,14", "3.14", {"locale": "en"}, "14.0 is not 3.14"),
        ("1e400", "2e500", {}, "1e400 is not 2e500"),
        ("1e400", "-1e400", {}, "1e400 is not -1e400"),
        ("9007199254740993.0", "9007199254740992", {}, "9007199254740993.0 is not 9007199254740992"),
        (f"1e{'9' * 30}", f"2e{'9' * 30}", {}, f"1e{'9' * 30} is not 2e{'9' * 30}"),
        ("\U0001ccf1", "7", {}, "no number in the answer"),
        ("1e999", "5", {"relative": 9.0}, "1e999 is not 5.0"),
    ],
)
def test_another_number_is_a_mismatch_with_its_reason(
    score: Callable[..., pl.DataFrame], response: str, reference: str, options: dict[str, Any], reason: str
) -> None:
    rows = {"response": [response], "expected_response": [reference]}
    result = score("NumericMatch", rows, **options)
    assert (result["score"].item(), result["reason"].item()) == (0.0, reason)


@pytest.mark.parametrize(
    ("response", "reference", "options", "wanted"),
    [
        ("7 of 9", "7", {"which": "first"}, 1.0),
        ("50%", "50", {"percent": "ignore"}, 1.0),
        ("1.234", "1234", {"locale": "de"}, 1.0),
        ("1234", "1.234", {"reference_locale": "de"}, 1.0),
        ("1.1", "1.0", {"absolute": 0.1}, 1.0),
        ("1.1001", "1.0", {"absolute": 0.1}, 0.0),
        ("0.30000000000000004", "0.3", {}, 0.0),
        ("110", "100", {"relative": 0.1}, 1.0),
        ("-110", "-100", {"relative": 0.1}, 1.0),
        ("111", "100", {"relative": 0.1}, 0.0),
        ("111", "100", {"relative": 0.1, "absolute": 11}, 1.0),
    ],
)
def test_options_say_which_number_and_how_near(
    score: Callable[..., pl.DataFrame], response: str, reference: str, options: dict[str, Any], wanted: float
) -> None:
    rows = {"response": [response], "expected_response": [reference]}
    assert score("NumericMatch", rows, **options)["score"].item() == wanted


def test_a_reference_without_its_number_is_an_error(score: Callable[..., pl.DataFrame]) -> None:
    rows = {"response": ["1"] * 3, "expected_response": ["one", "1 or 2", None]}
    result = score("NumericMatch", rows, which="only")
    assert result["status"].to_list() == ["error", "error", "skipped"]
    assert result["error_code"].to_list() == ["no_reference_number"] * 2 + [None]
    assert result["error_message"].to_list() == [
        "no number in the expected answer",
        "2 numbers in the expected answer",
        None,
    ]


@pytest.mark.parametrize("options", [{"absolute": -1}, {"relative": float("nan")}, {"locale": "fr"}])
def test_options_without_sense_are_refused(
    score: Callable[..., pl.DataFrame], options: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match="NumericMatch"):
        score("NumericMatch", {"response": ["1"], "expected_response": ["1"]}, **options)


NUMBERS = st.integers(-(10**30), 10**30) | st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBERS, st.sampled_from(["{}", "x {} y", "= {}.", "{},", "1 {}"]))
def test_every_number_that_python_writes_is_found(
    score: Callable[..., pl.DataFrame], number: float, frame: str
) -> None:
    rows = {"response": [frame.format(number)], "expected_response": [str(number)]}
    result = score("NumericMatch", rows)
    assert (result["score"].item(), result["reason"].item()) == (1.0, None)


@given(st.integers(-(10**15), 10**15), st.integers(0, 99))
def test_both_locales_read_what_they_write(
    score: Callable[..., pl.DataFrame], whole: int, cents: int
) -> None:
    english = f"{whole:,}.{cents:02}"
    german = english.translate(str.maketrans(".,", ",."))
    rows = {"response": [english], "expected_response": [german]}
    for locale in ("en", "auto"):
        result = score("NumericMatch", rows, locale=locale, reference_locale="de")
        assert result["score"].item() == 1.0


@given(st.text("0123456789.,'-+eE%$ a\u2212\uff11", max_size=12))
def test_any_text_is_scored(score: Callable[..., pl.DataFrame], text: str) -> None:
    for locale in ("en", "de", "auto"):
        rows = {"response": [text], "expected_response": ["1"]}
        result = score("NumericMatch", rows, locale=locale)
        assert result["status"].item() == "ok"
        assert result["score"].item() in {0.0, 1.0}
