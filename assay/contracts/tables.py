"""The tables that pass between stages, and `conform`, which checks them at every boundary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from assay.errors import ContractError, list_names

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMA_VERSION = 1

Status = pl.Enum(["ok", "error", "skipped"])
Level = pl.Enum(["turn", "conversation"])
RunStatus = pl.Enum(["complete", "partial", "failed"])
JudgeHealth = pl.Enum(["ok", "unhealthy"])
Timestamp = pl.Datetime("us", "UTC")
NOT_APPLICABLE = "not_applicable"  # error_code of a skipped evaluation that has nothing to judge in its row
NOT_DUE = "not_due"  # error_code of a skipped evaluation that another one settled
EVERY_ITEM = "*"  # item_id of a plan row that holds for every item of the run; its turn says so:
EVERY_TURN = -1


@dataclass(frozen=True, slots=True)
class Table:
    """A named table with its columns in order.

    Attributes:
        name: Name in the store and in SQL.
        columns: Column name to Polars type, in order.
        nullable: Columns that may hold nulls.
        key: Columns that together identify a row.
    """

    name: str
    columns: Mapping[str, pl.DataType]
    nullable: frozenset[str]
    key: tuple[str, ...]

    def empty(self) -> pl.DataFrame:
        """Return the table without rows."""
        return pl.DataFrame(schema=dict(self.columns))


def make_table(name: str, key: str, **columns: pl.DataType | type[pl.DataType]) -> Table:
    """Return a table; a column name that ends in `_` may hold nulls (the mark is dropped)."""
    types = {column.removesuffix("_"): dtype for column, dtype in columns.items()}
    nullable = frozenset(column.removesuffix("_") for column in columns if column.endswith("_"))
    return Table(name, pl.Schema(types), nullable, tuple(key.split()))


ROWS = make_table(
    "rows",
    "item_index turn",
    item_index=pl.Int64,  # position of the item in its file; its turns share it
    turn=pl.Int32,
    turn_count=pl.Int32,
    source_file=pl.String,
    source_line_=pl.Int64,
    id_=pl.String,
    name_=pl.String,
    category_=pl.String,
    tags_=pl.List(pl.String),
    notes_=pl.String,
    query_=pl.String,
    expected_response_=pl.String,
    context_=pl.String,
    response_=pl.String,
    messages_json_=pl.String,
    tool_definitions_json_=pl.String,
    output_items_json_=pl.String,
    tool_calls_json_=pl.String,
    seed_json_=pl.String,
    item_json=pl.String,
    evaluators_json_=pl.String,  # list of evaluator uses; null: the file's defaults alone
    evaluators_mode=pl.Enum(["extend", "replace"]),
)

ITEMS = make_table(
    "items",
    "item_id turn",
    item_id=pl.String,
    turn=pl.Int32,
    turn_count=pl.Int32,
    item_sha=pl.String,
    source_file=pl.String,
    name_=pl.String,
    category_=pl.String,
    tags=pl.List(pl.String),
    notes_=pl.String,
    query_=pl.String,
    expected_response_=pl.String,
    context_=pl.String,
    response_=pl.String,
    messages_json_=pl.String,
    tool_definitions_json_=pl.String,
    output_items_json_=pl.String,  # the stored answer as canonical messages, where the file has it so
    tool_calls_json_=pl.String,  # calls of the stored answer, where the file lists them
    seed_json_=pl.String,  # what a conversation is to be simulated from
    item_json=pl.String,
    source_line_=pl.Int64,
)

PLAN = make_table(
    "plan",
    "item_id turn evaluator options_sha",
    item_id=pl.String,
    turn=pl.Int32,
    evaluator=pl.String,
    options_sha=pl.String,
    options_json=pl.String,
    threshold_=pl.Float64,
    level=Level,
    mapping_json=pl.String,
    only_if_=pl.String,  # `EVALUATOR:state,state` of the same item: without one of these it is not due
)

SAMPLES = make_table(
    "samples",
    "run_id item_id turn trial",
    run_id=pl.String,
    item_id=pl.String,
    turn=pl.Int32,
    trial=pl.Int32,
    request_json_=pl.String,
    output_text_=pl.String,
    output_items_json_=pl.String,
    tool_calls_json_=pl.String,
    retrieval_json_=pl.String,
    status=Status,
    error_code_=pl.String,
    error_message_=pl.String,
    finish_reason_=pl.String,
    model_=pl.String,
    input_tokens_=pl.Int64,
    output_tokens_=pl.Int64,
    cached_tokens_=pl.Int64,
    reasoning_tokens_=pl.Int64,
    cost_usd_=pl.Float64,
    latency_ms_=pl.Float64,
    attempts=pl.Int32,
    from_ledger=pl.Boolean,
    started_at_=Timestamp,
    finished_at_=Timestamp,
)

SCORES = make_table(
    "scores",
    "run_id item_id turn trial level evaluator options_sha metric",
    run_id=pl.String,
    item_id=pl.String,
    turn=pl.Int32,
    trial=pl.Int32,
    level=Level,
    evaluator=pl.String,
    options_sha=pl.String,
    metric=pl.String,
    evaluator_version=pl.Int32,
    score_=pl.Float64,
    label_=pl.String,
    passed_=pl.Boolean,
    threshold_=pl.Float64,
    reason_=pl.String,
    details_json_=pl.String,
    status=Status,
    error_code_=pl.String,
    error_message_=pl.String,
    judge_model_=pl.String,
    prompt_sha_=pl.String,
    input_tokens_=pl.Int64,
    output_tokens_=pl.Int64,
    cost_usd_=pl.Float64,
    latency_ms_=pl.Float64,
)

RUNS = make_table(
    "runs",
    "run_id",
    run_id=pl.String,
    name_=pl.String,
    engine=pl.String,
    judge_health_=JudgeHealth,
    dataset_name=pl.String,
    dataset_sha256=pl.String,
    dialect=pl.String,
    target_kind=pl.String,
    target_name=pl.String,
    config_json=pl.String,
    config_sha=pl.String,
    evaluator_set_sha=pl.String,
    judge_model_=pl.String,
    git_commit_=pl.String,
    git_dirty_=pl.Boolean,
    code_version=pl.String,
    schema_version=pl.Int32,
    started_at=Timestamp,
    finished_at=Timestamp,
    status=RunStatus,
    items=pl.Int64,
    samples=pl.Int64,
    samples_error=pl.Int64,
    evaluations=pl.Int64,
    passed=pl.Int64,
    failed=pl.Int64,
    errored=pl.Int64,
    skipped=pl.Int64,
    quarantined_=pl.Int64,  # bad rows that were set aside
    input_tokens=pl.Int64,
    output_tokens=pl.Int64,
    cost_usd_=pl.Float64,
    labels=pl.List(pl.String),
    flow_run_id_=pl.String,
)

SUMMARY = make_table(
    "summary",
    "run_id evaluator metric slice value",
    run_id=pl.String,
    evaluator=pl.String,
    metric=pl.String,
    slice=pl.String,  # "all", or the column that the slice groups by
    value_=pl.String,
    passed=pl.Int64,
    failed=pl.Int64,
    errored=pl.Int64,
    skipped=pl.Int64,
    scored=pl.Int64,
    attempted=pl.Int64,
    mean_=pl.Float64,
    pass_rate_=pl.Float64,
    pass_rate_low_=pl.Float64,  # every error a fail
    pass_rate_high_=pl.Float64,  # every error a pass
    coverage_=pl.Float64,
    details_json_=pl.String,  # of a figure that an evaluator defines itself, such as a confusion matrix
    settled_=pl.Int64,  # of the skipped: those that another evaluator settled, so that nobody was asked
)

CANARIES = make_table(
    "canaries",
    "evaluator canary trial",
    evaluator=pl.String,
    canary=pl.String,  # name of a row whose verdict is known
    trial=pl.Int32,  # which asking of it in the batch
    passed=pl.Boolean,  # whether the verdict is the known one
    expected=pl.String,  # what it is, such as `4..5` or a label
    score_=pl.Float64,
    label_=pl.String,
    reason_=pl.String,
    error_code_=pl.String,
    error_message_=pl.String,
    judge_model_=pl.String,
    prompt_sha_=pl.String,
    input_tokens_=pl.Int64,
    output_tokens_=pl.Int64,
    cost_usd_=pl.Float64,
)


def conform(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Return `frame` with exactly the columns of `table`: ordered, cast and checked.

    Columns that may hold nulls are added when they are absent, so a stage names only what it knows
    and files of an older schema stay readable.

    Args:
        frame: Rows in any column order.
        table: The contract.

    Returns:
        A frame whose schema equals the table's.

    Raises:
        ContractError: A required column is missing or holds nulls, a column is not part of the
            table, or a value does not fit its type.
    """
    extra = [name for name in frame.columns if name not in table.columns]
    missing = [n for n in table.columns if n not in frame.columns and n not in table.nullable]
    if extra or missing:
        names = f"missing [{list_names(missing)}], extra [{list_names(extra)}]"
        raise ContractError(f"table {table.name}: {names}")
    wanted = [
        pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype).alias(name)
        for name, dtype in table.columns.items()
    ]
    try:
        result = frame.select(wanted)
    except pl.exceptions.PolarsError as error:
        raise ContractError(f"table {table.name}: {error}") from error
    holes = [n for n in table.columns if n not in table.nullable and result[n].null_count()]
    if holes:
        raise ContractError(f"table {table.name}: null in [{list_names(holes)}]")
    return result
