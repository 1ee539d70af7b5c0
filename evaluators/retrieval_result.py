"""RetrievalResult: whether the agent was given what it should find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import Options, RowEvaluator, Scale, Verdict
from evaluators.retrieval import list_hits, read_executions

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    match: Literal["contains"] = Field(
        default="contains", description="contains: the text stands in an extract, in any case"
    )

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
    executions = read_executions(fields["retrieval"], options.capability)
    hits = list_hits(executions, options.max_rank)
    wanted = [item.text for item in options.expected_items or ()]
    found = {text: hit for text in wanted if (hit := _find_hit(text, hits)) is not None}
    missing = [text for text in wanted if text not in found]
    share = (len(wanted) - len(missing)) / len(wanted) if wanted else 1.0
    minimum = options.min_expected_count or 0
    code = _name_outcome(enough=len(hits) >= minimum, complete=not missing)
    missed = [{"extractMatch": text, "reason": _explain_miss(hits)} for text in missing]
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


EVALUATOR = RowEvaluator(
    name="RetrievalResult",
    summary="Whether the hits of the agent's retrieval hold the expected texts.",
    aliases=("retrieval_result", "retrievalResult"),
    needs=(),
    wants=("retrieval",),
    json_fields=("retrieval",),
    options=RetrievalResultOptions,
    thresholds=Scale(1.0, 1.0),
    judge=judge_results,
)
