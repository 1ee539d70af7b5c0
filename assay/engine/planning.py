"""Planning: the catalog behind the plan, and the checks that need both plan and items."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import orjson
import polars as pl

from assay.contracts.json_text import dump_json, parse_json
from assay.contracts.tables import EVERY_TURN, ITEMS
from assay.engine.pairing import FIELD
from assay.errors import ConfigError, list_names
from evaluators.contract import EmbeddingEvaluator, JudgeEvaluator
from transforms.fields import MAPPED_JSON, list_sources
from transforms.mapping import FieldCheck
from transforms.plan import Planner, PlanRequest
from transforms.prompts import parse_prompt
from transforms.templates import Reference, Template, parse_template
from transforms.values import SAMPLE_PREFIX, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.config import RunConfig
    from assay.contracts.json_text import JsonValue
    from assay.engine.intake import Intake
    from evaluators.catalog import Catalog, Evaluation
    from transforms.items import Items

GRADERS = ("PythonGrader", "MultiGrader")  # what a dataset says of their network does not count
PAIRWISE = "Pairwise"  # what compares the answers of a run with those of another
STANDARD_NAMES = {
    "query": "query or prompt",
    "response": "response",
    "expected_response": "ground_truth or expected_response",
    "context": "context",
    "messages": "messages",
    "tool_definitions": "tool_definitions",
}


class Planning:
    """The plan of a run, made block by block, with what has to be known before any call."""

    def __init__(self, config: RunConfig, intake: Intake, catalog: Catalog) -> None:
        """Take what was asked for.

        Raises:
            ConfigError: An override names an unknown evaluator, or a mapping reads answers that will not
                exist.
        """
        self._config, self._intake, self._catalog = config, intake, catalog
        self._has_target = config.target.kind != "stored" or intake.answers is not None
        own = [each.name for each in catalog.own if each.name not in config.evaluators]
        named = {catalog.label(name, where="--evaluators").partition(":")[0] for name in config.evaluators}
        if config.against is not None and PAIRWISE not in named:
            own.append(PAIRWISE)
        request = PlanRequest(
            evaluators=(*config.evaluators, *own),
            add=config.add_evaluators or not config.evaluators,
            options=config.options,
            mapping=intake.mapping,
            has_judge=config.judge is not None,
            implied={name: {"allow_network": config.allow_graders_network} for name in GRADERS},
        )
        self._planner = Planner(request, catalog)
        self._checks: dict[str, FieldCheck] = {}
        self._due: set[str] = set()
        self._looks: dict[tuple[str, tuple[str, ...], str], None] = {}
        self._absent: dict[Reference, None] = {}
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
        for (label, sha), (evaluation, mapping_json) in self._planner.take_fresh().items():
            if (key := f"{label} {sha}") not in self._due:
                self._due.add(key)
                self._add(evaluation, mapping_json)
        self._first_item = self._first_item or items.table["item_json"][0]
        for column in set(items.table.columns) - self._filled:
            if items.table[column].null_count() < items.table.height:
                self._filled.add(column)
        for check in self._checks.values():
            check.look(items.table)
        if self._absent:
            found = read_json(items.table, self._absent)
            self._absent = {place: None for place in self._absent if found[place].missing.all()}
        self._check_lists(items.table)
        return plan

    def _add(self, evaluation: Evaluation, mapping_json: str) -> None:
        """Check what can be told of an evaluation at once, and note what needs all items."""
        _check_judge(evaluation, self._config)
        evaluation.options.check_setup()
        self._add_check(mapping_json)
        look = (evaluation.label, evaluation.needs, mapping_json)
        if look not in self._looks:
            self._looks[look] = None
            sources = [source for field in evaluation.needs for source in list_sources(field)]
            self._absent |= {source: None for source in sources if isinstance(source, Reference)}

    def _check_lists(self, items: pl.DataFrame) -> None:
        """Refuse texts where a mapping promises messages, calls or definitions, which are lists."""
        for key, text in self._intake.mapping.items():
            field = key.rpartition(".")[2]
            reference = parse_template(text, where=f"mapping {field}").sole
            if field not in MAPPED_JSON or reference is None or reference.root != "item":
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
        for label, needs, mapping_json in self._looks:
            self._check_fields(label, needs, restore_mapping(mapping_json))

    def list_evaluations(self) -> list[str]:
        """Return what is evaluated, whatever the items, sorted."""
        return sorted(self._due)

    def _is_given(self, field: str) -> bool:
        """Whether a field may have a value somewhere; answers to come may hold anything."""
        if field.rpartition(".")[2] == "response":
            return self._has_target or "response" in self._filled
        if field.rpartition(".")[2] == FIELD:
            places = (source for source in list_sources(field) if isinstance(source, Reference))
            return self._config.against is not None or any(each not in self._absent for each in places)
        return any(
            source not in self._absent
            if isinstance(source, Reference)
            else source.startswith(SAMPLE_PREFIX) or source in self._filled or source not in ITEMS.columns
            for source in list_sources(field)
        )

    def _check_fields(self, label: str, needs: tuple[str, ...], mapping: Mapping[str, Template]) -> None:
        """Refuse an evaluator that would skip every item for want of a field."""
        for field in needs:
            if field in mapping or self._is_given(field):
                continue
            sources = parse_json(self._first_item)
            columns = list_names(sources) if isinstance(sources, dict) else "none"
            if field == "response":
                raise ConfigError(
                    f"no item has a stored response; the data has: {columns}; name its column with "
                    "--mapping response=COLUMN, give --responses FILE, or a target: --model MODEL "
                    "--base-url URL"
                )
            more = ", or the run whose answers they are with --against RUN" if field == FIELD else ""
            raise ConfigError(
                f"{label} needs {field}, which no item has (standard name: "
                f"{STANDARD_NAMES.get(field, field)}); the data has: {columns}; name its column with "
                f"--mapping {field}=COLUMN{more}"
            )


def restore_evaluation(row: Mapping[str, object], catalog: Catalog) -> Evaluation:
    """Return the evaluation of a PLAN row."""
    return _restore(str(row["evaluator"]), str(row["options_json"]), row["threshold"], catalog)


@lru_cache(maxsize=1024)  # batch after batch has the same few
def _restore(label: str, options_json: str, threshold: object, catalog: Catalog) -> Evaluation:
    given: dict[str, JsonValue] = orjson.loads(options_json)
    if isinstance(threshold, float):
        given[catalog.find(label.partition(":")[0]).threshold_names[0]] = threshold
    return catalog.resolve(label, given, where="plan")


def restore_mapping(mapping_json: str) -> dict[str, Template]:
    """Return the compiled templates of a PLAN row."""
    texts = parse_json(mapping_json)
    pairs = texts.items() if isinstance(texts, dict) else ()
    return {field: parse_template(str(text), where=f"mapping {field}") for field, text in pairs}


def is_judge(evaluation: Evaluation) -> bool:
    """Whether the evaluation asks a model, to judge or to embed."""
    return isinstance(evaluation.evaluator, JudgeEvaluator | EmbeddingEvaluator)


def count_evaluations(plan: pl.DataFrame, samples: pl.DataFrame, catalog: Catalog) -> tuple[int, int]:
    """Return how many evaluations a plan holds over samples, and how many of them ask a judge.

    Args:
        plan: PLAN.
        samples: Columns item_id and turn, one row per answer to come.
        catalog: The evaluators.
    """
    weights = samples.group_by("item_id", "turn").len("answers")
    counts = (
        plan.join(weights, on=["item_id", "turn"], how="left")
        .with_columns(answers=pl.when(pl.col("turn") == EVERY_TURN).then(samples.height).otherwise("answers"))
        .group_by("evaluator", "options_json", "threshold")
        .agg(pl.col("answers").sum())
    )
    judged = [
        int(row["answers"])
        for row in counts.iter_rows(named=True)
        if isinstance(restore_evaluation(row, catalog).evaluator, JudgeEvaluator)
    ]
    return int(counts["answers"].sum()), sum(judged)


def _check_judge(evaluation: Evaluation, config: RunConfig) -> None:
    if isinstance(evaluation.evaluator, JudgeEvaluator) and config.judge is None:
        raise ConfigError(
            f"{evaluation.label} asks a judge; name one with --judge MODEL (and --judge-base-url URL), "
            "or choose evaluators that need none with --evaluators"
        )
    if isinstance(evaluation.evaluator, EmbeddingEvaluator) and config.embeddings is None:
        raise ConfigError(
            f"{evaluation.label} compares vectors; name the model that makes them with --embedding-model "
            "MODEL (and --embedding-base-url URL), or choose evaluators that need none with --evaluators"
        )
