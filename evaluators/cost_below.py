"""CostBelow: whether the answer was cheap enough."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options
from evaluators.latency_below import measure_limit


class CostBelowOptions(Options):
    """Options of CostBelow."""

    max_usd: float = Field(ge=0, allow_inf_nan=False, description="most US dollars that pass")


def measure_cost(_options: CostBelowOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score 1 where the answer cost at most `max_usd` US dollars, else 0."""
    return measure_limit(frame, "cost_usd", "max_usd")


EVALUATOR = ColumnEvaluator(
    name="CostBelow",
    summary="Whether the answer cost no more than a limit.",
    aliases=("cost_below", "costBelow"),
    needs=("cost_usd",),
    options=CostBelowOptions,
    row_options={"max_usd": pl.Float64()},
    measure=measure_cost,
)
