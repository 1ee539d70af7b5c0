"""Walking through a run without calling anything: the real requests are made, looked up and counted."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import orjson
import polars as pl

from assay.contracts.chat import ChatReply
from assay.contracts.tables import CANARIES, ITEMS, PLAN
from assay.engine.asking import ask_samples, fetch_samples
from assay.engine.batch import Batch, score_samples
from assay.engine.canaries import watch_judges
from assay.engine.driver import run_coroutine
from assay.engine.intake import Intake
from assay.engine.matching import ANSWERS_TABLE
from assay.engine.missing import is_done
from assay.engine.parting import Parting, RepeatsFoundError
from assay.engine.planning import restore_evaluation
from assay.engine.recording import BatchRecorder
from assay.engine.reuse import choose_runs
from assay.engine.tools import Silent, check_endpoints, open_tools
from assay.errors import CallError
from assay.store.layout import RunFolder, Store
from assay.store.ledger import open_segment
from assay.store.parts import has_part, read_part, write_part
from assay.store.past import open_past
from assay.targets.contract import Work
from assay.targets.conversation import KIND as TARGET
from evaluators.contract import JudgeEvaluator

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from assay.config import Endpoint, RunConfig
    from assay.engine.prepare import Prepared
    from assay.engine.tools import Tools
    from assay.store.past import PastCalls
    from evaluators.catalog import Catalog

BYTES = 4  # of a token of English text
_KEYS = {"openai": "OPENAI_API_KEY", "azure": "AZURE_OPENAI_API_KEY"}


@dataclass(slots=True)
class Count:
    """What one stage comes to.

    Attributes:
        rows: Answers or evaluations.
        hits: Calls whose answer is known.
        calls: Calls that have to be made.
        size: Bytes of their requests.
    """

    rows: int = 0
    hits: int = 0
    calls: int = 0
    size: int = 0


@dataclass(slots=True)
class Walk:
    """What a run comes to.

    Attributes:
        target: The answers; without calls where they are stored.
        judges: By evaluator that asks a judge, and the model that judges.
        judged: Evaluations that ask a judge, by evaluator.
        plain: Evaluations that ask nobody.
        items: Items.
        title: Names and dialects of the datasets.
        warnings: What the user should know of the input.
        at_once: Most calls of the target and of the judge under way at one time.
    """

    target: Count = field(default_factory=Count)
    judges: dict[tuple[str, str], Count] = field(default_factory=dict[tuple[str, str], Count])
    judged: Counter[str] = field(default_factory=Counter[str])
    plain: int = 0
    items: int = 0
    title: str = ""
    warnings: tuple[str, ...] = ()
    at_once: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True)
class _Piece:
    """One batch; `is_done` says that nothing of it will be asked."""

    index: int
    items: pl.DataFrame
    plan: pl.DataFrame
    is_done: bool = False


class _Scout(BatchRecorder):
    """A recorder that counts every request and knows an answer to each, so that nothing is ever sent."""

    def __init__(
        self, batch: Batch, walk: Walk, past: PastCalls | None, *, stand_in: str, is_done: bool
    ) -> None:
        segment = open_segment(batch.folder, batch.index)  # of a folder that holds no calls and gets none
        super().__init__(segment, past, batch.tools.traffic.meter)
        self._walk, self._stand_in, self._is_done = walk, stand_in, is_done
        judges = batch.config.judges
        self._judge, self._is_jury = judges[0].model if judges else "", len(judges) > 1

    def find(self, kind: str, request: str) -> tuple[str, ChatReply | CallError]:
        """Count a request, and return its answer or a stand-in."""
        key, known = super().find(kind, request)
        count = self._walk.target
        if kind != TARGET:
            name = kind.removeprefix("judge ").rpartition(" ")[0]
            model = str(orjson.loads(request)["model"]) if self._is_jury else self._judge
            count = self._walk.judges.setdefault((name, model), Count())
        if known is not None or self._is_done:
            count.hits += 1
        else:
            count.calls += 1
            count.size += len(request.encode("utf-8", "surrogatepass"))
        if known is not None:
            return key, known
        if kind == TARGET:
            return key, ChatReply(self._stand_in, model="", attempts=0)
        return key, CallError("planned", "not asked", attempts=0)


def walk_run(
    config: RunConfig,
    resumed: Prepared | None = None,
    *,
    reply_tokens: float,
    on_rows: Callable[[int], None] = lambda _: None,
) -> Walk:
    """Read, plan and ask as a run would, but take every answer from the ledger or from thin air.

    Nothing is called and nothing is kept; keys are not needed. Evaluators that ask no model do not run.

    Args:
        config: What is asked for; a run that `failed_of` names is named by its id.
        resumed: The run that goes on, whose parts are read instead of the datasets.
        reply_tokens: How long an answer of the target is taken to be, where it is not known yet.
        on_rows: Told how many rows were looked at.

    Raises:
        SetupError: What a run would refuse.
    """
    with _stand_in_keys(config), TemporaryDirectory(prefix="assay-plan-") as scratch:
        check_endpoints(config)
        folder = RunFolder(Store(Path(scratch)), "plan")
        stand_in = "word " * max(1, round(reply_tokens * BYTES / len("word ")))
        return run_coroutine(_Way(config, folder, resumed, stand_in, on_rows).go())


@contextmanager
def _stand_in_keys(config: RunConfig) -> Generator[None]:
    """Let clients be opened without a key; they are never asked."""
    endpoints: tuple[Endpoint | None, ...] = (config.target.endpoint, *config.judges, config.embeddings)
    names = {each.api_key_env or _KEYS[each.provider] for each in endpoints if each is not None}
    missing = [name for name in names if not os.environ.get(name, "").strip()]
    before = {name: os.environ.get(name) for name in missing}
    os.environ.update(dict.fromkeys(missing, "none"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Way:
    """One walk."""

    def __init__(
        self,
        config: RunConfig,
        scratch: RunFolder,
        resumed: Prepared | None,
        stand_in: str,
        on_rows: Callable[[int], None],
    ) -> None:
        self._config, self._scratch, self._resumed = config, scratch, resumed
        self._stand_in, self._on_rows = stand_in, on_rows
        self._parting = None if resumed else Parting(config, Intake(config))
        self._walk = Walk()
        self._rows = 0

    async def go(self) -> Walk:
        """Walk, and start anew where the input has to be read again."""
        async with open_tools(self._config, self._scratch) as tools:
            with ExitStack() as opened:
                past = tools.past
                if self._resumed is not None:
                    past = opened.enter_context(open_past(self._list_past(self._resumed)))
                while True:
                    self._walk, self._rows = Walk(at_once=_count_at_once(self._config, tools)), 0
                    try:
                        for piece in self._read_pieces():
                            await self._look(piece, tools, past)
                    except RepeatsFoundError as found:
                        if self._parting is not None:
                            self._parting = self._parting.restart(found.repeats)
                    else:
                        return self._sum_up()

    def _list_past(self, resumed: Prepared) -> list[RunFolder]:
        if self._config.reuse is None:
            return [resumed.folder]
        others = choose_runs(resumed.folder.store, self._config.reuse, datetime.now(UTC))
        return [resumed.folder, *(each for each in others if each.run_id != resumed.folder.run_id)]

    def _read_pieces(self) -> Iterator[_Piece]:
        if self._parting is not None:
            for index, part in enumerate(self._parting.cut()):
                if part.answers is not None:
                    write_part(part.answers, self._scratch.part("answers", index), ANSWERS_TABLE)
                yield _Piece(index, part.items, part.plan)
        elif self._resumed is not None:
            folder = self._resumed.folder
            for index in range(self._resumed.request.batches):
                own = folder.part("plan", index)
                plan = read_part(own if has_part(own) else folder.part("plan", 0), PLAN)
                items = read_part(folder.part("items", index), ITEMS)
                yield _Piece(index, items, plan, is_done(folder, index))

    async def _look(self, piece: _Piece, tools: Tools, past: PastCalls | None) -> None:
        """Go through one batch as the engine does, with a recorder that lets no call through."""
        config, items = self._config, piece.items
        self._rows += items.height
        self._on_rows(self._rows)
        plan = _take_judges(piece.plan, tools.catalog)
        if config.target.kind == "stored" and not plan.height:
            return
        batch = Batch(self._scratch, piece.index, config, tools, Silent())
        scout = _Scout(batch, self._walk, past, stand_in=self._stand_in, is_done=piece.is_done)
        work = Work(scout, lambda _: None, config.trials, tools.ceiling)
        if config.target.kind == "stored":
            source = self._scratch if self._resumed is None else self._resumed.folder
            samples = await fetch_samples(source, piece.index, items, tools.target, work)
        else:
            samples = await ask_samples(self._scratch, items, config, tools.target, work)
            self._walk.target.rows += samples.height
        if plan.height:
            scores = await score_samples(batch, items, samples, plan, scout)
            self._walk.judged[CANARIES.name] += (await watch_judges(batch, plan, scout)).height
            for label, rows in scores.group_by("evaluator").len().iter_rows():
                name = tools.catalog.find(label.partition(":")[0]).name
                self._walk.judged[name] += rows

    def _sum_up(self) -> Walk:
        """Add what is known once all was seen."""
        walk = self._walk
        judged = walk.judged.total() - walk.judged[CANARIES.name]
        for (name, _), count in walk.judges.items():
            count.rows = walk.judged[name]
        if self._parting is not None:
            counts = self._parting.counts
            walk.items, walk.plain = counts.items, counts.evaluations - judged
            walk.title, walk.warnings = self._parting.title, self._parting.warnings
        elif self._resumed is not None:
            request = self._resumed.request
            walk.items, walk.plain = request.items, request.evaluations - judged
            walk.title, walk.warnings = f"{request.dataset_name} ({request.dialect})", request.warnings
        return walk


def _take_judges(plan: pl.DataFrame, catalog: Catalog) -> pl.DataFrame:
    """Return what asks a judge, as if none of it waited for the outcome of another evaluator."""
    uses = plan.unique(["evaluator", "options_sha"]).iter_rows(named=True)
    asking = [
        use["options_sha"]
        for use in uses
        if isinstance(restore_evaluation(use, catalog).evaluator, JudgeEvaluator)
    ]
    return plan.filter(pl.col("options_sha").is_in(asking)).with_columns(only_if=pl.lit(None, pl.String))


def _count_at_once(config: RunConfig, tools: Tools) -> tuple[int, int]:
    """Return how many calls of target and judge may be under way; functions and programs say fewer."""
    if config.target.endpoint is not None:
        return tools.ceiling, tools.ceiling
    return min([tools.ceiling, *(gate.limit for gate in tools.traffic.gates)]), tools.ceiling
