"""Statuses: one word for every turn and every conversation, by the precedence that M365 publishes."""

from __future__ import annotations

import polars as pl

KEY = ["item_id", "turn", "trial"]
WHOLE = -1  # the turn of a row that speaks of the whole conversation
STATUSES = ("error", "partial", "fail", "pass")  # the first that applies counts
CODES = {
    "empty_response": "emptyAgentResponse",
    "unparseable": "judgeOutputUnparseable",
    "auth": "judgeAuthenticationError",
    "rate_limited": "judgeRateLimited",
    "timeout": "judgeTimeout",
    "off_scale": "invalidEvaluatorResult",
    "turn_skipped": "turnSkipped",
}
"""Codes of ours and those of the published eval document; any other evaluator's error is `evaluatorError`."""
_NO_ANSWER = "agentRequestFailed"


def derive_statuses(samples: pl.LazyFrame, scores: pl.LazyFrame) -> pl.LazyFrame:
    """Say how every turn and every conversation came out.

    A turn without an answer is an error, one with an evaluator that ended in an error partial, one that
    failed any evaluator a fail, else it is a pass; so the eval document of M365 has it, schema 1.9 and later.
    A conversation takes the first of these that any of its turns has. What was never asked, and what has no
    verdict at all, has no status.

    Args:
        samples: SAMPLES of a run.
        scores: SCORES of the run.

    Returns:
        Columns item_id, turn (`WHOLE` for the conversation), trial, status and code: why it is an error or
        partial, in the words of M365. Sorted by item, trial and turn.
    """
    verdict = scores.group_by(KEY).agg(
        errored=(pl.col("status") == "error").any(),
        failed=((pl.col("status") == "ok") & ~pl.col("passed")).any(),
        passed=((pl.col("status") == "ok") & pl.col("passed")).any(),
        why=pl.col("error_code").filter(pl.col("status") == "error").sort().first(),
    )
    turns = samples.select(*KEY, "status", "error_code").join(verdict, on=KEY, how="left")
    unanswered = (pl.col("status") == "error") | (pl.col("error_code") == "turn_skipped").fill_null(
        value=False
    )
    answered = pl.col("status") == "ok"
    told = turns.select(
        *KEY,
        code=pl.when(unanswered)
        .then(pl.col("error_code").replace_strict(CODES, default=_NO_ANSWER))
        .when(answered & pl.col("errored"))
        .then(pl.col("why").replace_strict(CODES, default="evaluatorError")),
        status=pl.when(unanswered)
        .then(pl.lit("error"))
        .when(answered & pl.col("errored"))
        .then(pl.lit("partial"))
        .when(answered & pl.col("failed"))
        .then(pl.lit("fail"))
        .when(answered & pl.col("passed"))
        .then(pl.lit("pass"))
        .cast(pl.Enum(STATUSES)),
    ).select(*KEY, "status", "code")
    whole = told.group_by("item_id", "trial").agg(
        turn=pl.lit(WHOLE, pl.Int32),
        status=pl.col("status").drop_nulls().sort().first(),
        code=pl.col("code").sort_by("status", nulls_last=True).first(),
    )
    return pl.concat([told, whole.select(*KEY, "status", "code")]).sort("item_id", "trial", "turn")
