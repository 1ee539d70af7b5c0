"""One batch: answers fetched, evaluations run, both written as parts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.tables import ITEMS, PLAN, SAMPLES, SCORES, conform
from assay.engine.matching import ANSWERS_TABLE
from assay.engine.planning import is_judge, restore_evaluation, restore_mapping
from assay.store.parts import has_part, read_part, write_part
from assay.targets.contract import ANSWERS
from evaluators.runner import Judging, run_evaluations
from transforms.fields import list_sources
from transforms.mapping import map_fields, map_values
from transforms.plan import expand_plan
from transforms.prompts import parse_prompt, render_prompt
from transforms.values import SAMPLE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from assay.config import RunConfig
    from assay.engine.tools import Monitor, Tools
    from assay.store.layout import RunFolder
    from assay.targets.contract import Target
    from evaluators.catalog import Evaluation
    from transforms.templates import Template

KEY = ["item_id", "turn"]
NO_RESPONSE = "no_response"  # the code of a stored answer that is not there


@dataclass(frozen=True, slots=True)
class Batch:
    """What a batch needs to be worked on."""

    folder: RunFolder
    index: int
    config: RunConfig
    tools: Tools
    monitor: Monitor


async def run_batch(batch: Batch) -> int:
    """Work on one batch and return how many of its evaluations ended in an error.

    A batch whose scores are already stored is left as it is, so a repeated batch costs nothing.

    Raises:
        EndpointError: The first calls proved a key, model or URL wrong.
        StoreError: A part cannot be read or written.
    """
    folder, index = batch.folder, batch.index
    if has_part(folder.part("scores", index)):
        done = read_part(folder.part("scores", index), SCORES)
        batch.monitor.advance(done.height, 0)
        return done.filter(pl.col("status") == "error").height
    items = read_part(folder.part("items", index), ITEMS)
    plan_index = index if has_part(folder.part("plan", index)) else 0
    plan = read_part(folder.part("plan", plan_index), PLAN)
    samples = await _fetch_samples(batch, items)
    write_part(samples, folder.part("samples", index), SAMPLES)
    scores = await score_samples(batch, items, samples, plan)
    write_part(scores, folder.part("scores", index), SCORES)
    return scores.filter(pl.col("status") == "error").height


async def _fetch_samples(batch: Batch, items: pl.DataFrame) -> pl.DataFrame:
    calls = batch.config.target.kind != "stored"

    def note(ok: bool) -> None:
        if calls:
            batch.monitor.advance(1, 0 if ok else 1)

    target, path = batch.tools.target, batch.folder.part("answers", batch.index)
    if calls or not has_part(path):
        samples = await _ask(batch, items, note)
    else:
        samples = await _fetch_stored(target, items, read_part(path, ANSWERS_TABLE))
    return conform(samples.with_columns(run_id=pl.lit(batch.folder.run_id)), SAMPLES)


async def _ask(batch: Batch, items: pl.DataFrame, note: Callable[[bool], None]) -> pl.DataFrame:
    """Ask the target what the prompt template makes of each item; a field that is missing is an error."""
    prompt = batch.config.target.prompt
    if prompt is None:
        return await batch.tools.target.fetch_samples(items, note)
    rendered = render_prompt(parse_prompt(prompt), items)
    asked = items.with_columns(rendered["messages_json"]).filter(rendered["error_code"].is_null())
    samples = await batch.tools.target.fetch_samples(asked, note)
    refused = items.select(KEY).with_columns(
        rendered.select("error_code", "error_message"),
        trial=pl.lit(0),
        status=pl.lit("error"),
        attempts=pl.lit(0),
        from_ledger=pl.lit(value=False),
    )
    refused = conform(refused.filter(pl.col("error_code").is_not_null()), ANSWERS)
    for failed in rendered["error_code"].drop_nulls():
        note(not failed)
    return items.select(KEY).join(pl.concat([samples, refused]), on=KEY, maintain_order="left")


async def _fetch_stored(target: Target, items: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Let the stored target read the answers of a file: a row per trial, and one for a turn without any."""
    given = answers.sort(*KEY, "trial")
    own = ("response", "output_items_json", "tool_calls_json")
    rows = items.drop(own).join(given, on=KEY, how="left", maintain_order="left_right")
    samples = await target.fetch_samples(rows.drop("trial"), lambda _ok: None)
    return samples.with_columns(trial=rows["trial"].fill_null(0))


async def score_samples(
    batch: Batch, items: pl.DataFrame, samples: pl.DataFrame, plan: pl.DataFrame
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
    due = expand_plan(plan, items)
    scores: list[pl.DataFrame] = []
    for _, group in due.group_by("evaluator", "mapping_json", maintain_order=True):
        uses = group.unique("options_sha", maintain_order=True).with_row_index("use")
        numbered = group.select(*KEY, "options_sha").join(uses.select("options_sha", "use"), on="options_sha")
        asked = rows.join(numbered, on=KEY, maintain_order="left_right")
        result = await _evaluate(batch, uses, asked)
        identity = asked.select(
            *KEY,
            "trial",
            "options_sha",
            run_id=pl.lit(batch.folder.run_id),
            level=pl.lit(uses["level"][0]),
            evaluator=pl.lit(uses["evaluator"][0]),
        )
        scores.append(pl.concat([identity[result["row"]], result.drop("row")], how="horizontal"))
    return conform(pl.concat(scores), SCORES) if scores else SCORES.empty()


async def _evaluate(batch: Batch, uses: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Evaluate rows by uses of one evaluator that read their fields alike."""
    evaluations = [restore_evaluation(row, batch.tools.catalog) for row in uses.iter_rows(named=True)]
    judging = None
    if is_judge(evaluations[0]) and batch.tools.judge is not None:
        judging = Judging(batch.tools.judge, batch.config.concurrency, lambda: batch.monitor.advance(1, 0))
    status, code = pl.col(f"{SAMPLE_PREFIX}status"), pl.col(f"{SAMPLE_PREFIX}error_code")
    message = pl.col(f"{SAMPLE_PREFIX}error_message")
    mapping = restore_mapping(uses["mapping_json"][0])
    fields = _fill_fields(evaluations, rows, mapping).with_columns(rows.select("use", status, code, message))
    answered = (status == "ok") | ((code == NO_RESPONSE) & _has_rest(evaluations, mapping))
    fields = fields.with_columns(
        error_code=pl.when(answered).then("error_code").otherwise(code),
        error_message=pl.when(answered).then("error_message").otherwise(pl.format("no answer: {}", message)),
    )
    result = await run_evaluations(evaluations, fields, judging)
    errors = result.filter(pl.col("status") == "error").height
    told = result["latency_ms"].count() if judging else 0  # the judge has told of those it was asked
    batch.monitor.advance(rows.height - told, errors)
    return _skip_unasked(result, rows)


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
    """Turn the errors of samples that were never asked for into skips, with the reason kept."""
    unasked = (rows[f"{SAMPLE_PREFIX}status"] == "skipped")[result["row"]]
    return result.with_columns(
        status=pl.when(unasked).then(pl.lit("skipped", result["status"].dtype)).otherwise("status"),
        reason=pl.when(unasked).then("error_message").otherwise("reason"),
        error_code=pl.when(~unasked).then("error_code"),
        error_message=pl.when(~unasked).then("error_message"),
    )
