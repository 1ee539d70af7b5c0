"""The runner: one evaluation over many rows; it alone knows thresholds, errors, skips, time and usage."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, assert_never

import polars as pl

from assay.chat.pool import run_jobs
from assay.contracts.json_text import dump_json
from assay.contracts.tables import SCORES, Status
from assay.errors import CallError, ConfigError, SetupError, UndecidedError
from evaluators.contract import ColumnEvaluator, JudgeEvaluator, RowEvaluator

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from assay.contracts.chat import Chat, ChatReply, ChatRequest
    from evaluators.catalog import Evaluation
    from evaluators.contract import Fields, Options, Verdict

R = TypeVar("R")
_Outcome: TypeAlias = "dict[str, object]"  # some columns of RESULT, for one row

_IDENTITY = ("run_id", "item_id", "turn", "trial", "level", "evaluator", "options_sha")
RESULT = pl.Schema(
    {"row": pl.UInt32} | {name: dtype for name, dtype in SCORES.columns.items() if name not in _IDENTITY}
)
"""Columns of a result: the row, then those of SCORES that do not say whose score it is."""


@dataclass(frozen=True, slots=True)
class Judging:
    """How a judge is asked.

    Attributes:
        chat: The model.
        concurrency: Rows under way at one time.
        on_done: Called after each row that was put to the judge.
    """

    chat: Chat
    concurrency: int
    on_done: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Job:
    row: int
    fields: Fields


@dataclass(frozen=True, slots=True)
class _Failure:
    error_code: str
    error_message: str


class _Recorder:
    """A chat that keeps the replies, so that those of a failed row are counted too."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self.replies: list[ChatReply] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await self._chat.complete(request)
        self.replies.append(reply)
        return reply


async def run_evaluation(evaluation: Evaluation, rows: pl.DataFrame, judging: Judging | None) -> pl.DataFrame:
    """Evaluate every row.

    A row with an `error_code` is an error and is never evaluated; else one that lacks a needed field is
    skipped with the field in its reason; else it is scored, or an error when the evaluator fails on it. A
    blank reference counts as missing unless the options keep it.

    Args:
        evaluation: What to do.
        rows: String columns named by field, an absent one standing for nulls, and `error_code` and
            `error_message` of answers or mappings that failed.
        judging: How to ask a judge; only judge evaluators need it.

    Returns:
        RESULT, one row per row in the same order. The score is never NaN.

    Raises:
        ConfigError: A judge evaluator without `judging`.
        EndpointError: The judge's key, model or URL are wrong.
    """
    marked = _mark_rows(evaluation, rows)
    fit = pl.col("status") == "ok"
    measured = await _measure(evaluation, marked.filter(fit).select("row", *evaluation.fields), judging)
    failed = pl.col("error_code").is_not_null()
    status = pl.when(failed).then(pl.lit("error")).otherwise(pl.lit("ok")).cast(Status)
    every = pl.concat([_complete(marked.filter(~fit)), measured.with_columns(status=status)])
    return _finish(evaluation, every.sort("row"))


def _mark_rows(evaluation: Evaluation, rows: pl.DataFrame) -> pl.DataFrame:
    """Number the rows, add absent fields, and say for each whether it is an error, skipped or ok."""
    names = dict.fromkeys((*evaluation.fields, "error_code", "error_message"))
    absent = pl.lit(None)
    columns = [
        (pl.col(name) if name in rows.columns else absent).cast(pl.String).alias(name) for name in names
    ]
    missing = [pl.when(_is_missing(name, evaluation)).then(pl.lit(f"no {name}")) for name in evaluation.needs]
    error = pl.col("error_code").is_not_null()
    return (
        rows.with_columns(columns)
        .select(*names)
        .with_row_index("row")
        .with_columns(reason=pl.when(~error).then(pl.coalesce(missing)))
        .with_columns(
            status=pl.when(error)
            .then(pl.lit("error"))
            .when(pl.col("reason").is_not_null())
            .then(pl.lit("skipped"))
            .otherwise(pl.lit("ok"))
        )
    )


def _is_missing(name: str, evaluation: Evaluation) -> pl.Expr:
    field = pl.col(name)
    if name == "expected_response" and not evaluation.options.keeps_blank:
        return field.is_null() | (field.str.strip_chars() == "")
    return field.is_null()


async def _measure(evaluation: Evaluation, due: pl.DataFrame, judging: Judging | None) -> pl.DataFrame:
    """Run the evaluator over rows that lack nothing; a failure is the `error_code` of its rows."""
    evaluator, options = evaluation.evaluator, evaluation.options
    match evaluator:
        case ColumnEvaluator():
            return await _measure_columns(evaluator, options, due)
        case RowEvaluator():

            async def compare(fields: Fields) -> Verdict:
                return evaluator.judge(options, fields)

            return _gather([await _measure_row(job, compare) for job in _list_jobs(due)])
        case JudgeEvaluator():
            if judging is None:
                raise ConfigError(f"{evaluation.label} needs a judge: --judge MODEL")
            return _gather(await _ask_rows(evaluator, options, due, judging))
        case _:
            assert_never(evaluator)


