"""RetrievalResult: whether the agent was given what it should find."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import JudgeEvaluator, Options, RowEvaluator, Scale, Verdict
from evaluators.entailment import RUBRIC, ask_entailment
from evaluators.retrieval import list_hits, read_executions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.chat import Chat
    from evaluators.contract import Fields
    from evaluators.retrieval import Hit


class ExpectedItem(Options):
    """One thing that is to be found."""

    model_config = ConfigDict(serialize_by_alias=True)

    text: str = Field(alias="retrievalExtract_contains", min_length=1, description="text of an extract")


class RetrievalResultOptions(Options):
    """Options of RetrievalResult."""

    capability: str | None = Field(
        default=None, min_length=1, description="whose hits count, spelt exactly; without it all of them"
    )
    expected_items: list[ExpectedItem] | None = Field(
        default=None, min_length=1, description='what to find: [{"retrievalExtract_contains": "some text"}]'
    )
    min_expected_count: int | None = Field(
        default=None, ge=1, description="how many hits there must be up to max_rank"
    )
    max_rank: int = Field(default=10, ge=1, description="the last rank that counts")
    match: Literal["contains", "entailment"] = Field(
        default="contains",
        description="contains: the text stands in an extract, in any case; entailment: a judge says whether "
        "the text follows from the extracts",
    )

    @property
    def asks_model(self) -> bool:
        """Whether a judge compares."""
        return self.match == "entailment" and self.expected_items is not None

    @model_validator(mode="after")
    def _expect_something(self) -> Self:
        if self.expected_items is None and self.min_expected_count is None:
            raise PydanticCustomError("nothing_expected", "expected_items, min_expected_count or both")
        return self


def judge_results(options: RetrievalResultOptions, fields: Fields) -> Verdict:
    """Score the share of expected texts that stand in an extract of a hit up to `max_rank`.

    Case does not count, and a text has to stand in one extract as a whole. Without a capability the hits of
    all executions count; without execution data there are none. Fewer hits than `min_expected_count` score
    0 whatever was matched (the share stays in the details), as only full marks pass; where only a count is
    expected, enough hits score 1. Options and codes are those of the published eval document schema 1.11.0,
    whose own evaluator asks a model about each text.

    Raises:
        CallError: `bad_field`, when executions are not of their form.
    """
    hits, wanted = _list_hits(options, fields), _list_wanted(options)
    found = {text: hit for text in wanted if (hit := _find_hit(text, hits)) is not None}
    return _decide(options, hits, found, dict.fromkeys(wanted, _explain_miss(hits)))


async def ask_results(options: RetrievalResultOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score the share of expected texts that follow from the extracts of the hits up to `max_rank`.

    The judge is asked about all of them in one call, and not at all where there is nothing to compare. Of
    several extracts from which a text follows the best one counts. All else is as without a judge.

    Raises:
        CallError: As `ask_judge`; `bad_field`, when executions are not of their form.
    """
    hits, wanted = _list_hits(options, fields), _list_wanted(options)
    extracts = [(text, hit) for hit in hits for text in hit.extracts if text.strip()]
    if not wanted or not extracts:
        return _decide(options, hits, {}, dict.fromkeys(wanted, _explain_miss(hits)))
    findings, told = await ask_entailment(wanted, [text for text, _ in extracts], chat)
    judged = dict(zip(wanted, findings, strict=True))
    found = {text: extracts[each.supporting[0] - 1][1] for text, each in judged.items() if each.supporting}
    reasons = {text: each.reason or _explain_miss(hits) for text, each in judged.items()}
    verdict = _decide(options, hits, found, reasons)
    details = {**(verdict.details or {}), **(told.details or {})}
    return replace(verdict, details=details, prompt_sha=told.prompt_sha)


def _list_hits(options: RetrievalResultOptions, fields: Fields) -> list[Hit]:
    return list_hits(read_executions(fields["retrieval"], options.capability), options.max_rank)


def _list_wanted(options: RetrievalResultOptions) -> list[str]:
    return [item.text for item in options.expected_items or ()]


def _decide(
    options: RetrievalResultOptions, hits: Sequence[Hit], found: Mapping[str, Hit], reasons: Mapping[str, str]
) -> Verdict:
    """Return the verdict from the hit of each text that was found, and why others were not."""
    wanted = _list_wanted(options)
    missing = [text for text in wanted if text not in found]
    share = (len(wanted) - len(missing)) / len(wanted) if wanted else 1.0
    minimum = options.min_expected_count or 0
    code = _name_outcome(enough=len(hits) >= minimum, complete=not missing)
    missed = [{"extractMatch": text, "reason": reasons[text]} for text in missing]
    details = {
        "diagnostic_code": code,
        "match": options.match,
        "matched_share": share,
        "results_evaluated": len(hits),
        "matched_items": [_describe_match(text, found[text]) for text in wanted if text in found],
        "missing_items": missed,
        "extract_failures": missed if hits else [],
    }
    score = share * (code != "count_below_minimum")
    return Verdict(score=score, label=code, reason=_explain(len(hits), minimum, missing), details=details)


def _find_hit(text: str, hits: Sequence[Hit]) -> Hit | None:
    folded = text.casefold()
    return next((hit for hit in hits if any(folded in extract.casefold() for extract in hit.extracts)), None)


def _name_outcome(*, enough: bool, complete: bool) -> str:
    if not enough:
        return "count_below_minimum"
    return "pass" if complete else "not_retrieved"


def _explain(count: int, minimum: int, missing: Sequence[str]) -> str:
    reasons = [f"{count} of at least {minimum} hits"] if count < minimum else []
    reasons += [f"not retrieved: {', '.join(missing)}"] if missing else []
    return "; ".join(reasons) or f"{count} hits hold all that is expected"


def _explain_miss(hits: Sequence[Hit]) -> str:
    return f"in no extract of {len(hits)} hits" if hits else "no hits"


def _describe_match(text: str, hit: Hit) -> dict[str, object]:
    place = {} if hit.url is None else {"matchedHitUrl": hit.url}
    return {"extractMatch": text, **place, "matchedHitRank": hit.rank}


_SUMMARY = "Whether the hits of the agent's retrieval hold the expected texts."
ASKING = JudgeEvaluator(
    name="RetrievalResult",
    summary=_SUMMARY,
    needs=(),
    wants=("retrieval",),
    json_fields=("retrieval",),
    options=RetrievalResultOptions,
    scale=Scale(0.0, 1.0),
    threshold=1.0,
    thresholds=Scale(1.0, 1.0),
    ask=ask_results,
    rubrics=(RUBRIC,),
)
EVALUATOR = RowEvaluator(
    name="RetrievalResult",
    summary=_SUMMARY,
    aliases=("retrieval_result", "retrievalResult"),
    needs=(),
    wants=("retrieval",),
    json_fields=("retrieval",),
    options=RetrievalResultOptions,
    thresholds=Scale(1.0, 1.0),
    judge=judge_results,
    asking=ASKING,
)
