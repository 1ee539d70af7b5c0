"""NumericMatch: whether the answer names the expected number."""

from __future__ import annotations

from typing import Literal

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options
from evaluators.numbers import Locale, Which, read_numbers

_ULPS = 2.0**-50  # of the larger number, by which a difference may miss a tolerance: floats are rounded


class NumericMatchOptions(Options):
    """Options of NumericMatch."""

    which: Which = Field(
        default="last", description="which number of several counts; only: several are a mismatch"
    )
    locale: Locale = Field(
        default="auto",
        description="how the answer writes numbers; en: 1,234.56; de: 1.234,56; auto: either, 1,234 as en",
    )
    reference_locale: Locale = Field(
        default="auto", description="the same for the expected answer; numbers of JSON data are en"
    )
    absolute: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="largest difference that passes"
    )
    relative: float = Field(
        default=0.0, ge=0, allow_inf_nan=False, description="the same as a share of the expected number"
    )
    percent: Literal["fraction", "ignore"] = Field(
        default="fraction", description="whether 50% is 0.5 or 50; the sign counts on both sides alike"
    )


def measure_numbers(options: NumericMatchOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the numbers differ by no more than the larger of both tolerances, else 0.

    Without a tolerance they have to be equal; from 2**53 on, where floats are coarse, to the last digit:
    1e30 is 1 with 30 zeros, and 1e400 is not 2e400. An answer without
    a number is a mismatch; an expected answer without one, or with several where only one may be, makes its
    row an error. See `read_numbers` for what a number is.
    """
    fractions = options.percent == "fraction"
    sides: dict[str, Locale] = {"response": options.locale, "expected_response": options.reference_locale}
    given, wanted = (
        read_numbers(frame[side], locale, options.which, fractions=fractions)
        for side, locale in sides.items()
    )
    rows = frame.select("absolute", "relative").hstack(given)
    rows = rows.hstack(wanted.select(pl.all().name.prefix("wanted_")))
    one = options.which == "only"
    return rows.with_columns(close=_compare(), gap=_find_gap(one=one), fault=_find_fault(one=one)).select(
        score=(pl.col("close") & pl.col("gap").is_null()).cast(pl.Float64),
        reason=pl.coalesce("gap", pl.when(~pl.col("close")).then(_explain())),
        details_json=pl.struct(number="value", expected="wanted_value").struct.json_encode(),
        error_code=pl.when(pl.col("fault").is_not_null()).then(pl.lit("no_reference_number")),
        error_message="fault",
    )


def _compare() -> pl.Expr:
    value, wanted = pl.col("value"), pl.col("wanted_value")
    absolute, relative = pl.col("absolute"), pl.col("relative")
    allowed = pl.max_horizontal(absolute, relative * wanted.abs())
    slack = pl.max_horizontal(value.abs(), wanted.abs()) * _ULPS
    near = (
        (allowed > 0) & value.is_finite() & wanted.is_finite() & ((value - wanted).abs() <= allowed + slack)
    )
    equal = (value == wanted) & pl.col("digits").eq_missing(pl.col("wanted_digits"))
    return (near | equal).fill_null(value=False)


def _find_gap(*, one: bool) -> pl.Expr:
    count = pl.col("count")
    several = (count > 1) & pl.lit(one)
    return (
        pl.when(count == 0)
        .then(pl.lit("no number in the answer"))
        .when(several)
        .then(pl.format("{} numbers in the answer", count))
    )


def _find_fault(*, one: bool) -> pl.Expr:
    count = pl.col("wanted_count")
    several = (count > 1) & pl.lit(one)
    return (
        pl.when(count == 0)
        .then(pl.lit("no number in the expected answer"))
        .when(several)
        .then(pl.format("{} numbers in the expected answer", count))
    )


def _explain() -> pl.Expr:
    sides = [
        pl.when(pl.col(f"{side}digits").fill_null("0") == "0")
        .then(pl.col(f"{side}value").cast(pl.String))
        .otherwise(pl.col(f"{side}written"))
        for side in ("", "wanted_")
    ]
    return pl.format("{} is not {}", *sides)


EVALUATOR = ColumnEvaluator(
    name="NumericMatch",
    summary="Whether the answer names the expected number, within a tolerance.",
    aliases=("numeric_match", "numericMatch"),
    needs=("response", "expected_response"),
    options=NumericMatchOptions,
    row_options={"absolute": pl.Float64(), "relative": pl.Float64()},
    measure=measure_numbers,
    version=2,
)
