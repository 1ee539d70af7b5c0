"""Prepare: the input is read once, checked and planned, and written as the parts that batches read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING

from assay.engine.canaries import open_canaries
from assay.engine.intake import Intake
from assay.engine.ordering import rewrite_parts
from assay.engine.own import open_catalog
from assay.engine.pairing import Comparison
from assay.engine.parting import Part, Parting, RepeatsFoundError, makes_calls
from assay.engine.reuse import pin_reuse
from assay.engine.tools import check_endpoints
from assay.store.catalog import find_run
from assay.store.layout import RunFolder, create_run, open_store
from assay.store.parts import clear_run, discard_run, write_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from assay.config import RunConfig
    from assay.engine.request import RunRequest


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is ready to be worked on.

    Attributes:
        folder: Where it is kept.
        request: What was asked for.
        is_changed: Whether the request is another one than that in the folder.
    """

    folder: RunFolder
    request: RunRequest
    is_changed: bool = False


def prepare(config: RunConfig, on_rows: Callable[[int], None] = lambda _: None) -> Prepared:
    """Read, check and plan a run whole, then write its items and plan to the store.

    Nothing is left when anything is wrong.

    Args:
        config: What is asked for.
        on_rows: Told how many rows were read, part by part.

    Raises:
        SetupError: The input, configuration or selection cannot work.
        StoreError: The store cannot be written.
    """
    preparation = Preparation(config)
    return preparation.complete(on_rows)


def begin(config: RunConfig, on_rows: Callable[[int], None] = lambda _: None) -> Prepared | Preparation:
    """Prepare a run, but leave a long input that no model is asked about to be read while it is scored.

    Returns:
        A prepared run, or a preparation whose input is longer than a batch.

    Raises:
        SetupError: As `prepare`; of a preparation that is handed out only what its beginning shows.
    """
    preparation = Preparation(config)
    if makes_calls(config) or preparation.look_ahead():
        return preparation.complete(on_rows)
    return preparation


class Preparation:
    """A run that is being prepared, part by part."""

    def __init__(self, config: RunConfig) -> None:
        """Check what can be checked without reading a dataset whole.

        Raises:
            SetupError: The input, configuration or selection cannot work.
        """
        self.config = pin_runs(config)
        check_endpoints(self.config)
        open_canaries(self.config, open_catalog(self.config))
        self._started_at = datetime.now(UTC)
        self._folder: RunFolder | None = None
        self._parting = Parting(self.config, Intake(self.config))
        self._cut: Iterator[Part] = self._parting.cut()
        self._comparison = Comparison(self.config)

    @property
    def rows(self) -> int:
        """Rows read so far."""
        return self._parting.counts.turns

    @property
    def folder(self) -> RunFolder:
        """The run's folder, made when it is first asked for."""
        if self._folder is None:
            self._folder = create_run(open_store(self.config.store, create=True), self._started_at)
        return self._folder

    @property
    def title(self) -> str:
        """Names and dialects of the datasets."""
        return self._parting.title

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know of what was read so far."""
        return (*self._parting.warnings, *self._comparison.warnings)

    def look_ahead(self) -> bool:
        """Read until there is a part, and return whether the input ended with it.

        Raises:
            SetupError: The input or the plan cannot work.
        """
        while True:
            try:
                first = next(self._cut, None)
                break
            except RepeatsFoundError as found:
                self.restart(found.repeats)
        if first is not None:
            self._cut = chain((first,), self._cut)
        return self._parting.is_read

    def complete(self, on_rows: Callable[[int], None]) -> Prepared:
        """Write all parts; see `prepare`."""
        try:
            while True:
                try:
                    for _ in self.write_parts():
                        on_rows(self.rows)
                    return self.finish()
                except RepeatsFoundError as found:
                    self.restart(found.repeats)
        except BaseException:
            self.discard()
            raise

    def write_parts(self) -> Iterator[int]:
        """Write the parts of one batch after the other, once, and yield the index of each.

        A part is written when the one after it is there, or the whole input was found good; so nothing
        is written of an input of one batch that is not good.

        Raises:
            SetupError: The input, the mapping or the plan cannot work.
            RepeatsFoundError: The input is to be read again, by `restart`.
            StoreError: The store cannot be written.
        """
        for index, part in enumerate(self._cut):
            self._comparison.look(part.items, index)
            self._parting.write(part, index, self.folder)
            yield index

    def restart(self, repeats: frozenset[int]) -> None:
        """Start anew in the same folder, emptied.

        Args:
            repeats: Hashes of the ids that have to be tracked this time.
        """
        if self._folder is not None:
            clear_run(self._folder)
        self._parting = self._parting.restart(repeats)
        self._cut = self._parting.cut()
        self._comparison = Comparison(self.config)

    def stop(self) -> None:
        """End a reading that is under way in another thread, at its next block."""
        self._parting.stop()

    def finish(self) -> Prepared:
        """Describe the run in its folder; when the input was not read to its end, what was read of it.

        Under a budget the items of a run that calls models are brought into a random order.
        """
        folder, limits, shuffled = self.folder, self.config.limits, False
        self._parting.settle_plan(folder)
        if limits.is_budget and makes_calls(self.config):
            parts = rewrite_parts(folder, seed=limits.order_seed or 0, size=self._parting.size)
            self._parting.counts.parts = parts
            shuffled = True
        self._parting.write_refused(folder)
        request = self._parting.describe(self._started_at, folder.run_id)
        request = request.model_copy(update={"shuffled": shuffled, "warnings": self.warnings})
        write_request(folder, request.model_dump(mode="json"))
        return Prepared(folder, request)

    def discard(self) -> None:
        """Delete what was written."""
        if self._folder is not None:
            discard_run(self._folder)


def pin_runs(config: RunConfig) -> RunConfig:
    """Name the runs that `--failed-of`, `--against` and `--reuse` mean by their ids, which stay true.

    Raises:
        ConfigError: There is no such run.
    """
    reference = config.selection.failed_of
    if reference is not None:
        run_id = find_run(open_store(config.store, create=False), reference)
        selection = config.selection.model_copy(update={"failed_of": run_id})
        config = config.model_copy(update={"selection": selection})
    if config.against is not None:
        run_id = find_run(open_store(config.store, create=False), config.against)
        config = config.model_copy(update={"against": run_id})
    if config.reuse is not None:
        config = config.model_copy(update={"reuse": pin_reuse(config.reuse, config.store)})
    return config
