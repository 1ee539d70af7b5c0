"""UiPathFaithfulness: the share of the answer's claims that its sources support and do not contradict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from evaluators import entailment
from evaluators.contract import JudgeEvaluator, Verdict
from evaluators.entailment import SHOWN, ask_entailment
from evaluators.judging import ask_judge, build_rubric
from evaluators.prompt_files import read_prompt
from evaluators.reply_forms import UnusableError, object_schema, read_text
from evaluators.reply_lists import read_entries
from evaluators.sources import SOURCE_FIELDS, read_sources
from evaluators.uipath_prompts import SHARE, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.chat import Chat
    from evaluators.contract import Fields
    from evaluators.entailment import Finding
    from evaluators.reply_forms import Found, Schema

PROMPT = read_prompt("uipath_faithfulness")


@dataclass(frozen=True, slots=True)
class ClaimsForm:
    """The claims of a text."""

    keys: tuple[str, ...] = ("claims",)

    @property
    def schema(self) -> Schema:
        """The object with its two members."""
        entry = object_schema({"claim": {"type": "string"}})
        return object_schema({"reason": {"type": "string"}, "claims": {"type": "array", "items": entry}})

    @property
    def example(self) -> str:
        """The object with its two members."""
        reason = '"reason": "<one sentence: what the answer is about>"'  # so that an empty list is not all
        return f'{{{reason}, "claims": [{{"claim": "<one claim>"}}, ...]}}'

    def read(self, found: Found) -> Verdict:
        """Read the claims, blank ones left out; they stand in the details.

        Raises:
            UnusableError: There is no list of them.
        """
        texts = [read_text(entry, "claim") for entry in read_entries(found, "claims")]
        if None in texts:
            raise UnusableError("an entry of `claims` has no text under `claim`")
        return Verdict(None, details={"claims": [text for text in texts if text and text.strip()]})


RUBRIC = build_rubric(PROMPT.text, ClaimsForm(), PROMPT.head.shown, PROMPT.head.max_output_tokens)


class FaithfulnessOptions(JudgeSettings):
    """Options of UiPathFaithfulness."""


async def ask_faithfulness(options: FaithfulnessOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score the share of claims with at least one supporting and no contradicting source.

    The claims are those of the answer itself, listed in one call and judged in another. Without claims the
    score is 1, and without any source 0, as UiPath has it; the details say so. A prompt of the options is
    told below the built-in one where claims are judged.

    Raises:
        CallError: As `ask_judge`; `bad_field` when the retrieval is not of its form.
    """
    name, sources = read_sources(fields)
    heard = options.sample(chat)
    shown = {field: fields[field] for field in PROMPT.head.shown}
    verdict = await ask_judge(RUBRIC, shown, heard)
    told = dict(verdict.details or {})
    claims = cast("list[str]", told.pop("claims"))
    facts = {"claims_count": len(claims), "sources": name, "sources_count": len(sources)}
    if not claims:
        return replace(verdict, score=1.0, reason="the answer makes no claims", details={**told, **facts})
    if not sources:
        listed = [{"claim": claim, "grounded": False} for claim in claims]
        reason = f"no sources for {len(claims)} claims"
        return replace(verdict, score=0.0, reason=reason, details={**told, **facts, "claims": listed})
    findings, second = await ask_entailment(claims, sources, heard, options.add_to(entailment.RUBRIC, SHOWN))
    judged = [_describe(claim, finding) for claim, finding in zip(claims, findings, strict=True)]
    lacking = [claim for claim, each in zip(claims, judged, strict=True) if not each["grounded"]]
    reason = _explain(len(claims), lacking)
    details = {**(second.details or {}), **told, **facts, "claims": judged}
    return replace(second, score=1 - len(lacking) / len(claims), reason=reason, details=details)


def _describe(claim: str, finding: Finding) -> dict[str, object]:
    grounded = bool(finding.supporting) and not finding.contradicting
    return {
        "claim": claim,
        "grounded": grounded,
        "supporting": finding.supporting,
        "contradicting": finding.contradicting,
        "reason": finding.reason,
    }


def _explain(count: int, lacking: Sequence[str]) -> str:
    if not lacking:
        return f"all {count} claims are grounded"
    return f"{len(lacking)} of {count} claims are not grounded: {'; '.join(lacking)}"


EVALUATOR = JudgeEvaluator(
    name=PROMPT.head.name,
    summary=PROMPT.head.summary,
    aliases=PROMPT.head.aliases,
    needs=("response",),
    wants=("query", *SOURCE_FIELDS),
    json_fields=("retrieval", "output_items"),
    options=FaithfulnessOptions,
    scale=SHARE,
    threshold=0.5,
    ask=ask_faithfulness,
    rubrics=(RUBRIC, entailment.RUBRIC),
)
