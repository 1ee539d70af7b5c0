"""MultiGrader: a formula over the scores of several graders, as the grader multi of OpenAI."""

from __future__ import annotations

import asyncio
import keyword
import math
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

import orjson
import polars as pl
from pydantic import Field, JsonValue, model_validator

from assay.errors import CallError, ConfigError, list_names
from evaluators import label_model, python_grader, score_model, string_check, text_similarity
from evaluators.contract import ColumnEvaluator, EmbeddingEvaluator, JudgeEvaluator, Options, Scale, Verdict
from evaluators.formula import FUNCTIONS, parse_formula
from evaluators.runner import run_evaluation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.contracts.chat import Chat
    from evaluators.catalog import Evaluation
    from evaluators.contract import Fields

_KINDS: Final = {
    "string_check": string_check.EVALUATOR,
    "text_similarity": text_similarity.EVALUATOR,
    "python": python_grader.EVALUATOR,
    "label_model": label_model.EVALUATOR,
    "score_model": score_model.EVALUATOR,
}
_GRADED = pl.Schema({"score": pl.Float64, "code": pl.String, "message": pl.String})
_SUMMARY = "A formula over the scores of several graders, as the grader multi of OpenAI."


class MultiGraderOptions(Options):
    """Options of MultiGrader."""

    graders: dict[str, dict[str, JsonValue]] = Field(
        min_length=1,
        description="key to grader as for OpenAI, of type string_check, text_similarity, python, label_model "
        "or score_model",
    )
    calculate_output: str = Field(
        description="formula over the keys: numbers, + - * / ^, brackets, min max abs floor ceil exp sqrt log"
    )
    allow_network: bool = Field(
        default=False, description="whether Python graders keep the network, as --allow-graders-network says"
    )

    @cached_property
    def parts(self) -> dict[str, Evaluation]:
        """The graders, checked, by key."""
        return {key: self._resolve(key, grader) for key, grader in self.graders.items()}

    @property
    def extra_needs(self) -> tuple[str, ...]:
        """What the graders need, such as `key.response`."""
        return tuple(f"{key}.{field}" for key, part in self.parts.items() for field in part.needs)

    @property
    def extra_wants(self) -> tuple[str, ...]:
        """What the graders read, such as `key.tool_calls`."""
        return tuple(f"{key}.{field}" for key, part in self.parts.items() for field in part.fields)

    @property
    def extra_mapping(self) -> dict[str, str]:
        """Where the graders' `input` and `reference` come from."""
        return {
            f"{key}.{field}": text for key, part in self.parts.items() for field, text in part.mapping.items()
        }

    @property
    def asks_model(self) -> bool:
        """Whether one of the graders does."""
        return any(isinstance(part.evaluator, JudgeEvaluator) for part in self.parts.values())

    def check_setup(self) -> None:
        """Look whether every grader can run.

        Raises:
            ConfigError: One of them cannot.
        """
        for key, part in self.parts.items():
            try:
                part.options.check_setup()
            except ConfigError as error:
                raise ConfigError(f"{_place(key)}: {error}") from error

    @model_validator(mode="after")
    def _check_parts(self) -> Self:
        for key in self.graders:
            if not key.isidentifier() or keyword.iskeyword(key) or key in FUNCTIONS:
                raise ConfigError(
                    f"MultiGrader.graders: key {key!r} cannot stand in a formula; a key is letters, digits "
                    f"and _, no digit first, and none of {list_names(FUNCTIONS)}"
                )
        try:
            parse_formula(self.calculate_output, self.parts)
        except ValueError as error:
            raise ConfigError(f"MultiGrader.calculate_output: {error}") from error
        return self

    def _resolve(self, key: str, grader: dict[str, JsonValue]) -> Evaluation:
        from evaluators.catalog import Catalog  # which knows this module

        kind, options = grader.get("type"), {n: v for n, v in grader.items() if n not in {"type", "name"}}
        if not isinstance(kind, str) or kind not in _KINDS:
            known = f"{list_names(_KINDS)}; a multi grader holds no other multi"
            raise ConfigError(f"{_place(key)}.type: got {kind!r}, accepted is {known}")
        if kind == "python":
            options["allow_network"] = self.allow_network
        part = Catalog(tuple(_KINDS.values())).resolve(_KINDS[kind].name, options, where=_place(key))
        if isinstance(part.evaluator, EmbeddingEvaluator):
            raise ConfigError(f"{_place(key)}: a multi grader compares no vectors, so cosine stands alone")
        return part


