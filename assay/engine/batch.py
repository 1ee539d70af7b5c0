"""One batch: answers fetched, evaluations run, both written as parts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from assay.chat.halt import NEVER_ASKED, SETUP
from assay.contracts.hiding import find_secrets
from assay.contracts.tables import CANARIES, ITEMS, PLAN, SAMPLES, SCORES, conform
from assay.engine.asking import KEY, ask_samples, fetch_samples
from assay.engine.canaries import gather_frames, watch_judges
from assay.engine.missing import is_done
from assay.engine.pairing import blank_unpaired, explain_unpaired, read_partners
from assay.engine.panels import open_judging
from assay.engine.planning import is_judge, restore_evaluation, restore_mapping
from assay.engine.recording import BatchRecorder
from assay.engine.settling import skip_rows
from assay.store.ledger import open_segment
from assay.store.parts import has_part, read_part, write_part
from assay.targets.contract import Work
from evaluators.runner import run_evaluations
from transforms.conditions import order_labels, tell_due
from transforms.fields import list_sources
from transforms.mapping import map_fields, map_values
from transforms.plan import expand_plan
from transforms.values import SAMPLE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assay.chat.meter import Meter
    from assay.config import RunConfig
    from assay.engine.tools import Monitor, Tools
    from assay.store.layout import RunFolder
    from assay.store.ledger import Segment
    from assay.store.past import PastCalls
    from evaluators.catalog import Evaluation, Evaluator
    from evaluators.panel import Judging
    from transforms.templates import Template

    OpenRecorder = Callable[[Segment, PastCalls | None, Meter], BatchRecorder]

NO_RESPONSE = "no_response"  # the code of a stored answer that is not there


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch needs to be worked on."""

    folder: RunFolder
    index: int
    config: RunConfig
    tools: Tools
    monitor: Monitor


async def run_batch(batch: Batch, open_recorder: OpenRecorder = BatchRecorder) -> int:
    """Work on one batch and return how many of its evaluations ended in an error.

    A batch that is stored is left as it is, unless some of it should be asked again; a call that was answered
    before is not made again. A batch of which nothing was asked, or whose answers are to come later, leaves
    nothing.

    Args:
        batch: The batch.
        open_recorder: What finds and keeps its answers.

    Raises:
        EndpointError: The first calls proved a key, model or URL wrong.
        StoreError: A part cannot be read or written, or an answer cannot be kept.
    """
    folder, index = batch.folder, batch.index
    if is_done(folder, index):
        done = read_part(folder.part("scores", index), SCORES)
        batch.monitor.advance(done.height, 0)
        return done.filter(pl.col("status") == "error").height
    with open_segment(folder, index) as segment:
        recorder = open_recorder(segment, batch.tools.past, batch.tools.traffic.meter)
        return await _work(batch, recorder)


async def _work(batch: Batch, recorder: BatchRecorder) -> int:
    folder, index = batch.folder, batch.index
    items, plan = await asyncio.to_thread(_read_parts, folder, index)
    samples = await _fetch_samples(batch, items, recorder)
    unasked = samples["error_code"].is_in(NEVER_ASKED).fill_null(value=False)
    halt = batch.tools.traffic.halt
    reason = halt.reason
    if reason is not None and (unasked.all() or reason.code == SETUP):
        return 0
    scores, canaries = await gather_frames(
        score_samples(batch, items, samples, plan, recorder), watch_judges(batch, plan, recorder)
    )
    if (reason := halt.reason) is not None and reason.code == SETUP:
        return 0  # the judge proved wrong; what was answered is kept
    if recorder.waiting:
        return 0
    scores = _drop_unmeasured(scores)
    await asyncio.to_thread(_write_parts, batch, samples, scores, canaries)
    return scores.filter(pl.col("status") == "error").height


