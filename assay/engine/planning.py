"""Planning: the catalog behind the plan, and the checks that need both plan and items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import dump_json, parse_json
from assay.contracts.tables import EVERY_TURN
from assay.errors import ConfigError, list_names
from evaluators.catalog import Evaluation, evaluation_label, resolve_evaluation
from evaluators.contract import JudgeEvaluator
from transforms.mapping import DEFAULT_COLUMNS, check_mapping
from transforms.plan import PlanRequest, build_plan
from transforms.templates import Template, parse_template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.config import RunConfig
    from assay.contracts.json_text import JsonValue
    from assay.engine.intake import Intake

STANDARD_NAMES = {
    "query": "query or prompt",
    "response": "response",
    "expected_response": "ground_truth or expected_response",
    "context": "context",
    "messages": "messages",
    "tool_definitions": "tool_definitions",
}


class BuiltInCatalog:
    """The evaluators that come with assay, as the plan asks for them."""

    def label(self, name: str, *, where: str) -> str:
        """Return `CanonicalName` or `CanonicalName:Instance`."""
        return evaluation_label(name, where=where)

    def resolve(self, name: str, options: Mapping[str, JsonValue], *, where: str) -> Evaluation:
        """Return the checked evaluation."""
        return resolve_evaluation(name, options, where=where)


def make_plan(intake: Intake, config: RunConfig) -> pl.DataFrame:
    """Resolve the plan of a run and refuse what cannot work for any row.

    Raises:
        ConfigError: An unknown evaluator, option or field, a mapping to something no item has, a judge
            evaluator without a judge, or a field that an evaluator needs and no item has.
    """
    request = PlanRequest(
        evaluators=config.evaluators,
        add=config.add_evaluators,
        options=config.options,
        mapping=intake.mapping,
        has_judge=config.judge is not None,
    )
    defaults = [document.defaults for document in intake.documents]
    plan = build_plan(intake.items, defaults, request, BuiltInCatalog())
    has_target = config.target.kind != "stored" or intake.answers is not None
    asked = [dump_json({key.rpartition(".")[2]: text}) for key, text in intake.mapping.items()]
    for text in dict.fromkeys((*asked, *plan["mapping_json"])):
        check_mapping(intake.items.table, restore_mapping(text), has_target=has_target)
    for row in plan.unique(["evaluator", "options_sha"], maintain_order=True).iter_rows(named=True):
        evaluation = restore_evaluation(row)
        mapping = restore_mapping(row["mapping_json"])
        _check_judge(evaluation, config)
        _check_fields(evaluation, mapping, intake.items.table, has_target=has_target)
    return plan


def restore_evaluation(row: Mapping[str, object]) -> Evaluation:
    """Return the evaluation of a PLAN row."""
    options = parse_json(str(row["options_json"]))
    given: dict[str, JsonValue] = dict(options) if isinstance(options, dict) else {}
    threshold = row["threshold"]
    if isinstance(threshold, float):
        given["threshold"] = threshold
    return resolve_evaluation(str(row["evaluator"]), given, where="plan")


def restore_mapping(mapping_json: str) -> dict[str, Template]:
    """Return the compiled templates of a PLAN row."""
    texts = parse_json(mapping_json)
    pairs = texts.items() if isinstance(texts, dict) else ()
    return {field: parse_template(str(text), where=f"mapping {field}") for field, text in pairs}


def is_judge(evaluation: Evaluation) -> bool:
    """Whether the evaluation asks a model."""
    return isinstance(evaluation.evaluator, JudgeEvaluator)


def has_judge(plan: pl.DataFrame) -> bool:
    """Whether any evaluation of a plan asks a model."""
    kinds = plan.unique("evaluator").iter_rows(named=True)
    return any(is_judge(restore_evaluation(row)) for row in kinds)


def count_evaluations(plan: pl.DataFrame, samples: pl.DataFrame) -> tuple[int, int]:
    """Return how many evaluations a plan holds over samples, and how many of them ask a judge.

    Args:
        plan: PLAN.
        samples: Columns item_id and turn, one row per answer to come.
    """
    weights = samples.group_by("item_id", "turn").len("answers")
    counts = (
        plan.join(weights, on=["item_id", "turn"], how="left")
        .with_columns(answers=pl.when(pl.col("turn") == EVERY_TURN).then(samples.height).otherwise("answers"))
        .group_by("evaluator", "options_sha")
        .agg(pl.col("answers").sum(), pl.col("options_json", "threshold").first())
    )
    every, judged = 0, 0
    for row in counts.iter_rows(named=True):
        every += row["answers"]
        judged += row["answers"] if is_judge(restore_evaluation(row)) else 0
    return every, judged


def _check_judge(evaluation: Evaluation, config: RunConfig) -> None:
    if is_judge(evaluation) and config.judge is None:
        raise ConfigError(
            f"{evaluation.label} asks a judge; name one with --judge MODEL (and --judge-base-url URL), "
            "or choose evaluators that need none with --evaluators"
        )


def _check_fields(
    evaluation: Evaluation, mapping: Mapping[str, Template], items: pl.DataFrame, *, has_target: bool
) -> None:
    """Refuse an evaluator that would skip every item for want of a field."""
    for field in evaluation.needs:
        column = "response" if field == "response" else DEFAULT_COLUMNS[field]
        if field in mapping or (field == "response" and has_target) or column not in items.columns:
            continue
        if items[column].null_count() < items.height:
            continue
        sources = parse_json(items["item_json"][0])
        columns = list_names(sources) if isinstance(sources, dict) else "none"
        if field == "response":
            raise ConfigError(
                f"no item has a stored response; the data has: {columns}; name its column with --mapping "
                "response=COLUMN, give --responses FILE, or a target: --model MODEL --base-url URL"
            )
        raise ConfigError(
            f"{evaluation.label} needs {field}, which no item has (standard name: "
            f"{STANDARD_NAMES[field]}); the data has: {columns}; name its column with "
            f"--mapping {field}=COLUMN"
        )
