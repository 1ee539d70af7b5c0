"""ForbiddenTerms: whether the answer is free of words that must not be in it."""

from __future__ import annotations

from typing import Any

import polars as pl
from pydantic import Field, field_validator, model_validator

from evaluators.contract import ColumnEvaluator, Options
from evaluators.needles import find_needles, list_needles


class ForbiddenTermsOptions(Options):
    """Options of ForbiddenTerms."""

    terms: list[str] = Field(
        default=[], description="what must not occur, literally; blank terms are passed over"
    )
    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")
    whole_words: bool = Field(
        default=False,
        description="whether a term counts only where no letter, mark, digit or underscore adjoins its own",
    )

    @model_validator(mode="before")
    @classmethod
    def _open_envelope(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Take the options out of the key `options`, where custom evaluators of M365 keep them."""
        inner: Any = given["options"] if set(given) == {"options"} else given
        return inner

    @field_validator("terms")
    @classmethod
    def _sort_terms(cls, terms: list[str]) -> list[str]:
        return sorted({term for term in terms if term.strip()})


def measure_terms(options: ForbiddenTermsOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where no term occurs, else 0 with the terms that do, sorted, as reason and details.

    Without any term nothing is forbidden.
    """
    terms = frame["terms"]
    found = find_needles(
        frame["response"], terms, case_sensitive=options.case_sensitive, whole_words=options.whole_words
    )
    rows = pl.DataFrame({"terms": terms, "found": list_needles(terms, found, wanted=True)})
    broken = pl.col("found").list.len() > 0
    reason = (
        pl.when(broken)
        .then(pl.format("Found forbidden term(s): {}.", pl.col("found").list.join(", ")))
        .when(pl.col("terms").list.len() == 0)
        .then(pl.lit("No forbidden terms configured; nothing to check."))
        .otherwise(pl.lit("No forbidden terms found in the response."))
    )
    details = pl.struct("found").struct.json_encode()
    return rows.select(score=(~broken).cast(pl.Float64), reason=reason, details_json=details)


EVALUATOR = ColumnEvaluator(
    name="ForbiddenTerms",
    summary="Whether the answer is free of given terms.",
    aliases=("forbidden_terms", "forbiddenTerms"),
    needs=("response",),
    options=ForbiddenTermsOptions,
    row_options={"terms": pl.List(pl.String())},
    measure=measure_terms,
)
