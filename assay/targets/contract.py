"""What a target is: something that answers every turn of whole conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from assay.contracts.tables import SAMPLES, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from assay.config import RunConfig

ANSWERS = Table(
    name="answers",
    columns={name: dtype for name, dtype in SAMPLES.columns.items() if name != "run_id"},
    nullable=SAMPLES.nullable,
    key=tuple(name for name in SAMPLES.key if name != "run_id"),
)


class Target(Protocol):
    """Where answers come from; used for one run, then closed."""

    async def fetch_samples(self, items: pl.DataFrame, on_done: Callable[[bool], None]) -> pl.DataFrame:
        """Answer every turn.

        Args:
            items: Table ITEMS: whole conversations, turns ascending. A column `output_items_json`
                may come with it.
            on_done: Called once per turn, as answers arrive, with whether the turn is ok.

        Returns:
            Table ANSWERS, which is SAMPLES without `run_id`: trial 0, one row per row of `items` in
            the same order. A failed turn is a row with status `error` or `skipped`.

        Raises:
            EndpointError: Key, model or URL are wrong; no further call makes sense.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


@dataclass(frozen=True, slots=True)
class TargetKind:
    """One kind of target.

    Attributes:
        name: Name in the configuration.
        summary: One sentence for lists and help.
        build: From a configuration to a target; raises ConfigError before anything is sent.
    """

    name: str
    summary: str
    build: Callable[[RunConfig], Target]
