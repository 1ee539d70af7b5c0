"""The two sides of a comparison: split alike, found equal without a token, and told in details."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evaluators.text.columns import compose, fold_case
from evaluators.text.tokenising import split_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from evaluators.text.tokenising import Way
    from evaluators.text.tokens import Tokens

SIDES = ("response", "expected_response")


def split_sides(frame: pl.DataFrame, kind: Way, case_sensitive: bool) -> tuple[Tokens, Tokens]:
    """Split answer and reference."""
    response, expected = (split_tokens(frame[side], kind, case_sensitive) for side in SIDES)
    return response, expected


def find_equal(frame: pl.DataFrame, among: NDArray[np.bool_], case_sensitive: bool) -> NDArray[np.bool_]:
    """Say which rows of `among` hold equal texts after NFC, case folding and without space around them.

    Texts without tokens cannot be told apart by them; so few rows are looked at that this costs nothing.
    """
    equal = np.zeros(len(among), np.bool_)
    rows = np.flatnonzero(among)
    if len(rows):
        texts = compose(frame.select(SIDES)[rows])
        texts = texts if case_sensitive else fold_case(texts)
        response, expected = (pl.col(side).str.strip_chars() for side in SIDES)
        equal[rows] = texts.select(response == expected).to_series().to_numpy()
    return equal


def tell_scores(
    score: NDArray[np.float64], parts: Mapping[str, NDArray[np.generic]], facts: Mapping[str, str | bool]
) -> pl.DataFrame:
    """Return the scores, and details of the parts they are made of and of what holds for all rows."""
    frame = pl.DataFrame({"score": score, **parts})
    constant = [pl.lit(value).alias(name) for name, value in facts.items()]
    details = pl.struct(*parts, *constant).struct.json_encode().alias("details_json")

    return frame.select("score", details)
