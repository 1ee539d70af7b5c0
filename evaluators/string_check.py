"""StringCheck: one comparison of two texts, as the grader string_check of OpenAI."""

from __future__ import annotations

from typing import Literal, Self

import polars as pl
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import ColumnEvaluator, Options
from evaluators.text import fold_case

_REGEX_SIGNS = ".^$*+?{}[]()|#&-~"
_LIKE = {
    r"\\": r"\\",
    r"\%": "%",
    r"\_": "_",
    "\\": r"\\",
    "%": ".*",
    "_": ".",
    **{sign: f"\\{sign}" for sign in _REGEX_SIGNS},
}
"""Parts of a LIKE pattern, escaped ones first, and the regular expressions they stand for."""


class StringCheckOptions(Options):
    """Options of StringCheck."""

    operation: Literal["eq", "ne", "like", "ilike"] = Field(
        description="eq: equal; ne: not equal; like: the answer contains the reference; ilike: in any case"
    )
    wildcards: bool = Field(
        default=False,
        description="whether like and ilike take the reference as a pattern of SQL for the whole answer: %"
        r" is any text, _ one character, a \ takes the meaning of either away",
    )

    @property
    def keeps_blank(self) -> bool:
        """A blank reference is compared like any other."""
        return True

    @model_validator(mode="after")
    def _check_wildcards(self) -> Self:
        if self.wildcards and self.operation not in {"like", "ilike"}:
            raise PydanticCustomError("wildcards", "wildcards with the operations like and ilike alone")
        return self


def measure_check(options: StringCheckOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the comparison holds, else 0. White space and case count, but for `ilike`.

    A LIKE pattern too large for the regex engine makes its row an error.
    """
    texts = frame.select("response", "expected_response")
    if options.operation == "ilike":
        texts = fold_case(texts)
    response, reference = pl.col("response"), pl.col("expected_response")
    if options.wildcards:
        return _match_patterns(texts)
    match options.operation:
        case "eq":
            holds = response == reference
        case "ne":
            holds = response != reference
        case "like" | "ilike":
            holds = response.str.contains(reference, literal=True)
    return texts.select(score=holds.cast(pl.Float64))


def _match_patterns(texts: pl.DataFrame) -> pl.DataFrame:
    pattern = pl.col("expected_response").str.replace_many(list(_LIKE), list(_LIKE.values()), leftmost=True)
    whole = pl.concat_str(pl.lit(r"(?s)\A(?:"), pattern, pl.lit(r")\z"))
    matched = texts.select(score=pl.col("response").str.contains(whole, strict=False).cast(pl.Float64))
    failed = pl.when(pl.col("score").is_null())
    return matched.with_columns(
        error_code=failed.then(pl.lit("pattern_too_large")),
        error_message=failed.then(pl.lit("the reference is too large for a LIKE pattern")),
    )


EVALUATOR = ColumnEvaluator(
    name="StringCheck",
    summary="Whether the answer equals or contains the reference: eq, ne, like, ilike.",
    aliases=("string_check", "stringCheck"),
    needs=("response", "expected_response"),
    options=StringCheckOptions,
    templates={"input": "response", "reference": "expected_response"},
    threshold_names=("threshold", "pass_threshold"),
    measure=measure_check,
)
