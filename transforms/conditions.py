"""Conditions: evaluators that are due only where another one's outcome calls for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from assay.errors import ConfigError, list_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

STATES = ("pass", "fail", "error", "skipped")
KEY = ["item_id", "turn", "trial"]


def parse_condition(text: object, label: Callable[[str], str], where: str) -> str:
    """Return `EVALUATOR:STATE[,STATE]` with the evaluator's own name and the states in order.

    Args:
        text: The condition as written.
        label: Turns a name or alias into the label that stands in the plan.
        where: Place for messages.

    Raises:
        ConfigError: It is not of that form, or the evaluator is unknown.
    """
    name, colon, states = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    given = [state.strip() for state in states.split(",")]
    if not colon or not name.strip() or not all(state in STATES for state in given):
        raise ConfigError(
            f"{where}: only_if {text!r}: write EVALUATOR:STATE, such as ExactMatch:fail; states are "
            f"{list_names(STATES)}, several with commas between"
        )
    return f"{label(name.strip())}:{','.join(state for state in STATES if state in given)}"


def check_conditions(conditions: Mapping[str, str | None], where: Mapping[str, str]) -> None:
    """Refuse conditions on what does not run, and those that wait for one another.

    Args:
        conditions: Label to condition, of all that is evaluated for one kind of item.
        where: Label to its place, for messages.

    Raises:
        ConfigError: One of them can never be told.
    """
    for label, condition in conditions.items():
        waits, seen = condition, [label]
        while waits is not None:
            other = waits.rpartition(":")[0]
            if other not in conditions:
                raise ConfigError(
                    f"{where[label]}: {label} is to run only if {waits}, but {other} does not run for these "
                    f"items; add it: --evaluators +{other}"
                )
            if other in seen:
                raise ConfigError(f"{where[label]}: {' waits for '.join([*seen, other])}")
            seen.append(other)
            waits = conditions[other]


def order_labels(plan: pl.DataFrame) -> list[str]:
    """Return the labels of a plan so that each comes after what it waits for."""
    pairs = plan.select("evaluator", "only_if").unique(maintain_order=True)
    waits: dict[str, set[str]] = {label: set() for label in pairs["evaluator"]}
    for label, condition in pairs.iter_rows():
        if condition is not None:
            waits[label].add(condition.rpartition(":")[0])
    ordered: dict[str, None] = {}

    def visit(label: str) -> None:
        for other in waits.get(label, ()):
            if other not in ordered:
                visit(other)
        ordered[label] = None

    for label in waits:
        if label not in ordered:
            visit(label)
    return list(ordered)


def list_states(scores: Iterable[pl.DataFrame], label: str) -> pl.DataFrame:
    """Return the outcome of an evaluator for every sample.

    Args:
        scores: Frames with columns of SCORES.
        label: The evaluator.

    Returns:
        Columns item_id, turn, trial and state: one of STATES, null for a score without a verdict.
    """
    parts = [each.filter(pl.col("evaluator") == label) for each in scores]
    status = pl.col("status").cast(pl.String)
    verdict = pl.when("passed").then(pl.lit("pass")).when(~pl.col("passed")).then(pl.lit("fail"))
    state = pl.when(status == "ok").then(verdict).otherwise(status)
    return pl.concat([part.select(*KEY, state=state) for part in parts])


def tell_due(rows: pl.DataFrame, scores: Sequence[pl.DataFrame]) -> pl.Series:
    """Return for each row why its evaluation is not due; null where it is.

    Args:
        rows: Columns item_id, turn, trial and `only_if`.
        scores: What was evaluated before, columns of SCORES.
    """
    reasons = pl.Series("reason", [None] * rows.height, dtype=pl.String)
    for condition in rows["only_if"].drop_nulls().unique(maintain_order=True):
        label, _, states = condition.rpartition(":")
        known = rows.select(*KEY).join(list_states(scores, label), on=KEY, how="left", maintain_order="left")
        state = known["state"].fill_null("without a verdict")
        waits = (rows["only_if"] == condition) & ~state.is_in(states.split(","))
        told = "only if " + label + " is " + states.replace(",", " or ") + ": it is " + state
        reasons = told.zip_with(waits.fill_null(value=False), reasons)
    return reasons.alias("reason")
