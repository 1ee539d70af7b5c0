"""The runner: one evaluator over many rows; it alone knows thresholds, errors, skips, time and usage."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import takewhile
from threading import Event
from typing import TYPE_CHECKING, Any, assert_never

import polars as pl

from assay.chat.pool import run_jobs
from assay.contracts.tables import NOT_APPLICABLE, SCORES, Status
from assay.errors import ConfigError
from assay.sandbox.graders import stop_graders
from evaluators.contract import ColumnEvaluator, EmbeddingEvaluator, JudgeEvaluator, RowEvaluator
from evaluators.marking import mark_rows, refuse_scores
from evaluators.outcomes import describe_failure, describe_verdict
from evaluators.panel import ask_row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evaluators.catalog import Evaluation
    from evaluators.contract import Evaluator, Fields
    from evaluators.outcomes import Outcome
    from evaluators.panel import Judging

_IDENTITY = ("run_id", "item_id", "turn", "trial", "level", "evaluator", "options_sha")
_TOLD = ("label", "reason", "details_json", "error_code", "error_message")  # what `measure` may add
RESULT = pl.Schema(
    {"row": pl.UInt32} | {name: dtype for name, dtype in SCORES.columns.items() if name not in _IDENTITY}
)
"""Columns of a result: the row, then those of SCORES that do not say whose score it is."""


@dataclass(frozen=True, slots=True)
class _Job:
    row: int
    use: int
    fields: Fields


async def run_evaluation(evaluation: Evaluation, rows: pl.DataFrame, judging: Judging | None) -> pl.DataFrame:
    """Evaluate every row alike; see `run_evaluations`."""
    return await run_evaluations([evaluation], rows.with_columns(use=pl.lit(0, pl.UInt32)), judging)


async def run_evaluations(
    evaluations: Sequence[Evaluation], rows: pl.DataFrame, judging: Judging | None
) -> pl.DataFrame:
    """Evaluate every row by its own use of one evaluator.

    A row with an `error_code` is an error and is never evaluated; else one that lacks a needed field is
    skipped with the field in its reason; else it is scored, or an error when the evaluator fails on it. A
    blank reference counts as missing unless the options keep it. Uses that differ in nothing but row
    options and threshold are measured together.

    Args:
        evaluations: Uses of one evaluator, in any of its forms.
        rows: `use` UInt32, which of `evaluations` is due; String columns named by field, an absent one
            standing for nulls; and `error_code` and `error_message` of answers or mappings that failed.
        judging: How to ask a judge; only judge evaluators need it.

    Returns:
        RESULT, one row per row in the same order. The score is never NaN.

    Raises:
        ConfigError: A judge evaluator without `judging`.
        EndpointError: The judge's key, model or URL are wrong.
    """
    numbered = rows.with_row_index("row")
    kinds = _list_kinds(evaluations)
    if kinds.n_unique() == 1:
        every = await _run_kind(evaluations, numbered, judging)  # in order where all rows were measured
    else:
        sorted_out = numbered.with_columns(kind=kinds.gather(rows["use"])).partition_by(
            "kind", maintain_order=True, include_key=False
        )
        every = pl.concat([await _run_kind(evaluations, part, judging) for part in sorted_out])
    ordered = every if every["row"].is_sorted() else every.sort("row")
    return _finish(evaluations, rows["use"], ordered)


def _list_kinds(evaluations: Sequence[Evaluation]) -> pl.Series:
    """Number the uses by what has to be the same for all rows that are measured together."""
    numbers: dict[object, int] = {}
    kinds = [numbers.setdefault(key, len(numbers)) for key in map(_kind_key, evaluations)]
    return pl.Series("kind", kinds, dtype=pl.UInt32)


def _kind_key(evaluation: Evaluation) -> object:
    evaluator, options = evaluation.evaluator, evaluation.options
    alike = (id(evaluator), evaluation.fields, evaluation.needs, options.keeps_blank)
    if not isinstance(evaluator, ColumnEvaluator):
        return alike
    fixed = [name for name in type(options).model_fields if name not in evaluator.row_options]
    return (*alike, *(repr(getattr(options, name)) for name in fixed))


async def _run_kind(
    evaluations: Sequence[Evaluation], rows: pl.DataFrame, judging: Judging | None
) -> pl.DataFrame:
    """Evaluate rows whose uses differ in row options and threshold alone; return RESULT but for the pass."""
    first = evaluations[int(rows["use"][0]) if rows.height else 0]
    marked = mark_rows(first, rows)
    fit = marked["status"] == "ok"
    complete = fit.all()
    due = (marked if complete else marked.filter(fit)).select("row", "use", *first.fields)
    measured = await _measure(first.evaluator, evaluations, due, judging)
    measured = refuse_scores(first, measured)
    states = pl.Series("status", ["ok", "error", "skipped"], dtype=Status)
    failed, skipped = measured["error_code"].is_not_null(), measured["error_code"] == NOT_APPLICABLE
    state = failed.cast(pl.UInt32) + skipped.fill_null(value=False).cast(pl.UInt32)
    measured = measured.with_columns(states.gather(state).alias("status"))
    return measured if complete else pl.concat([_complete(marked.filter(~fit)), measured])


async def _measure(
    evaluator: Evaluator, evaluations: Sequence[Evaluation], due: pl.DataFrame, judging: Judging | None
) -> pl.DataFrame:
    """Run the evaluator over rows that lack nothing; a failure is the `error_code` of its rows."""
    match evaluator:
        case ColumnEvaluator():
            return await _work_apart(lambda _: _measure_columns(evaluator, evaluations, due))
        case RowEvaluator():
            return await _work_apart(lambda stop: _compare_rows(evaluator, evaluations, due, stop))
        case JudgeEvaluator():
            if judging is None:
                raise ConfigError(f"{evaluations[0].label} needs a judge: --judge MODEL")
            return _gather(await _ask_rows(evaluator, evaluations, due, judging))
        case EmbeddingEvaluator():
            return await _embed_columns(evaluator, evaluations, due, judging)
        case _:
            assert_never(evaluator)


async def _work_apart(work: Callable[[Event], pl.DataFrame]) -> pl.DataFrame:
    """Work in a thread, so that signals get through; a cancelled wait ends the work at its next row."""
    stop = Event()
    try:
        return await asyncio.to_thread(work, stop)
    except asyncio.CancelledError:
        stop.set()
        stop_graders()
        raise


def _measure_columns(
    evaluator: ColumnEvaluator[Any], evaluations: Sequence[Evaluation], due: pl.DataFrame
) -> pl.DataFrame:
    if not due.height:
        return _complete(due)
    use = due["use"]
    varying = [
        pl.Series(name, [getattr(each.options, name) for each in evaluations], dtype=dtype).gather(use)
        for name, dtype in evaluator.row_options.items()
    ]
    try:
        fields = due.drop("row", "use").hstack(varying)
        return _take(due, evaluator.measure(evaluations[int(use[0])].options, fields))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever an evaluator raises belongs to its rows
        return _fail(due, error)


def _take(due: pl.DataFrame, measured: pl.DataFrame) -> pl.DataFrame:
    told = measured.select("score", *(name for name in _TOLD if name in measured.columns))
    return _complete(due.select("row").hstack(told))  # refuses another height


def _fail(due: pl.DataFrame, error: Exception | SystemExit) -> pl.DataFrame:
    failure = {name: pl.lit(text) for name, text in describe_failure(error).items()}
    return _complete(due.select("row", **failure))


def _compare_rows(
    evaluator: RowEvaluator[Any], evaluations: Sequence[Evaluation], due: pl.DataFrame, stop: Event
) -> pl.DataFrame:
    outcomes: list[Outcome] = []
    for job in takewhile(lambda _: not stop.is_set(), _list_jobs(due)):
        try:
            outcome = describe_verdict(evaluator.judge(evaluations[job.use].options, job.fields))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the same
            outcome = describe_failure(error)
        outcomes.append({"row": job.row} | outcome)
    return _gather(outcomes)


async def _ask_rows(
    evaluator: JudgeEvaluator[Any], evaluations: Sequence[Evaluation], due: pl.DataFrame, judging: Judging
) -> list[Outcome]:
    async def ask(job: _Job) -> Outcome:
        options = evaluations[job.use].options
        outcome = await ask_row(
            lambda chat: evaluator.ask(options, job.fields, chat),
            judging,
            higher_is_better=evaluator.higher_is_better,
        )
        return {"row": job.row} | outcome

    return await run_jobs(_list_jobs(due), ask, judging.concurrency)


async def _embed_columns(
    evaluator: EmbeddingEvaluator[Any],
    evaluations: Sequence[Evaluation],
    due: pl.DataFrame,
    judging: Judging | None,
) -> pl.DataFrame:
    if judging is None or judging.embed is None:
        raise ConfigError(f"{evaluations[0].label} needs an embedding model: --embedding-model MODEL")
    if not due.height:
        return _complete(due)
    options = evaluations[int(due["use"][0])].options
    try:
        return _take(due, await evaluator.measure(options, due.drop("row", "use"), judging.embed))
    except Exception as error:  # noqa: BLE001 - the same
        return _fail(due, error)


def _list_jobs(due: pl.DataFrame) -> list[_Job]:
    names = due.columns[2:]
    return [_Job(row, use, dict(zip(names, values, strict=True))) for row, use, *values in due.iter_rows()]


def _gather(outcomes: Sequence[Outcome]) -> pl.DataFrame:
    return pl.DataFrame(outcomes, schema=RESULT)


def _complete(frame: pl.DataFrame) -> pl.DataFrame:
    """Return exactly the columns of RESULT, nulls where `frame` has none."""
    return frame.select(
        pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in RESULT.items()
    )


def _finish(evaluations: Sequence[Evaluation], use: pl.Series, frame: pl.DataFrame) -> pl.DataFrame:
    """Add what holds for all rows, and the pass: the threshold itself passes, no score gives no verdict."""
    evaluator = evaluations[0].evaluator
    thresholds = pl.Series([each.threshold for each in evaluations], dtype=pl.Float64)
    score, threshold = pl.col("score"), pl.col("threshold")
    return frame.with_columns(
        score=score.fill_nan(None),
        metric=pl.lit(evaluator.metric or evaluator.name),
        evaluator_version=pl.lit(evaluator.version, pl.Int32),
        threshold=thresholds.gather(use),
    ).with_columns(passed=score >= threshold if evaluator.higher_is_better else score <= threshold)