async def _measure_columns(
    evaluator: ColumnEvaluator[Any], options: Options, due: pl.DataFrame
) -> pl.DataFrame:
    async def measure() -> pl.DataFrame:
        measured = evaluator.measure(options, due.drop("row"))
        if measured.height != due.height:
            raise ValueError(f"{measured.height} scores for {due.height} rows")
        told = [name for name in ("label", "reason", "details_json") if name in measured.columns]
        return _complete(due.select("row").with_columns(measured.select("score", *told)))

    measured = await _attempt(measure()) if due.height else _complete(due)
    if isinstance(measured, _Failure):
        code, message = pl.lit(measured.error_code), pl.lit(measured.error_message)
        return _complete(due.select("row", error_code=code, error_message=message))
    return measured


async def _ask_rows(
    evaluator: JudgeEvaluator[Any], options: Options, due: pl.DataFrame, judging: Judging
) -> list[_Outcome]:
    async def ask_row(job: _Job) -> _Outcome:
        recorder = _Recorder(judging.chat)

        async def ask(fields: Fields) -> Verdict:
            return await evaluator.ask(options, fields, recorder)

        started = time.perf_counter()
        outcome = await _measure_row(job, ask)
        latency_ms = (time.perf_counter() - started) * 1000
        judging.on_done()
        paid = {} if "score" in outcome else _describe_replies(recorder.replies)
        return outcome | paid | {"latency_ms": latency_ms}

    return await run_jobs(_list_jobs(due), ask_row, judging.concurrency)


async def _measure_row(job: _Job, ask: Callable[[Fields], Awaitable[Verdict]]) -> _Outcome:
    async def describe() -> _Outcome:
        return _describe_verdict(await ask(job.fields))

    outcome: _Outcome = {"row": job.row}
    described = await _attempt(describe())
    return outcome | (asdict(described) if isinstance(described, _Failure) else described)


async def _attempt(work: Awaitable[R]) -> R | _Failure:
    """Turn what an evaluator raises into a failure of its rows; faults of the set-up pass through."""
    try:
        return await work
    except (SetupError, UndecidedError):
        raise
    except CallError as error:
        return _Failure(error.code, error.message)
    except Exception as error:  # noqa: BLE001 - whatever an evaluator raises belongs to its row
        return _Failure("evaluator_error", f"{type(error).__name__}: {error}")


def _describe_verdict(verdict: Verdict) -> _Outcome:
    return {
        "score": None if verdict.score is None else float(verdict.score),
        "label": verdict.label,
        "reason": verdict.reason,
        "details_json": None if verdict.details is None else dump_json(verdict.details),
        "prompt_sha": verdict.prompt_sha,
    } | _describe_replies(verdict.replies)


def _describe_replies(replies: Sequence[ChatReply]) -> _Outcome:
    """Name the model that spoke last, and add up tokens; null where no reply tells them."""
    spent = [reply.input_tokens for reply in replies if reply.input_tokens is not None]
    written = [reply.output_tokens for reply in replies if reply.output_tokens is not None]
    return {
        "judge_model": replies[-1].model if replies else None,
        "input_tokens": sum(spent) if spent else None,
        "output_tokens": sum(written) if written else None,
    }


def _list_jobs(due: pl.DataFrame) -> list[_Job]:
    names = due.columns[1:]
    return [_Job(row, dict(zip(names, values, strict=True))) for row, *values in due.iter_rows()]


def _gather(outcomes: Sequence[_Outcome]) -> pl.DataFrame:
    return pl.DataFrame(outcomes, schema=RESULT)


def _complete(frame: pl.DataFrame) -> pl.DataFrame:
    """Return exactly the columns of RESULT, nulls where `frame` has none."""
    return frame.select(
        pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in RESULT.items()
    )


def _finish(evaluation: Evaluation, frame: pl.DataFrame) -> pl.DataFrame:
    """Add what holds for all rows, and the pass: the threshold itself passes, no score gives no verdict."""
    evaluator = evaluation.evaluator
    score, threshold = pl.col("score"), pl.lit(evaluation.threshold, pl.Float64)
    return frame.with_columns(
        score=score.fill_nan(None),
        metric=pl.lit(evaluator.name),
        evaluator_version=pl.lit(evaluator.version, pl.Int32),
        threshold=threshold,
    ).with_columns(passed=score >= threshold if evaluator.higher_is_better else score <= threshold)
