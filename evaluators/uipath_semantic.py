"""UiPathSemanticSimilarity: how near the output comes to the expected one in meaning, judged by a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from evaluators.contract import JudgeEvaluator
from evaluators.judging import ask_judge
from evaluators.output_sides import OutputOptions, read_side, write_text
from evaluators.prompt_files import read_prompt
from evaluators.reply_forms import ScoreForm
from evaluators.uipath_prompts import SHARE, JudgeSettings

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Verdict

PROMPT = read_prompt("uipath_semantic")


class OutputJudgeOptions(JudgeSettings):
    """Options of the judges that compare the output of an agent with an expected one."""

    target_output_key: str | list[str] | None = Field(
        default=None,
        description="the part of both sides that counts, such as `a.b[0]`, or several parts; "
        "without it, and for `*`, all",
    )

    def read_sides(self, fields: Fields) -> dict[str, str]:
        """Return answer and reference as texts, the part of them that counts.

        Raises:
            CallError: `missing_field`, when a side has no such part.
        """
        names = ("response", "expected_response")
        if self.target_output_key is None:
            return {name: fields[name] or "" for name in names}
        chosen = OutputOptions(target_output_key=self.target_output_key)
        return {name: write_text(read_side(chosen, fields, name)) for name in names}


async def ask_semantic(options: OutputJudgeOptions, fields: Fields, chat: Chat) -> Verdict:
    """Score what the judge says of the two outputs, as a share of its scale."""
    form = ScoreForm(options.scale)
    rubric = options.write_rubric(PROMPT, form, PROMPT.head.shown)
    verdict = await ask_judge(rubric, options.read_sides(fields), options.sample(chat))
    return rescale(verdict, options.scale.high or 1.0)


def rescale(verdict: Verdict, top: float) -> Verdict:
    """Return a verdict on the scale of 0 to 1."""
    return replace(verdict, score=None if verdict.score is None else verdict.score / top)


EVALUATOR = JudgeEvaluator(
    name=PROMPT.head.name,
    summary=PROMPT.head.summary,
    aliases=PROMPT.head.aliases,
    needs=PROMPT.head.shown,
    options=OutputJudgeOptions,
    scale=SHARE,
    threshold=0.5,
    ask=ask_semantic,
    rubrics=(PROMPT.rubric,),
)