def measure_formula(options: MultiGraderOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score each row with the value of the formula, any finite number.

    Args:
        options: Graders and formula.
        frame: The graders' fields under names such as `key.response`.

    Returns:
        `score`, `details_json` with the score of each key, and `error_code` and `error_message` of rows
        where a grader failed, named by its key, or where the formula has no finite value.

    Raises:
        ConfigError: This system cannot cut a Python grader off the network.
    """
    results = {key: asyncio.run(_grade(key, part, frame)) for key, part in options.parts.items()}
    return _apply_formula(options, results)


async def ask_formula(options: MultiGraderOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score one row with the value of the formula, where some of the graders ask the judge.

    Raises:
        CallError: A grader failed, named by its key, or the formula has no finite value.
        ConfigError: This system cannot cut a Python grader off the network.
    """
    frame = pl.DataFrame([fields], schema=dict.fromkeys(fields, pl.String))
    results: dict[str, pl.DataFrame] = {}
    details: dict[str, object] = {}
    for key, part in options.parts.items():
        if not isinstance(part.evaluator, JudgeEvaluator):
            results[key] = await _grade(key, part, frame)
            continue
        own = {field: fields[f"{key}.{field}"] for field in part.fields}
        try:
            verdict = await part.evaluator.ask(part.options, own, chat)
        except CallError as error:
            raise CallError(error.code, f"{key}: {error.message}", reply=error.reply) from error
        results[key] = pl.DataFrame([{"score": verdict.score}], schema=_GRADED)
        details[key] = {"label": verdict.label, "reason": verdict.reason, **(verdict.details or {})}
    row = _apply_formula(options, results).row(0, named=True)
    if row["error_code"] is not None:
        raise CallError(row["error_code"], row["error_message"], attempts=0)
    return Verdict(row["score"], details={**orjson.loads(row["details_json"]), "judged": details})


def _apply_formula(options: MultiGraderOptions, results: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return what the formula makes of the scores of the graders; see `measure_formula`."""
    scores = pl.DataFrame({key: result["score"] for key, result in results.items()})
    failures = {
        name: pl.coalesce([result[name] for result in results.values()]) for name in ("code", "message")
    }
    formula = parse_formula(options.calculate_output, options.parts)
    value, failed = pl.col("value"), pl.col("code").is_not_null()
    worthless = pl.when(~value.is_finite())
    return (
        scores.select(pl.struct(pl.all()).struct.json_encode().alias("details_json"), value=formula)
        .with_columns(**failures)
        .select(
            "details_json",
            score=pl.when(~failed & value.is_finite()).then(value),
            error_code=pl.coalesce("code", worthless.then(pl.lit("invalid_result"))),
            error_message=pl.coalesce(
                "message", worthless.then(pl.format("calculate_output gives {}, not a finite number", value))
            ),
        )
    )


async def _grade(key: str, part: Evaluation, frame: pl.DataFrame) -> pl.DataFrame:
    """Return the score of one grader, and code and message where it has none."""
    fields = frame.select(pl.col(f"{key}.{field}").alias(field) for field in part.fields)
    result = await run_evaluation(part, fields, None)
    reason = pl.coalesce("error_message", "reason", pl.lit("no score"))
    without = pl.when(pl.col("score").is_null())
    return result.select(
        "score",
        code=without.then(pl.coalesce("error_code", pl.lit("grader_skipped"))),
        message=without.then(pl.format("{}: {}", pl.lit(key), reason)),
    )


def _place(key: str) -> str:
    return f"MultiGrader.graders.{key}"


_NEEDS = ("item",)  # always there; the rest is up to the graders
_JSON = ("item", "tool_calls", "output_items")
_ASKING = JudgeEvaluator(
    name="MultiGrader",
    summary=_SUMMARY,
    needs=_NEEDS,
    json_fields=_JSON,
    options=MultiGraderOptions,
    scale=Scale(-math.inf, None),
    threshold=None,
    ask=ask_formula,
)
EVALUATOR = ColumnEvaluator(
    name="MultiGrader",
    summary=_SUMMARY,
    aliases=("multi", "multi_grader"),
    needs=_NEEDS,
    json_fields=_JSON,
    options=MultiGraderOptions,
    scale=Scale(-math.inf, None),
    threshold=None,
    threshold_names=("threshold", "pass_threshold"),
    measure=measure_formula,
    asking=_ASKING,
)
