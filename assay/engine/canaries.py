"""Canaries asked: rows with known verdicts put to the judges beside a batch, and what they say of these."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from assay.chat.pool import run_jobs
from assay.contracts.tables import CANARIES, conform
from assay.engine.missing import ASKED_AGAIN
from assay.engine.panels import open_judging
from assay.engine.planning import restore_evaluation
from assay.errors import ConfigError, list_names
from assay.store.parts import scan_parts
from evaluators.canaries import BUILT_IN, parse_canaries, read_shipped, resolve_canaries
from evaluators.contract import JudgeEvaluator
from evaluators.panel import ask_row

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence

    from assay.config import RunConfig
    from assay.engine.batch import Batch
    from assay.engine.recording import BatchRecorder
    from assay.store.layout import RunFolder
    from evaluators.canaries import Canary, Probe
    from evaluators.catalog import Catalog
    from evaluators.outcomes import Outcome
    from evaluators.panel import Judging

    Frame = Coroutine[object, object, pl.DataFrame]

_NUMBERS = re.compile(r"[-+.e\d]+")  # how bounds of a score are written


@dataclass(frozen=True, slots=True)
class Health:
    """What the canaries of a run say of its judges.

    Attributes:
        green: Verdicts that were the known ones.
        red: Those that were not, or could not be read.
        undecided: Canaries that were not asked, or whose call failed in a way that need not come again.
        found: What was found instead of what is known, each with how often.
        failures: Code of what left canaries undecided, each with how often.
    """

    green: int
    red: int
    undecided: int
    found: tuple[tuple[str, int], ...] = ()
    failures: tuple[tuple[str, int], ...] = ()

    @property
    def state(self) -> Literal["ok", "unhealthy"] | None:
        """`unhealthy` when any is red, `ok` when all that were decided are green; None: none was decided."""
        if self.red:
            return "unhealthy"
        return "ok" if self.green else None

    def to_dict(self) -> dict[str, object]:
        """Return it for JSON."""
        return {
            "state": self.state,
            "green": self.green,
            "red": self.red,
            "undecided": self.undecided,
            "found": dict(self.found),
            "failures": dict(self.failures),
        }

    def describe(self) -> str:
        """Say it in one sentence; empty without canaries."""
        decided, rest = self.green + self.red, _write_counts(self.failures)
        undecided = f"{self.undecided} undecided ({rest})" if self.undecided else ""
        if self.red:
            told = f"unhealthy: {self.red} of {decided} canaries red: {_write_counts(self.found)}"
        elif self.green:
            told = f"ok: {decided} {'canary' if decided == 1 else 'canaries'} green"
        else:
            return f"judge health: not known: {undecided}" if undecided else ""
        return f"judge health: {told}{f'; {undecided}' if undecided else ''}"


def open_canaries(config: RunConfig, catalog: Catalog) -> tuple[Probe, ...]:
    """Read and check the canaries of a run; none without `canaries`.

    Raises:
        ConfigError: The file cannot be read, or a line of it is not acceptable.
    """
    place = config.panel.canaries
    return () if place is None else resolve_canaries(_read_canaries(place), catalog)


def _read_canaries(place: str) -> tuple[tuple[str, Canary], ...]:
    if place == BUILT_IN:
        return read_shipped()
    try:
        text = Path(place).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"--canaries {place}: cannot be read: {error}; write {BUILT_IN}, or a JSON Lines file"
        ) from error
    return parse_canaries(text, place)


async def watch_judges(batch: Batch, plan: pl.DataFrame, recorder: BatchRecorder) -> pl.DataFrame:
    """Ask the canaries of the judges that a plan holds.

    They are no part of the progress, and an answer of an earlier run is never taken for one of this.

    Returns:
        CANARIES.
    """
    tools, kind = batch.tools, f"{CANARIES.name} {batch.folder.run_id}"
    judging = open_judging(batch.config, tools, recorder, kind, lambda: None)
    return await ask_canaries(list_due(tools.canaries, plan, tools.catalog), judging)


def list_due(probes: Sequence[Probe], plan: pl.DataFrame, catalog: Catalog) -> list[Probe]:
    """Return the canaries of the judges that a plan holds."""
    if not probes:
        return []
    uses = plan.unique(["evaluator", "options_sha"]).iter_rows(named=True)
    planned = [restore_evaluation(use, catalog).evaluator for use in uses]
    judges = {each.name for each in planned if isinstance(each, JudgeEvaluator)}
    return [probe for probe in probes if probe.judge.name in judges]


async def ask_canaries(probes: Sequence[Probe], judging: Judging) -> pl.DataFrame:
    """Put canaries to the judges, as a row is put to them.

    Returns:
        CANARIES. Whatever a judge fails with is in the row; nothing is passed that has no verdict.

    Raises:
        EndpointError: A judge's key, model or URL are wrong.
    """

    async def ask(probe: Probe) -> Outcome:
        outcome = await ask_row(
            lambda chat: probe.judge.ask(probe.options, probe.fields, chat),
            judging,
            higher_is_better=probe.judge.higher_is_better,
        )
        return _describe(probe, outcome)

    rows = await run_jobs(probes, ask, judging.concurrency)
    return conform(pl.DataFrame(rows, schema=dict(CANARIES.columns)), CANARIES)


def _describe(probe: Probe, outcome: Outcome) -> Outcome:
    told = {name: value for name, value in outcome.items() if name in CANARIES.columns}
    score, label = told.get("score"), told.get("label")
    holds = probe.canary.holds(
        score if isinstance(score, float) else None, label if isinstance(label, str) else None
    )
    return told | {
        "evaluator": probe.judge.name,
        "canary": probe.canary.name,
        "trial": 0,
        "passed": holds and told.get("error_code") is None,
        "expected": probe.canary.expected,
    }


async def gather_frames(work: Frame, beside: Frame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Do both at the same time; a failure of the first ends the other."""
    other = asyncio.ensure_future(beside)
    try:
        return await work, await other
    finally:
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)


def read_health(folder: RunFolder) -> Health:
    """Count the canaries of a run.

    Raises:
        StoreError: A part cannot be read.
    """
    passing = pl.col("error_code").is_in(ASKED_AGAIN).fill_null(value=False)
    names = ("evaluator", "canary", "passed", "expected", "score", "label", "error_code")
    rows = scan_parts(folder, CANARIES).select(*names, undecided=passing).collect()
    decided = rows.filter(~pl.col("undecided"))
    red = decided.filter(~pl.col("passed"))
    failures = rows.filter("undecided")["error_code"]
    return Health(
        green=decided.height - red.height,
        red=red.height,
        undecided=len(failures),
        found=_count(_write_red(row) for row in red.sort("evaluator", "canary").iter_rows(named=True)),
        failures=_count(failures),
    )


def _count(texts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(texts).items())


def _write_red(row: Mapping[str, object]) -> str:
    score, expected = row["score"], str(row["expected"])
    number = f"{score:g}" if isinstance(score, float) else None
    said = number if _NUMBERS.fullmatch(expected) else row["label"]
    told = row["error_code"] or said or "no verdict"
    return f"{row['evaluator']} {row['canary']} ({told}, expected {expected})"


def _write_counts(counts: Sequence[tuple[str, int]]) -> str:
    return list_names(text if count == 1 else f"{text} {count} times" for text, count in counts)
