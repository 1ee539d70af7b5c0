"""BinaryClassification: whether the answer is the expected class, with figures about one class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from evaluators.confusion import name_metric, order_figures, rate, read_pairs
from evaluators.contract import Aggregate, Options, RowEvaluator, Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from evaluators.contract import Fields


class BinaryClassificationOptions(Options):
    """Options of BinaryClassification."""

    compat: Literal["uipath"] | None = Field(
        default=None, description="`uipath`: labels keep white space around them"
    )
    positive_class: str = Field(
        min_length=1, description="the class that precision, recall and F-score are about; all others are one"
    )
    metric_type: Literal["precision", "recall", "f-score"] = Field(
        default="precision", description="the figure that stands first"
    )
    f_value: float = Field(
        default=1.0,
        gt=0,
        le=1000,
        allow_inf_nan=False,
        description="how much more recall counts in the F-score",
    )


def compare_classes(options: BinaryClassificationOptions, fields: Fields) -> Verdict:
    """Score 1 where both fields are the same label, case and white space around them aside, else 0."""
    expected, actual = (
        fold_label(fields[name] or "", exact=options.compat is not None)
        for name in ("expected_response", "response")
    )
    reason = None if expected == actual else f"expected {expected!r}, got {actual!r}"
    details = {"expected_class": expected, "actual_class": actual}
    return Verdict(score=float(expected == actual), reason=reason, details=details)


def fold_label(text: str, *, exact: bool) -> str:
    """Bring a label into the form in which labels are compared: `exact` as UiPath does."""
    return text.lower() if exact else text.strip().casefold()


def sum_up(options: BinaryClassificationOptions, rows: pl.DataFrame) -> Sequence[Aggregate]:
    """Return precision, recall and F-score of the positive class, the chosen one first.

    The first carries the counts in its details. All are None where no row was scored.
    """
    positive = fold_label(options.positive_class, exact=options.compat is not None)
    pairs = [(expected == positive, actual == positive) for expected, actual in read_pairs(rows)]
    hits, missed, false = (pairs.count(kind) for kind in ((True, True), (True, False), (False, True)))
    details = {
        "positive_class": options.positive_class,
        "f_value": options.f_value,
        "confusion_matrix": [[hits, false], [missed, pairs.count((False, False))]],
        "n_scored": len(pairs),
    }
    figures = order_figures(options.metric_type, rate(hits, false, missed, options.f_value))
    return [
        Aggregate(
            name_metric(name, beta=options.f_value), value if pairs else None, details if place == 0 else None
        )
        for place, (name, value) in enumerate(figures)
    ]


EVALUATOR = RowEvaluator(
    name="BinaryClassification",
    summary="Whether the answer is the expected class; precision, recall and F-score of the positive class.",
    aliases=("binary_classification", "uipath-binary-classification"),
    needs=("response", "expected_response"),
    options=BinaryClassificationOptions,
    judge=compare_classes,
    aggregate=sum_up,
)