def _read_parts(folder: RunFolder, index: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    items = read_part(folder.part("items", index), ITEMS)
    plan_index = index if has_part(folder.part("plan", index)) else 0
    return items, read_part(folder.part("plan", plan_index), PLAN)


def _write_parts(batch: Batch, samples: pl.DataFrame, scores: pl.DataFrame, canaries: pl.DataFrame) -> None:
    folder, index = batch.folder, batch.index
    if canaries.height:
        write_part(canaries, folder.part("canaries", index), CANARIES)
    # where a batch is redone and this stops half way, the old samples still say what to ask again
    write_part(scores, folder.part("scores", index), SCORES)
    write_part(samples, folder.part("samples", index), SAMPLES)


async def _fetch_samples(batch: Batch, items: pl.DataFrame, recorder: BatchRecorder) -> pl.DataFrame:
    config, tools = batch.config, batch.tools

    def note(ok: bool) -> None:
        batch.monitor.advance(1, 0 if ok else 1)

    if config.target.kind == "stored":
        work = Work(recorder, lambda _: None)
        return await fetch_samples(batch.folder, batch.index, items, tools.target, work)
    work = Work(recorder, note, config.trials, tools.ceiling)
    return _drop_unmeasured(await ask_samples(batch.folder, items, config, tools.target, work))


def _drop_unmeasured(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table without times of answers that came in a batch job, which nobody measured."""
    return frame.with_columns(pl.when(pl.col("latency_ms") > 0).then("latency_ms"))


async def score_samples(
    batch: Batch, items: pl.DataFrame, samples: pl.DataFrame, plan: pl.DataFrame, recorder: BatchRecorder
) -> pl.DataFrame:
    """Run every planned evaluation over every sample.

    Returns:
        SCORES. A sample that is an error gives an error for each of its evaluations, a skipped one
        skips them; neither is ever scored.
    """
    beside = samples.drop("run_id").rename(
        {name: f"{SAMPLE_PREFIX}{name}" for name in samples.columns if name not in {"run_id", *KEY, "trial"}}
    )
    rows = beside.join(items, on=KEY, how="left", maintain_order="left")
    rows = await asyncio.to_thread(read_partners, rows, batch.config, batch.index)
    due = expand_plan(plan, items)
    scores: list[pl.DataFrame] = []
    for label in order_labels(due):
        own = due.filter(pl.col("evaluator") == label)
        for _, group in own.group_by("mapping_json", maintain_order=True):
            scores += await _score_group(batch, group, rows, scores, recorder)
    return _hide_secrets(pl.concat(scores)) if scores else SCORES.empty()


async def _score_group(
    batch: Batch,
    group: pl.DataFrame,
    rows: pl.DataFrame,
    before: Sequence[pl.DataFrame],
    recorder: BatchRecorder,
) -> list[pl.DataFrame]:
    """Evaluate one evaluator over the rows whose fields are filled alike, where it is due."""
    uses = group.unique("options_sha", maintain_order=True).with_row_index("use")
    numbered = group.select(*KEY, "options_sha").join(
        uses.select("options_sha", "use", "only_if"), on="options_sha"
    )
    asked = rows.join(numbered, on=KEY, maintain_order="left_right")
    reasons = tell_due(asked, before) if uses["only_if"].count() else None
    parts: list[pl.DataFrame] = []
    if reasons is not None and reasons.count():
        settled = asked.with_columns(reasons).filter(pl.col("reason").is_not_null())
        batch.monitor.advance(settled.height, 0)
        skipped = skip_rows(uses, settled, batch.tools.catalog)
        parts = [conform(_identify(batch, uses, settled).hstack(skipped), SCORES)]
        asked = asked.filter(reasons.is_null())
    result = await _evaluate(batch, uses, asked, recorder)
    identity = _identify(batch, uses, asked)
    scores = pl.concat([identity[result["row"]], result.drop("row")], how="horizontal")
    return [*parts, conform(scores, SCORES)]


def _identify(batch: Batch, uses: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of SCORES that say whose scores they are."""
    return rows.select(
        *KEY,
        "trial",
        "options_sha",
        run_id=pl.lit(batch.folder.run_id),
        level=pl.lit(uses["level"][0]),
        evaluator=pl.lit(uses["evaluator"][0]),
    )


async def _evaluate(
    batch: Batch, uses: pl.DataFrame, rows: pl.DataFrame, recorder: BatchRecorder
) -> pl.DataFrame:
    """Evaluate rows by uses of one evaluator that read their fields alike."""
    evaluations = [restore_evaluation(row, batch.tools.catalog) for row in uses.iter_rows(named=True)]
    judging = None
    if any(map(is_judge, evaluations)):
        judging = _start_judging(batch, evaluations[0].evaluator, recorder)
    status, code = pl.col(f"{SAMPLE_PREFIX}status"), pl.col(f"{SAMPLE_PREFIX}error_code")
    message = pl.col(f"{SAMPLE_PREFIX}error_message")
    mapping = restore_mapping(uses["mapping_json"][0])
    fields = blank_unpaired(_fill_fields(evaluations, rows, mapping), rows, mapping)
    fields = fields.with_columns(rows.select("use", status, code, message))
    answered = (status == "ok") | ((code == NO_RESPONSE) & _has_rest(evaluations, mapping))
    fields = fields.with_columns(
        error_code=pl.when(answered).then("error_code").otherwise(code),
        error_message=pl.when(answered).then("error_message").otherwise(pl.format("no answer: {}", message)),
    )
    result = await run_evaluations(evaluations, fields, judging)
    errors = result.filter(pl.col("status") == "error").height
    told = result["latency_ms"].count() if judging else 0  # the judge has told of those it was asked
    batch.monitor.advance(rows.height - told, errors)
    return explain_unpaired(_skip_unasked(result, rows), rows, mapping)


def _hide_secrets(scores: pl.DataFrame) -> pl.DataFrame:
    """Return SCORES without keys of the environment, which the code of a user's own evaluator may tell."""
    keys = find_secrets().in_data
    told = pl.col("label", "reason", "details_json", "error_message")
    return scores.with_columns(told.str.replace_many(dict.fromkeys(keys, "***"))) if keys else scores


def _start_judging(batch: Batch, evaluator: Evaluator, recorder: BatchRecorder) -> Judging:
    kind = f"{evaluator.name} {evaluator.version}"
    return open_judging(batch.config, batch.tools, recorder, kind, lambda: batch.monitor.advance(1, 0))


def _has_rest(evaluations: Sequence[Evaluation], mapping: Mapping[str, Template]) -> pl.Expr:
    """Say which rows can be evaluated without an answer: what is needed stands in the item."""
    fields = dict.fromkeys(chain.from_iterable(each.fields for each in evaluations))
    if any(_reads_answer(field, mapping.get(field)) for field in fields):
        return pl.lit(value=False)
    needs = dict.fromkeys(chain.from_iterable(each.needs for each in evaluations))
    return pl.all_horizontal(pl.lit(value=True), *(pl.col(field).is_not_null() for field in needs))


def _reads_answer(field: str, template: Template | None) -> bool:
    if template is None:
        return list_sources(field) == list_sources("response")
    return any(reference.root == "sample" for reference in template.references)


def _fill_fields(
    evaluations: Sequence[Evaluation], rows: pl.DataFrame, mapping: Mapping[str, Template]
) -> pl.DataFrame:
    """Fill the fields that any of the uses reads, text and JSON; the first fault of a row is its error."""
    kinds = dict.fromkeys((each.fields, each.json_fields) for each in evaluations)
    fields = dict.fromkeys(chain.from_iterable(every for every, _ in kinds))
    typed = dict.fromkeys(chain.from_iterable(some for _, some in kinds))
    texts = map_fields(rows, mapping, [field for field in fields if field not in typed])
    if not typed:
        return texts
    values = map_values(rows, mapping, typed).with_columns(
        pl.when(pl.col(field) != "null").then(field)  # of the source row: no value, as for texts
        for field in typed
        if field in mapping and (sole := mapping[field].sole) and sole.root == "item"
    )
    told = ("error_code", "error_message")
    first = texts.select(pl.coalesce(name, values[name].alias(f"{name}?")) for name in told)
    return pl.concat([texts.drop(told), values.drop(told), first], how="horizontal")


def _skip_unasked(result: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Turn errors of what was never asked for, answer or verdict, into skips with the reason kept."""
    unanswered = (rows[f"{SAMPLE_PREFIX}status"] == "skipped")[result["row"]]
    unasked = pl.lit(unanswered) | pl.col("error_code").is_in(NEVER_ASKED).fill_null(value=False)
    return result.with_columns(
        status=pl.when(unasked).then(pl.lit("skipped", result["status"].dtype)).otherwise("status"),
        reason=pl.when(unasked).then("error_message").otherwise("reason"),
        error_code=pl.when(pl.lit(unanswered).not_()).then("error_code"),
        error_message=pl.when(~unasked).then("error_message"),
    )
