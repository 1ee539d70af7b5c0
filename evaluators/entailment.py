"""Entailment: which of several extracts support a claim, and which contradict it, as a model judges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from assay.contracts.json_text import dump_json
from evaluators.contract import Verdict
from evaluators.judging import ask_judge, build_rubric
from evaluators.prompt_files import read_prompt
from evaluators.reply_forms import object_schema, read_text
from evaluators.reply_lists import list_schema, read_numbered, read_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.chat import Chat
    from evaluators.judging import Rubric
    from evaluators.reply_forms import Found, Schema

PROMPT = read_prompt("entailment")
SHOWN = ("claims", "extracts")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is said of one claim.

    Attributes:
        reason: Why.
        supporting: Numbers of the extracts it follows from, from 1.
        contradicting: Numbers of those that say otherwise.
    """

    reason: str | None
    supporting: list[int]
    contradicting: list[int]


@dataclass(frozen=True, slots=True)
class EntailmentForm:
    """A finding for each of the numbered claims.

    Attributes:
        claims: How many there are.
        extracts: How many extracts there are.
    """

    claims: int
    extracts: int
    keys: tuple[str, ...] = ("findings",)

    @property
    def schema(self) -> Schema:
        """The object with its list."""
        numbers: Schema = {"type": "array", "items": {"type": "integer"}}
        members: Schema = {"reason": {"type": "string"}, "supporting": numbers, "contradicting": numbers}
        return object_schema({"findings": list_schema(members)})

    @property
    def example(self) -> str:
        """The object, one entry for every claim."""
        entry = (
            '{"number": <of the claim>, "reason": "<one sentence>", "supporting": [<numbers of extracts>], '
            '"contradicting": [<numbers of extracts>]}'
        )
        return f'{{"findings": [{entry}, ...]}}'

    def read(self, found: Found) -> Verdict:
        """Read a finding for every claim, in order; they stand in the details.

        Raises:
            UnusableError: A claim has none or more than one, or a number is that of no extract.
        """
        findings = [
            Finding(
                read_text(entry, "reason"),
                read_numbers(entry, "supporting", self.extracts),
                read_numbers(entry, "contradicting", self.extracts),
            )
            for entry in read_numbered(found, "findings", self.claims).values()
        ]
        return Verdict(None, details={"findings": findings})


RUBRIC = build_rubric(PROMPT.text, EntailmentForm(0, 0), SHOWN, PROMPT.head.max_output_tokens)


async def ask_entailment(
    claims: Sequence[str], extracts: Sequence[str], chat: Chat, rubric: Rubric | None = None
) -> tuple[list[Finding], Verdict]:
    """Ask about all claims in one call.

    Args:
        claims: What may follow, at least one.
        extracts: What it may follow from, at least one.
        chat: Who is asked.
        rubric: What it is told, in place of `RUBRIC`.

    Returns:
        A finding per claim, and the verdict they came with: hash of the prompt, and details without them.

    Raises:
        CallError: As `ask_judge`.
    """
    asked = replace(rubric or RUBRIC, form=EntailmentForm(len(claims), len(extracts)))
    shown = {"claims": number_texts(claims), "extracts": number_texts(extracts)}
    verdict = await ask_judge(asked, shown, chat)
    details = dict(verdict.details or {})
    findings = cast("list[Finding]", details.pop("findings"))
    return findings, replace(verdict, details=details)


def number_texts(texts: Sequence[str]) -> str:
    """Return texts as a JSON list of objects with `number`, from 1, and `text`."""
    return dump_json([{"number": number, "text": text} for number, text in enumerate(texts, start=1)])
