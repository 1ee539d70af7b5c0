"""UiPathContextPrecision: how relevant the retrieved chunks are to what was looked for, judged by a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, cast

from assay.errors import NotApplicableError
from evaluators.contract import JudgeEvaluator, Verdict
from evaluators.entailment import number_texts
from evaluators.judging import ask_judge
from evaluators.prompt_files import read_prompt
from evaluators.reply_forms import object_schema, read_score, read_text
from evaluators.reply_lists import list_schema, read_numbered
from evaluators.retrieval import list_queries, read_executions
from evaluators.sources import list_extracts, split_context
from evaluators.uipath_prompts import SHARE, JudgeSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Scale
    from evaluators.reply_forms import Found, Schema

PROMPT = read_prompt("uipath_context_precision")
SHOWN = ("query", "chunks")


@dataclass(frozen=True, slots=True)
class GradesForm:
    """A grade for each of the numbered chunks.

    Attributes:
        scale: Where the grades lie.
        count: How many chunks there are.
    """

    scale: Scale
    count: int
    keys: tuple[str, ...] = ("grades",)

    @property
    def schema(self) -> Schema:
        """The object with its list."""
        members: Schema = {"reason": {"type": "string"}, "score": {"type": "number"}}
        return object_schema({"grades": list_schema(members)})

    @property
    def example(self) -> str:
        """The object, one entry for every chunk."""
        score = f"<a number from 0 to {self.scale.high:g}>"
        entry = f'{{"number": <of the chunk>, "reason": "<one sentence>", "score": {score}}}'
        return f'{{"grades": [{entry}, ...]}}'

    def read(self, found: Found) -> Verdict:
        """Read the grades; each as a share of the scale stands in the details.

        Raises:
            UnusableError: A chunk has none or more than one, or one off the scale.
        """
        grades = [
            {
                "score": read_score(entry, self.scale) / (self.scale.high or 1.0),
                "reason": read_text(entry, "reason"),
            }
            for entry in read_numbered(found, "grades", self.count).values()
        ]
        return Verdict(None, details={"chunks": grades})


class ContextPrecisionOptions(JudgeSettings):
    """Options of UiPathContextPrecision."""


async def ask_context_precision(options: ContextPrecisionOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score the mean of the grades of each retrieval, and of several retrievals the mean of these.

    A retrieval is judged against its own queries, where it tells them. Without any the context counts as one.

    Raises:
        NotApplicableError: Nothing was retrieved.
        CallError: As `ask_judge`; `bad_field` when the retrieval is not of its form.
    """
    asked = _list_retrievals(fields)
    if not asked:
        raise NotApplicableError("nothing was retrieved: no chunks to judge")
    verdicts = [
        await ask_judge(
            options.write_rubric(PROMPT, GradesForm(options.scale, len(chunks)), SHOWN),
            {"query": query, "chunks": number_texts(chunks)},
            options.sample(chat),
        )
        for query, chunks in asked
    ]
    grades = [cast("list[dict[str, object]]", (each.details or {})["chunks"]) for each in verdicts]
    scores = [fmean(cast("float", grade["score"]) for grade in own) for own in grades]
    retrievals = [
        {"query": query, "score": score, **(verdict.details or {})}
        for (query, _), score, verdict in zip(asked, scores, verdicts, strict=True)
    ]
    count = sum(len(chunks) for _, chunks in asked)
    reason = f"{count} chunks of {len(asked)} retrievals" if len(asked) > 1 else f"{count} chunks"
    return replace(verdicts[0], score=fmean(scores), reason=reason, details={"retrievals": retrievals})


def _list_retrievals(fields: Fields) -> list[tuple[str, Sequence[str]]]:
    """Return query and chunks of every retrieval that gave some."""
    query = fields["query"] or ""
    found = [
        ("\n".join(list_queries([each])) or query, list_extracts([each]))
        for each in read_executions(fields["retrieval"], None)
    ]
    found = [(asked, chunks) for asked, chunks in found if chunks]
    context = split_context(fields["context"])
    return [*found] if found else [(query, context)] if context else []


EVALUATOR = JudgeEvaluator(
    name=PROMPT.head.name,
    summary=PROMPT.head.summary,
    aliases=PROMPT.head.aliases,
    needs=("query",),
    wants=("retrieval", "context"),
    json_fields=("retrieval",),
    options=ContextPrecisionOptions,
    scale=SHARE,
    threshold=0.5,
    ask=ask_context_precision,
    rubrics=(ContextPrecisionOptions().write_rubric(PROMPT, GradesForm(PROMPT.head.grades, 0), SHOWN),),
)
