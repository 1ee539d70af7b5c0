"""Target `stored`: the answers are in the dataset already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.tables import Status, conform
from assay.targets.contract import ANSWERS, TargetKind
from assay.targets.messages import list_calls, read_text

if TYPE_CHECKING:
    from assay.targets.contract import Work


class StoredTarget:
    """Hands on the stored answers; a turn without one is an error `no_response`."""

    async def fetch_samples(self, items: pl.DataFrame, work: Work) -> pl.DataFrame:
        """Take `response`; where it is null, the text of `output_items_json`, if items carry that.

        The tool calls are those among the output items, else `tool_calls_json`.
        """
        for column in ("output_items_json", "tool_calls_json"):
            if column not in items.columns:
                items = items.with_columns(pl.lit(None, pl.String).alias(column))
        output_items = pl.col("output_items_json")
        unread = pl.when(pl.col("response").is_null()).then(output_items)
        answered = items.select(
            "item_id",
            "turn",
            "output_items_json",
            trial=pl.lit(0),
            output_text=pl.coalesce("response", unread.map_elements(read_text, return_dtype=pl.String)),
            tool_calls_json=pl.coalesce(
                output_items.map_elements(list_calls, return_dtype=pl.String), "tool_calls_json"
            ),
            attempts=pl.lit(0),
            from_ledger=pl.lit(value=False),
        )
        absent = pl.col("output_text").is_null()
        answers = answered.with_columns(
            status=pl.when(absent).then(pl.lit("error")).otherwise(pl.lit("ok")).cast(Status),
            error_code=pl.when(absent).then(pl.lit("no_response")),
            error_message=pl.when(absent).then(pl.lit("no stored response")),
        )
        for ok in answers["output_text"].is_not_null():
            work.on_done(ok)
        return conform(answers, ANSWERS)

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


KIND = TargetKind("stored", "takes the answers that the dataset holds; no model is called", None)
