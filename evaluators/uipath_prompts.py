"""Prompts of UiPath's judges: what the built-in ones and a user's own have in common."""

from __future__ import annotations

import re
from functools import cached_property, partial
from typing import TYPE_CHECKING

from pydantic import Field

from evaluators.contract import Options, Scale
from evaluators.judging import build_rubric
from evaluators.sampling import SampledChat, Sampling

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assay.contracts.chat import Chat
    from evaluators.judging import Rubric
    from evaluators.prompt_files import PromptFile
    from evaluators.reply_forms import Form

PERCENT, SHARE = Scale(0.0, 100.0), Scale(0.0, 1.0)
BLOCKS: Mapping[str, str] = {
    "actualoutput": "response",
    "expectedoutput": "expected_response",
    "agentrunhistory": "run_history",
    "expectedagentbehavior": "expected_behavior",
    "expectedbehavior": "expected_behavior",
    "userorsyntheticinput": "user_input",
    "simulationinstructions": "simulation_instructions",
}
"""UiPath's placeholder, in lower case, to the block that shows its value."""

_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_OF_ONE = re.compile(
    r"\b0(?:\.0+)?\s*(?:-|\u2013|to|and|through|\.\.+)\s*1(?:\.0+)?(?![.,]?\d)", re.IGNORECASE
)
_OF_HUNDRED = re.compile(r"\b100\b")


class JudgeSettings(Options):
    """What a UiPath file says of a judge."""

    prompt: str | None = Field(
        default=None,
        min_length=1,
        description="a prompt of your own instead of the built-in one; {{ActualOutput}} and the other "
        "placeholders of UiPath name what is shown, and what is not named is shown too",
    )
    model: str | None = Field(
        default=None, description="the model that the file names; who is asked is the judge of the run"
    )
    temperature: float | None = Field(default=None, ge=0, description="0 is the least random")
    max_tokens: int | None = Field(default=None, ge=1, description="room for the answer")

    @cached_property
    def sampling(self) -> Sampling:
        """How the judge is to sample."""
        return Sampling(temperature=self.temperature, max_completion_tokens=self.max_tokens)

    @cached_property
    def scale(self) -> Scale:
        """The scale a score is asked on: 0 to 100, but 0 to 1 for a prompt that speaks of that alone."""
        text = self.prompt or ""
        return SHARE if _OF_ONE.search(text) and not _OF_HUNDRED.search(text) else PERCENT

    def write_rubric(self, prompt: PromptFile, form: Form, shown: Sequence[str]) -> Rubric:
        """Return what the judge is told: the prompt of the options, else the built-in one.

        Args:
            prompt: The built-in one.
            form: What is answered with.
            shown: The blocks there may be.
        """
        text = prompt.text
        if self.prompt is not None:
            text = _PLACEHOLDER.sub(partial(_name_block, shown), self.prompt)
        return build_rubric(text, form, shown, prompt.head.max_output_tokens)

    def add_to(self, rubric: Rubric, shown: Sequence[str]) -> Rubric:
        """Return a rubric with the prompt of the options below its own text."""
        if self.prompt is None:
            return rubric
        text = f"{rubric.text}\n\n{self.prompt}"
        return build_rubric(text, rubric.form, shown, rubric.max_output_tokens)

    def sample(self, chat: Chat) -> Chat:
        """Return a chat whose requests are sampled as the options say."""
        return SampledChat(chat, self.sampling)


def _name_block(shown: Sequence[str], match: re.Match[str]) -> str:
    """Return the name of a block; a placeholder that is none of UiPath's stays as it is."""
    block = BLOCKS.get(match[1].casefold())
    return f"`{block}`" if block in shown else match[0]
