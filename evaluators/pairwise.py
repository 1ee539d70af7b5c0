"""Pairwise: which of two answers is better, asked in both orders, so that no place is an advantage."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from assay.errors import CallError, NotApplicableError
from evaluators.contract import Aggregate, Verdict
from evaluators.judging import ask_judge, build_rubric
from evaluators.prompt_files import make_judge, read_prompt
from evaluators.reply_forms import LabelForm

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Options

PROMPT = read_prompt("pairwise")
FORM = LabelForm({"first": 1.0, "second": 0.0, "tie": 0.5})
RUBRIC = build_rubric(PROMPT.text, FORM, ("query", "context", "expected_response", "first", "second"))
TIE = 0.5
IDENTICAL = "the answers are the same, so the judge was not asked"
_AHEAD, _BEHIND = "response_first", "response_second"


async def ask(_options: Options, fields: Fields, chat: Chat) -> Verdict:
    """Compare the answer with the other one; 1: it is better, 0: the other one is, 0.5: a tie.

    Two orders that do not say the same of an answer are a tie. Answers that are equal but for white space
    at their ends are one without a call.

    Raises:
        NotApplicableError: The other answer is blank, so there is nothing to compare with.
        CallError: `empty_response` without a call when the answer is blank; else what one of the calls
            failed with, as `ask_judge`.
    """
    response, other = fields["response"] or "", fields["response_b"] or ""
    if not response.strip():
        raise CallError("empty_response", "the answer is blank, so the judge was not asked", attempts=0)
    if not other.strip():
        raise NotApplicableError("the other answer is blank")
    if response.strip() == other.strip():
        return Verdict(TIE, "tie", IDENTICAL, {"identical": True, "consistent": True})
    asked = (_ask_order(fields, response, other, chat), _ask_order(fields, other, response, chat))
    outcomes = await asyncio.gather(*asked, return_exceptions=True)  # what was paid for is always kept
    failures = [each for each in outcomes if isinstance(each, BaseException)]
    if failures:
        raise min(failures, key=lambda each: isinstance(each, CallError))  # a fault of the set-up first
    ahead, behind = (each for each in outcomes if not isinstance(each, BaseException))
    return _combine(ahead, behind)


async def _ask_order(fields: Fields, first: str, second: str, chat: Chat) -> Verdict:
    around = {name: fields.get(name) for name in ("query", "context", "expected_response")}
    return await ask_judge(RUBRIC, {**around, "first": first, "second": second}, chat)


def _combine(ahead: Verdict, behind: Verdict) -> Verdict:
    """Make one verdict of those with the answer shown first and second."""
    wins = (ahead.score, None if behind.score is None else 1.0 - behind.score)
    consistent = wins[0] == wins[1]
    score = wins[0] if consistent and wins[0] is not None else TIE
    told = {_AHEAD: ahead, _BEHIND: behind}
    reasons = [f"{name}: {each.label}: {each.reason or 'no reason'}" for name, each in told.items()]
    choices = {name: each.label for name, each in told.items()}
    rest = {**(behind.details or {}), **(ahead.details or {})}
    label = {1.0: "win", 0.0: "loss"}.get(score, "tie")
    return Verdict(
        score, label, "; ".join(reasons), {"choices": choices, "consistent": consistent, **rest}, RUBRIC.sha
    )


def aggregate_pairs(_options: Options, scores: pl.DataFrame) -> tuple[Aggregate, ...]:
    """Return the shares of wins, losses and ties, of contradictory orders, and what the first place gains.

    `position_bias` is how much more often the first of both answers was preferred in both orders than the
    second, over all scored rows: -1 to 1. Rows of a panel that does not agree on the orders count neither
    in it nor in `inconsistent`.
    """
    details, score = pl.col("details_json"), pl.col("score")
    ahead, behind = (details.str.json_path_match(f"$.choices.{name}") for name in (_AHEAD, _BEHIND))
    consistent = details.str.json_path_match("$.consistent")
    counts = (
        scores.filter(score.is_not_null())
        .select(
            pl.len().alias("rows"),
            (score > TIE).sum().alias("win"),
            (score < TIE).sum().alias("loss"),
            (score == TIE).sum().alias("tie"),
            consistent.is_not_null().sum().alias("told"),
            (consistent == "false").sum().alias("inconsistent"),
            ((ahead == "first") & (behind == "first")).sum().alias("first"),
            ((ahead == "second") & (behind == "second")).sum().alias("second"),
        )
        .row(0, named=True)
    )
    bias = counts["first"] - counts["second"]
    return (
        *(_share(f"{name}_rate", counts[name], counts["rows"]) for name in ("win", "loss", "tie")),
        _share("inconsistent", counts["inconsistent"], counts["told"]),
        _share("position_bias", bias, counts["told"], first=counts["first"], second=counts["second"]),
    )


def _share(metric: str, count: int, rows: int, **told: int) -> Aggregate:
    return Aggregate(metric, count / rows if rows else None, {**(told or {"count": count}), "rows": rows})


EVALUATOR = replace(make_judge(PROMPT), ask=ask, aggregate=aggregate_pairs, rubrics=(RUBRIC,))
