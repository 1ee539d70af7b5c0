"""Summaries: counts in four states, means over scored rows, rates over attempted rows, and their bounds."""

from __future__ import annotations

import polars as pl

from assay.contracts.tables import NOT_DUE, SUMMARY, conform

_PASSED = (pl.col("status") == "ok") & pl.col("passed").fill_null(value=False)
_FAILED = (pl.col("status") == "ok") & ~pl.col("passed").fill_null(value=True)


def summarise(scores: pl.LazyFrame, items: pl.LazyFrame, run_id: str) -> pl.DataFrame:
    """Count scores per evaluator and metric, over all items and per category.

    Definitions: attempted = every evaluation that was not skipped; scored = attempted with a score;
    mean over scored; pass rate = passed / attempted; coverage = scored / attempted; the bounds of the
    pass rate take every error as a fail and as a pass. Nothing attempted gives null, never 0 or NaN.

    Args:
        scores: SCORES of one run.
        items: ITEMS of the run, for the categories.
        run_id: Stands in every row.

    Returns:
        SUMMARY, evaluators in name order, the slice `all` first.
    """
    labels = items.filter(pl.col("category").is_not_null()).select("item_id", "turn", "category")
    sliced = scores.join(labels, on=["item_id", "turn"])
    overall = _count(scores, []).with_columns(slice=pl.lit("all"), value=pl.lit(None, pl.String))
    by_category = (
        _count(sliced, ["category"]).with_columns(slice=pl.lit("category")).rename({"category": "value"})
    )
    counted = pl.concat([overall, by_category], how="diagonal").with_columns(run_id=pl.lit(run_id))
    order = pl.col("slice") != "all"
    return conform(counted.sort(order, "evaluator", "metric", "value").collect(), SUMMARY)


def _count(scores: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    error, skipped = pl.col("status") == "error", pl.col("status") == "skipped"
    counts = scores.group_by("evaluator", "metric", *by).agg(
        passed=_PASSED.sum().cast(pl.Int64),
        failed=_FAILED.sum().cast(pl.Int64),
        errored=error.sum().cast(pl.Int64),
        skipped=skipped.sum().cast(pl.Int64),
        settled=(skipped & (pl.col("error_code") == NOT_DUE)).fill_null(value=False).sum().cast(pl.Int64),
        scored=pl.col("score").is_not_null().sum().cast(pl.Int64),
        attempted=(~skipped).sum().cast(pl.Int64),
        mean=pl.col("score").drop_nulls().sort(),
    )
    attempted = pl.when(pl.col("attempted") > 0).then(pl.col("attempted"))
    return counts.with_columns(
        mean=pl.col("mean").list.mean(),  # one order of addition: the same scores, the same last digit
        pass_rate=pl.col("passed") / attempted,
        pass_rate_low=pl.col("passed") / attempted,
        pass_rate_high=(pl.col("passed") + pl.col("errored")) / attempted,
        coverage=pl.col("scored") / attempted,
    )


def failed_rows(scores: pl.LazyFrame, samples: pl.LazyFrame, items: pl.LazyFrame) -> pl.LazyFrame:
    """List the evaluations that failed or ended in an error, the worst items first.

    Worst is an item with the most errors, then the most fails, then the lowest mean of those scores.

    Returns:
        Columns item_id, turn, trial, category, evaluator, status, score, reason, expected, actual, error.
    """
    key = ["item_id", "turn", "trial"]
    error = pl.col("status") == "error"
    bad = scores.filter(error | ~pl.col("passed").fill_null(value=True))
    ranked = bad.with_columns(
        errors=error.sum().over(key), fails=pl.len().over(key), level_of_item=pl.col("score").mean().over(key)
    ).sort(
        ["errors", "fails", "level_of_item", *key, "score", "evaluator"],
        descending=[True, True, *[False] * 6],
        nulls_last=True,
    )
    answers = samples.select(*key, "output_text")
    tasks = items.select("item_id", "turn", "category", "expected_response")
    return (
        ranked.join(answers, on=key, how="left", maintain_order="left")
        .join(tasks, on=["item_id", "turn"], how="left", maintain_order="left")
        .select(
            *key,
            "category",
            "evaluator",
            pl.col("status").cast(pl.String),
            "score",
            "reason",
            expected="expected_response",
            actual="output_text",
            error=pl.format("{}: {}", "error_code", "error_message"),
        )
    )


def worst_items(failed: pl.LazyFrame, count: int) -> pl.DataFrame:
    """Gather `failed_rows` per item and turn, the worst first, at most `count`.

    Returns:
        Columns item_id, turn, category, verdicts (such as `ExactMatch 0, PartialMatch 0.25`), expected,
        actual, reason, error; the last two are the first there is.
    """
    score = pl.col("score").round(3).cast(pl.String).str.strip_suffix(".0")
    verdict = pl.when(pl.col("status") == "error").then(pl.lit("error")).otherwise(score.fill_null("-"))
    gathered = failed.group_by("item_id", "turn", maintain_order=True).agg(
        pl.col("category").first(),
        pl.format("{} {}", "evaluator", verdict).str.join(", ").alias("verdicts"),
        pl.col("expected", "actual").first(),
        pl.col("reason", "error").drop_nulls().first(),
    )
    return gathered.head(count).collect()
