"""Parting: the blocks of the input cut into batches, each checked, planned, counted and written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import sha_text
from assay.contracts.quarantine import QUARANTINE
from assay.contracts.tables import EVERY_TURN, ITEMS, PLAN
from assay.engine.intake import Intake
from assay.engine.marks import mark_files
from assay.engine.matching import ANSWERS_TABLE
from assay.engine.own import list_own_files, open_catalog
from assay.engine.planning import Planning, count_evaluations
from assay.engine.request import FileMark, RunRequest
from assay.store.parts import has_part, read_part, write_part
from transforms.items import Items
from transforms.plan import expand_plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from assay.config import RunConfig
    from assay.store.layout import RunFolder

COLUMN_BATCH = 10_000  # rows of a batch that only Polars works on
MODEL_BATCH = 200  # rows of a batch that waits for a model
KEYS = ["item_id", "turn"]


class RepeatsFoundError(Exception):
    """Ids came twice that were remembered as hashes only; the input has to be read again.

    Attributes:
        repeats: Their hashes.
    """

    def __init__(self, repeats: frozenset[int]) -> None:
        """Keep the hashes."""
        super().__init__(f"{len(repeats)} ids came twice")
        self.repeats = repeats


@dataclass(frozen=True, slots=True)
class Part:
    """What is written for one batch."""

    items: pl.DataFrame
    plan: pl.DataFrame
    answers: pl.DataFrame | None


@dataclass(slots=True)
class Counts:
    """What the parts hold so far."""

    parts: int = 0
    items: int = 0
    turns: int = 0
    evaluations: int = 0
    calls: int = 0
    idle: int = 0


class Parting:
    """The input of a run on its way into parts.

    Attributes:
        counts: What was cut so far.
        is_read: Whether the input was read to its end and found good.
    """

    def __init__(self, config: RunConfig, intake: Intake) -> None:
        """Take the input; nothing is read yet."""
        self.counts = Counts()
        self.is_read = False
        self._config, self._intake = config, intake
        self._catalog = open_catalog(config)
        self._planning = Planning(config, intake, self._catalog)
        self._uniform = True
        self._first_plan: pl.DataFrame | None = None
        self._refused = 0

    def restart(self, repeats: frozenset[int]) -> Parting:
        """Return a new start over the same files, which tracks these ids."""
        return Parting(self._config, Intake(self._config, repeats, self._intake.found))

    def stop(self) -> None:
        """End the reading at its next block."""
        self._intake.stop()

    @property
    def title(self) -> str:
        """Names and dialects of the datasets."""
        return f"{self._intake.dataset_name} ({self._intake.dialect})"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know of what was read so far."""
        idle = f"{self.counts.idle} turns have no evaluator: their file names none for them"
        return (*self._intake.warnings, *((idle,) if self.counts.idle else ()))

    @property
    def size(self) -> int:
        """Rows of a batch."""
        return self._config.batch_size or (MODEL_BATCH if makes_calls(self._config) else COLUMN_BATCH)

    def cut(self) -> Iterator[Part]:
        """Cut the input into parts; each comes when its successor is there, or the whole input is good.

        Raises:
            SetupError: The input or the plan cannot work.
            RepeatsFoundError: The input has to be read again.
        """
        ahead: Part | None = None
        for items in rebatch(self._intake.read_blocks(), self.size):
            if ahead is not None:
                yield ahead
            ahead = self._make_part(items)
        repeats = self._intake.find_repeats()
        if repeats:
            raise RepeatsFoundError(repeats)
        self._planning.check()
        self.is_read = True
        if ahead is not None:
            yield ahead

    def _make_part(self, items: Items) -> Part:
        plan = self._planning.plan(items)
        answers = None if self._intake.answers is None else self._intake.answers.match(items.table)
        turns = items.table.select(KEYS)
        samples = turns if answers is None else turns.join(answers.select(KEYS), on=KEYS, how="left")
        evaluations, judged = count_evaluations(plan, samples, self._catalog)
        counts = self.counts
        counts.parts += 1
        counts.items += items.table["item_id"].n_unique()
        counts.turns += turns.height
        trials = self._config.trials
        counts.evaluations += evaluations * trials
        asked = judged * len(self._config.judges) * self._config.panel.repeats
        asked += turns.height if self._config.target.kind != "stored" else 0
        counts.calls += asked * trials
        if not is_shared(plan):
            counts.idle += turns.join(plan, on=KEYS, how="anti").height
        if self._first_plan is None:
            self._first_plan = plan
        self._uniform &= is_shared(plan) and plan.equals(self._first_plan)
        return Part(items.table, plan, answers)

    def write(self, part: Part, index: int, folder: RunFolder) -> None:
        """Write one part; a plan that is that of the first part is not written again."""
        write_part(part.items, folder.part("items", index), ITEMS)
        first = self._first_plan
        if index == 0 or first is None or not (is_shared(part.plan) and part.plan.equals(first)):
            write_part(part.plan, folder.part("plan", index), PLAN)
        if part.answers is not None:
            write_part(part.answers, folder.part("answers", index), ANSWERS_TABLE)
        self.write_refused(folder)

    def write_refused(self, folder: RunFolder) -> None:
        """Write the bad rows that were set aside since the last call."""
        taken = self._intake.take_refused()
        if not taken:
            return
        rows = [
            (file, fault.line, fault.column, fault.pointer, fault.code, fault.message, fault.text)
            for file, fault in taken
        ]
        frame = pl.DataFrame(rows, schema=dict(QUARANTINE.columns), orient="row")
        write_part(frame, folder.part("quarantine", self._refused), QUARANTINE)
        self._refused += 1

    def settle_plan(self, folder: RunFolder) -> None:
        """Write a plan per item where parts that share one within do not share it among them."""
        if self._uniform:
            return
        for index in reversed(range(self.counts.parts)):
            own = folder.part("plan", index)
            if not has_part(folder.part("items", index)):
                continue  # it was cut, but the run ended before it was written
            plan = read_part(own if has_part(own) else folder.part("plan", 0), PLAN)
            if is_shared(plan):
                items = read_part(folder.part("items", index), ITEMS)
                write_part(expand_plan(plan, items), own, PLAN)

    def describe(self, started_at: datetime, run_id: str) -> RunRequest:
        """Return what the run is, by all that was read."""
        counts, intake = self.counts, self._intake
        return RunRequest(
            run_id=run_id,
            config=self._config,
            started_at=started_at,
            batches=counts.parts,
            items=counts.items,
            turns=counts.turns,
            evaluations=counts.evaluations,
            calls=counts.calls,
            dataset_name=intake.dataset_name,
            dataset_sha256=intake.sha256,
            dialect=intake.dialect,
            evaluator_set_sha=sha_text(*self._planning.list_evaluations()),
            quarantined=intake.quarantined,
            whole=self.is_read,
            files=self._mark_files() if makes_calls(self._config) else (),
            warnings=self.warnings,
        )

    def _mark_files(self) -> tuple[FileMark, ...]:
        """Return the marks of all files that the run is made of, evaluators and canaries among them."""
        return mark_files([*self._intake.paths, *list_own_files(self._config)])


