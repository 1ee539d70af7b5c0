"""MulticlassClassification: whether the answer is the expected one of several classes, with averages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from assay.errors import CallError
from evaluators.binary_classification import fold_label
from evaluators.confusion import count_classes, name_metric, order_figures, read_pairs
from evaluators.contract import Aggregate, Options, RowEvaluator, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from evaluators.contract import Fields


class MulticlassClassificationOptions(Options):
    """Options of MulticlassClassification."""

    compat: Literal["uipath"] | None = Field(
        default=None,
        description="`uipath`: an answer that is none of the classes is an error, not a miss, and labels "
        "keep white space around them",
    )
    classes: list[str] = Field(min_length=1, description="all classes")
    metric_type: Literal["precision", "recall", "f-score"] = Field(
        default="f-score", description="the figure that stands first"
    )
    averaging: Literal["macro", "micro"] = Field(
        default="macro", description="every class alike (macro), or every row alike (micro)"
    )
    f_value: float = Field(
        default=1.0,
        gt=0,
        le=1000,
        allow_inf_nan=False,
        description="how much more recall counts in the F-score",
    )


def compare_classes(options: MulticlassClassificationOptions, fields: Fields) -> Verdict:
    """Score 1 where the answer is the expected class, case and white space around it aside, else 0.

    Raises:
        CallError: `unknown_class`, when the expected one is none of the classes; in `compat` also when
            the answer is none.
    """
    exact = options.compat is not None
    classes = {fold_label(name, exact=exact) for name in options.classes}
    expected, actual = (
        fold_label(fields[name] or "", exact=exact) for name in ("expected_response", "response")
    )
    for side, label in (("expected", expected), ("answer", actual)):
        if label not in classes and (exact or side == "expected"):
            raise CallError("unknown_class", f"{side} {label!r} is none of {options.classes}")
    reason = None if expected == actual else f"expected {expected!r}, got {actual!r}"
    details = {"expected_class": expected, "actual_class": actual}
    return Verdict(score=float(expected == actual), reason=reason, details=details)


def sum_up(options: MulticlassClassificationOptions, rows: pl.DataFrame) -> Sequence[Aggregate]:
    """Return averaged precision, recall and F-score, the chosen one first.

    The first carries confusion matrix and figures per class in its details. All are None where no row was
    scored. Macro averages are over all configured classes, those that no row expects among them.
    """
    exact = options.compat is not None
    classes = [fold_label(name, exact=exact) for name in options.classes]
    confusion = count_classes(read_pairs(rows), classes)
    figures = order_figures(options.metric_type, confusion.average(options.averaging, options.f_value))
    return [
        Aggregate(
            name_metric(name, options.averaging, options.f_value),
            value if confusion.scored else None,
            confusion.report(options.f_value) if place == 0 else None,
        )
        for place, (name, value) in enumerate(figures)
    ]


EVALUATOR = RowEvaluator(
    name="MulticlassClassification",
    summary="Whether the answer is the expected one of several classes; averaged precision, recall, F-score.",
    aliases=("multiclass_classification", "uipath-multiclass-classification"),
    needs=("response", "expected_response"),
    options=MulticlassClassificationOptions,
    judge=compare_classes,
    aggregate=sum_up,
)
