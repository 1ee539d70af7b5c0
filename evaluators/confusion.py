"""Figures of a classification: confusion matrix, precision, recall and F-score, per class and averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import orjson
import polars as pl
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from evaluators.contract import Aggregate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Pair: TypeAlias = "tuple[str, str]"  # expected and actual class
Figures: TypeAlias = "Mapping[str, float]"
_METRICS = {"fscore": "f_score", "f-score": "f_score"}  # as configured to the name of the figure


class Aggregator(BaseModel):
    """One figure over all rows that an exact match may be asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    type: Literal["precision", "recall", "fscore", "confusion_matrix"]
    classes: list[str] = Field(min_length=1)
    averaging: Literal["macro", "micro"] = "macro"
    f_value: float = Field(
        default=1.0, gt=0, le=1000, validation_alias=AliasChoices("f_value", "fValue"), allow_inf_nan=False
    )

    @property
    def metric(self) -> str:
        """Name of the figure, such as `f_score.macro` or `f_score.micro.fb2`."""
        return (
            self.type
            if self.type == "confusion_matrix"
            else name_metric(self.type, self.averaging, self.f_value)
        )

    def count(self, pairs: Sequence[Pair], *, exact: bool) -> Aggregate:
        """Return the figure; of a confusion matrix None, where `exact` 0 as UiPath says."""
        confusion = count_classes(pairs, self.classes)
        if self.type == "confusion_matrix":
            return Aggregate(self.metric, 0.0 if exact else None, confusion.describe())
        report = confusion.report(self.f_value)
        details = {**report, "averaging": self.averaging, "f_value": self.f_value}
        value = confusion.average(self.averaging, self.f_value)[_METRICS.get(self.type, self.type)]
        return Aggregate(self.metric, value if confusion.scored or exact else None, details)


@dataclass(frozen=True, slots=True)
class Confusion:
    """How often each class was expected and given.

    Attributes:
        classes: The classes as configured.
        matrix: Rows by given class, columns by expected class (scikit-learn has them the other way round).
        support: Rows that expect each class, those given something that is no class among them.
        total: All rows.
        scored: Rows that expect one of the classes; the others count nowhere.
    """

    classes: Sequence[str]
    matrix: Sequence[Sequence[int]]
    support: Sequence[int]
    total: int
    scored: int

    def count_class(self, place: int) -> dict[str, int]:
        """Return true and false positives and negatives of one class, and its support."""
        hits, given, support = self.matrix[place][place], sum(self.matrix[place]), self.support[place]
        false = {"fp": given - hits, "fn": support - hits}
        return {"tp": hits, "tn": self.scored - given - support + hits, **false, "support": support}

    def average(self, averaging: str, beta: float) -> Figures:
        """Average over classes: each alike (`macro`), or all decisions taken together (`micro`)."""
        counts = [self.count_class(place) for place in range(len(self.classes))]
        if averaging == "micro":
            hits, false, missed = (sum(each[name] for each in counts) for name in ("tp", "fp", "fn"))
            return rate(hits, false, missed, beta)
        rates = [rate(each["tp"], each["fp"], each["fn"], beta) for each in counts]
        return {name: sum(each[name] for each in rates) / len(rates) for name in rates[0]}

    def describe(self) -> dict[str, object]:
        """Return the matrix with its classes and how many rows it counts."""
        return {
            "classes": self.classes,
            "confusion_matrix": self.matrix,
            "n_total": self.total,
            "n_scored": self.scored,
            "n_skipped": self.total - self.scored,
        }

    def report(self, beta: float) -> dict[str, object]:
        """Return the matrix with all figures, per class and averaged both ways."""
        per_class: dict[str, object] = {}
        for place, name in enumerate(self.classes):
            counts = self.count_class(place)
            per_class[name] = {**counts, **rate(counts["tp"], counts["fp"], counts["fn"], beta)}
        averages = {name: self.average(name, beta) for name in ("macro", "micro")}
        return {**self.describe(), "per_class": per_class, **averages}


def count_classes(pairs: Iterable[Pair], classes: Sequence[str]) -> Confusion:
    """Count pairs of expected and given class, case aside.

    A pair that expects none of the classes is left out; a given one that is none of them is a miss of the
    expected class.
    """
    places = {name.casefold(): place for place, name in enumerate(classes)}
    matrix = [[0] * len(classes) for _ in classes]
    support, total = [0] * len(classes), 0
    for expected, actual in pairs:
        total += 1
        wanted, given = places.get(expected.casefold()), places.get(actual.casefold())
        if wanted is None:
            continue
        support[wanted] += 1
        if given is not None:
            matrix[given][wanted] += 1
    return Confusion(classes, matrix, support, total, sum(support))


def rate(hits: int, false: int, missed: int, beta: float) -> Figures:
    """Return precision, recall and F-score; each is 0 where there is nothing to divide by.

    The F-score is (1 + beta^2) * precision * recall / (beta^2 * precision + recall).
    """
    precision = hits / (hits + false) if hits + false else 0.0
    recall = hits / (hits + missed) if hits + missed else 0.0
    weight = beta * beta
    below = weight * precision + recall
    return {
        "precision": precision,
        "recall": recall,
        "f_score": (1 + weight) * precision * recall / below if below else 0.0,
    }


def name_metric(kind: str, averaging: str = "", beta: float = 1.0) -> str:
    """Write the name of a figure, such as `recall.micro` or `f_score.macro.fb2`."""
    name = _METRICS.get(kind, kind)
    weighted = f"fb{beta:g}" if name == "f_score" and beta != 1 else ""
    return ".".join(filter(None, (name, averaging, weighted)))


def order_figures(chosen: str, figures: Figures) -> list[tuple[str, float]]:
    """Return the figures with the chosen one first, whose name is as configured."""
    first = _METRICS.get(chosen, chosen)
    return sorted(figures.items(), key=lambda figure: figure[0] != first)


def read_pairs(rows: pl.DataFrame) -> list[Pair]:
    """Return expected and actual class of the rows that were scored, from their details."""
    told = rows.filter((pl.col("status") == "ok") & pl.col("details_json").is_not_null())
    details = map(orjson.loads, told["details_json"])
    return [(each["expected_class"], each["actual_class"]) for each in details if "expected_class" in each]