def makes_calls(config: RunConfig) -> bool:
    """Whether a run may call a model."""
    return config.target.kind != "stored" or bool(config.judges) or config.embeddings is not None


def is_shared(plan: pl.DataFrame) -> bool:
    """Whether all items that a plan is for share it."""
    return plan.height > 0 and plan["turn"][0] == EVERY_TURN


def rebatch(blocks: Iterator[Items], size: int) -> Iterator[Items]:
    """Cut blocks anew into batches of about `size` rows without cutting a conversation.

    Args:
        blocks: Items, conversations whole.
        size: A batch ends before the first conversation that begins at or after so many rows.
    """
    held: Items | None = None
    for block in blocks:
        held = block if held is None else _join(held, block)
        while held.table.height > size:
            later = (held.table["turn"].slice(size) == 0).arg_true()
            if later.is_empty():
                break
            end = size + int(later[0])
            yield _slice(held, 0, end)
            held = _slice(held, end, held.table.height)
    if held is not None and held.table.height:
        yield held


def _join(first: Items, second: Items) -> Items:
    return Items(pl.concat([first.table, second.table]), pl.concat([first.uses, second.uses]))


def _slice(items: Items, start: int, end: int) -> Items:
    return Items(items.table.slice(start, end - start), items.uses.slice(start, end - start))
