"""What an evaluator is: three kinds behind one description, and the verdict they give."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt
    import polars as pl
    from polars._typing import PolarsDataType as PolarsType

    from assay.contracts.chat import Chat
    from evaluators.judging import Rubric

    Vectors = npt.NDArray[np.float32]
    Embed = Callable[[Sequence[str]], Awaitable[Vectors]]

FIELDS: tuple[str, ...] = (
    "query",
    "response",
    "response_b",
    "expected_response",
    "context",
    "messages",
    "tool_calls",
    "tool_definitions",
    "output_items",
    "retrieval",
    "tool_evidence",
    "retrieved_documents",
    "retrieval_ground_truth",
    "actions",
    "expected_actions",
    "latency_ms",
    "cost_usd",
    "item",
)
"""Fields an evaluator may read; `transforms.fields` says where each comes from."""


class Options(BaseModel):
    """Options of one evaluator; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    @property
    def keeps_blank(self) -> bool:
        """Whether a blank reference is text to compare with, not a missing field."""
        return False

    @property
    def extra_needs(self) -> tuple[str, ...]:
        """Fields that these options need on top of what the evaluator always needs."""
        return ()

    @property
    def extra_wants(self) -> tuple[str, ...]:
        """Fields that these options read, when they are there, on top of what the evaluator always reads."""
        return ()

    @property
    def asks_model(self) -> bool:
        """Whether these options need the evaluator in the form that asks a model: `Description.asking`."""
        return False

    @property
    def default_threshold(self) -> float | None:
        """The threshold that follows from these options; None: that of the evaluator."""
        return None

    @property
    def extra_mapping(self) -> dict[str, str]:
        """Field to template, as far as these options say where fields come from."""
        return {}

    def check_setup(self) -> None:
        """Look whether this machine can do what the options ask; called once before any evaluation.

        Raises:
            ConfigError: Something is missing; the message says how to get it.
        """


@dataclass(frozen=True, slots=True)
class Scale:
    """Lowest and highest score; `high` None means unbounded, `whole` refuses fractions."""

    low: float
    high: float | None
    whole: bool = False

    def __contains__(self, score: float) -> bool:
        """Whether a score lies on the scale; NaN never does."""
        inside = score >= self.low and (self.high is None or score <= self.high)
        return inside and not (self.whole and score % 1)

    def __str__(self) -> str:
        """Write the scale as `0..1`, `0..`, `1.. in whole numbers` or `any number`."""
        if self.low == -math.inf:
            return "any number"
        if self.low == self.high:
            return f"{self.low:g}"
        high = "" if self.high is None else f"{self.high:g}"
        return f"{self.low:g}..{high}{' in whole numbers' if self.whole else ''}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one evaluation says about one row.

    Attributes:
        score: Number on the evaluator's scale; None when it gives only a label or nothing.
        label: Short text verdict.
        reason: Why, for a person.
        details: Facts for a machine, stored as JSON.
        prompt_sha: Hash of the prompt template, for judges.
    """

    score: float | None
    label: str | None = None
    reason: str | None = None
    details: Mapping[str, object] | None = None
    prompt_sha: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One figure about all rows of a slice, beside mean and pass rate.

    Attributes:
        metric: What it is, such as `f_score.macro`.
        value: The figure; None when nothing was there to count.
        details: Facts for a machine, such as a confusion matrix.
    """

    metric: str
    value: float | None
    details: Mapping[str, object] | None = None


O = TypeVar("O", bound=Options)  # noqa: E741 - the option model of one evaluator
Fields: TypeAlias = "Mapping[str, str | None]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Generic[O]):
    """What all evaluators say about themselves.

    Attributes:
        name: Canonical name, stored with every score.
        summary: One sentence for lists and help.
        aliases: Names other systems use for it.
        needs: Fields that must be there; a null one skips the row.
        wants: Fields that are read when they are there.
        json_fields: Those of its fields that come as JSON text, so that values keep their type; the
            others come as text.
        options: Model of the options.
        templates: Options that say where a field comes from, and that field.
        metric: Name of the figure in the scores; empty: the evaluator's own.
        scale: Range of the score.
        higher_is_better: Direction of the scale.
        threshold: Default threshold; a score that reaches it passes. None: no verdict without one.
        thresholds: Range of an acceptable threshold; None: the scale.
        threshold_names: What the threshold is called among the options.
        aggregate: From options and the scores of a slice (`score`, `label`, `passed`, `status`,
            `details_json`) to figures about all of them; None: mean and pass rate are enough.
        asking: The same evaluator as it works where its options ask a model; None: it has one form.
        levels: `turn`, `conversation` or both.
        version: Raised when the same input may score differently.
    """

    name: str
    summary: str
    aliases: tuple[str, ...] = ()
    needs: tuple[str, ...]
    wants: tuple[str, ...] = ()
    json_fields: tuple[str, ...] = ()
    options: type[O]
    templates: Mapping[str, str] = field(default_factory=dict[str, str])
    metric: str = ""
    scale: Scale = Scale(0.0, 1.0)
    higher_is_better: bool = True
    threshold: float | None = 1.0
    thresholds: Scale | None = None
    threshold_names: tuple[str, ...] = ("threshold",)
    aggregate: Callable[[O, pl.DataFrame], Sequence[Aggregate]] | None = None
    asking: Evaluator | None = None
    levels: tuple[Literal["turn", "conversation"], ...] = ("turn",)
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnEvaluator(Description[O]):
    """Scores whole columns of text at once.

    Attributes:
        measure: From options and a frame of String columns named by field (no nulls in needed ones)
            to a frame of the same height and order with `score` Float64 and, where it has them,
            `label`, `reason`, `details_json`, `error_code`, `error_message` String. A row with an
            error code is an error, whatever its score.
        row_options: Options that come as columns of that name and type in the frame, one value per row,
            so that rows which differ only in these are measured together. All others are the same for
            all rows of the frame.
    """

    measure: Callable[[O, pl.DataFrame], pl.DataFrame]
    row_options: Mapping[str, PolarsType] = field(default_factory=dict[str, "PolarsType"])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEvaluator(Description[O]):
    """Scores one row of fields in Python, for JSON trees.

    Attributes:
        judge: From options and fields to a verdict. Whatever it raises is the error of its row, a
            CallError with its own code.
    """

    judge: Callable[[O, Fields], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeEvaluator(Description[O]):
    """Asks a model about one row.

    Attributes:
        ask: From options, fields and a chat to a verdict. Raises CallError for a call or answer
            that cannot be used; never returns a default score.
        rubrics: What the judge is told, call by call, where that is the same for all options; for lists.
    """

    ask: Callable[[O, Fields, Chat], Awaitable[Verdict]]
    threshold: float | None = 3.0
    scale: Scale = field(default=Scale(1.0, 5.0))
    rubrics: tuple[Rubric, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingEvaluator(Description[O]):
    """Scores whole columns of text by the vectors that a model makes of them.

    Attributes:
        measure: As that of a ColumnEvaluator, with a function that turns texts, none of them empty, into
            the rows of an array; it raises CallError when the endpoint cannot.
    """

    measure: Callable[[O, pl.DataFrame, Embed], Awaitable[pl.DataFrame]]


Evaluator: TypeAlias = (
    "ColumnEvaluator[Any] | RowEvaluator[Any] | JudgeEvaluator[Any] | EmbeddingEvaluator[Any]"
)
