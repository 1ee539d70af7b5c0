"""Planning: the catalog behind the plan, and the checks that need both plan and items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.contracts.json_text import dump_json, parse_json
from assay.contracts.tables import EVERY_TURN, ITEMS
from assay.errors import ConfigError, list_names
from evaluators.catalog import Evaluation, evaluation_label, resolve_evaluation
from evaluators.contract import JudgeEvaluator
from transforms.mapping import DEFAULT_COLUMNS, JSON_FIELDS, FieldCheck
from transforms.plan import Planner, PlanRequest
from transforms.prompts import parse_prompt
from transforms.templates import Reference, Template, parse_template
from transforms.values import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.config import RunConfig
    from assay.contracts.json_text import JsonValue
    from assay.engine.intake import Intake
    from transforms.items import Items

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


class Planning:
    """The plan of a run, made block by block, with what has to be known before any call."""

    def __init__(self, config: RunConfig, intake: Intake) -> None:
        """Take what was asked for.

        Raises:
            ConfigError: An override names an unknown evaluator, or a mapping reads answers that will not
                exist.
        """
        self._config, self._intake = config, intake
        self._has_target = config.target.kind != "stored" or intake.answers is not None
        request = PlanRequest(
            evaluators=config.evaluators,
            add=config.add_evaluators,
            options=config.options,
            mapping=intake.mapping,
            has_judge=config.judge is not None,
        )
        self._planner = Planner(request, BuiltInCatalog())
        self._checks: dict[str, FieldCheck] = {}
        self._due: dict[tuple[str, str], Mapping[str, object]] = {}
        self._filled: set[str] = set()
        self._first_item = ""
        declared = {name: Template((Reference("item", (name,)),)) for name in config.reading.json_columns}
        if declared:
            self._checks["json"] = FieldCheck(declared, has_target=False, what="--json-column")
        if config.target.prompt is not None:
            templates = parse_prompt(config.target.prompt).templates
            self._checks["prompt"] = FieldCheck(templates, has_target=False, what="prompt")
        for key, text in intake.mapping.items():
            self._add_check(dump_json({key.rpartition(".")[2]: text}))

    def plan(self, items: Items) -> pl.DataFrame:
        """Return PLAN of a block of items.

        Raises:
            ConfigError: An unknown evaluator, option or field, or a judge evaluator without a judge.
        """
        plan = self._planner.plan_block(items, self._intake.defaults)
        for row in plan.unique(["evaluator", "options_sha"], maintain_order=True).iter_rows(named=True):
            key = (row["evaluator"], row["options_sha"])
            if key not in self._due:
                _check_judge(restore_evaluation(row), self._config)
                self._due[key] = row
                self._add_check(row["mapping_json"])
        self._first_item = self._first_item or items.table["item_json"][0]
        for column in set(items.table.columns) - self._filled:
            if items.table[column].null_count() < items.table.height:
                self._filled.add(column)
        for check in self._checks.values():
            check.look(items.table)
        self._check_lists(items.table)
        return plan

    def _check_lists(self, items: pl.DataFrame) -> None:
        """Refuse texts where a mapping promises messages, calls or definitions, which are lists."""
        for key, text in self._intake.mapping.items():
            field = key.rpartition(".")[2]
            reference = parse_template(text, where=f"mapping {field}").sole
            if field not in JSON_FIELDS or reference is None or reference.root != "item":
                continue
            values = read_json(items, [reference])[reference].values
            row = values.str.starts_with('"').fill_null(value=False).arg_max()
            if row is not None and (values[row] or "").startswith('"'):
                shown = str(reference).removeprefix("item.")
                item, lists = items["item_id"][row], field.replace("_", " ")
                raise ConfigError(
                    f"mapping {field}: column {shown} is text in item {item!r}, expected a list of {lists}; "
                    f"--json-column {shown} reads its texts as JSON"
                )

    def _add_check(self, mapping_json: str) -> None:
        if mapping_json not in self._checks:
            mapping = restore_mapping(mapping_json)
            self._checks[mapping_json] = FieldCheck(mapping, has_target=self._has_target)

    def check(self) -> None:
        """Judge the plan once all blocks were seen.

        Raises:
            ConfigError: Nothing is evaluated, an override that nothing uses, a mapping to something no
                item has, or a field that an evaluator needs and no item has.
        """
        if not self._first_item and self._config.reading.allow_empty:
            return
        self._planner.check()
        if self._intake.answers is not None:
            self._intake.answers.check()
        for check in self._checks.values():
            check.finish()
        for row in self._due.values():
            self._check_fields(restore_evaluation(row), restore_mapping(str(row["mapping_json"])))

    def list_evaluations(self) -> list[str]:
        """Return what is evaluated, whatever the items, sorted."""
        return [f"{name} {sha}" for name, sha in sorted(self._due)]

    def _check_fields(self, evaluation: Evaluation, mapping: Mapping[str, Template]) -> None:
        """Refuse an evaluator that would skip every item for want of a field."""
        for field in evaluation.needs:
            column = "response" if field == "response" else DEFAULT_COLUMNS[field]
            given = field in mapping or (field == "response" and self._has_target)
            if given or column in self._filled or column not in ITEMS.columns:
                continue
            sources = parse_json(self._first_item)
            columns = list_names(sources) if isinstance(sources, dict) else "none"
            if field == "response":
                raise ConfigError(
                    f"no item has a stored response; the data has: {columns}; name its column with "
                    "--mapping response=COLUMN, give --responses FILE, or a target: --model MODEL "
                    "--base-url URL"
                )
            raise ConfigError(
                f"{evaluation.label} needs {field}, which no item has (standard name: "
                f"{STANDARD_NAMES[field]}); the data has: {columns}; name its column with "
                f"--mapping {field}=COLUMN"
            )


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
