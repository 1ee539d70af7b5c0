"""Messages of a model grader: a user's own prompt, the values of its placeholders shown as blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from evaluators.contract import Options, Verdict
from evaluators.judging import ask_judge, build_rubric
from evaluators.reply_forms import UnusableError, read_text
from evaluators.sampling import SampledChat, Sampling

if TYPE_CHECKING:
    from assay.contracts.chat import Chat
    from evaluators.contract import Fields
    from evaluators.reply_forms import Form, Found, Schema

ANSWER = "sample.output_text"  # its block is `response`, as everywhere
_PLACEHOLDER = re.compile(
    r"(?P<off>\\?)(?P<whole>\{\{(?P<braces>.*?)\}\}|<<(?P<angles>\s*(?:item|sample)\b[^<>]*)>>"
    r"|\$\{(?P<older>(?:data|target)\.[^{}]*)\})",
    re.DOTALL,
)


class TextPart(Options):
    """A part of a message."""

    type: Literal["input_text", "output_text", "text"] = Field(description="text is all that is judged")
    text: str = Field(description="the text")


class GraderMessage(Options):
    """One message of the prompt."""

    type: Literal["message"] = Field(default="message", description="a message")
    role: Literal["system", "developer", "user", "assistant"] = Field(description="who speaks")
    content: str | TextPart | list[str | TextPart] = Field(description="a text, or parts that are texts")

    @property
    def text(self) -> str:
        """The text of all parts."""
        parts = self.content if isinstance(self.content, list) else [self.content]
        told = "\n".join(part if isinstance(part, str) else part.text for part in parts)
        return f"An example of a reply:\n{told}" if self.role == "assistant" else told


class ModelGraderOptions(Options):
    """What the graders that ask a model have in common."""

    input: list[GraderMessage] = Field(
        min_length=1,
        description="the prompt: messages with role and content; {{item.FIELD}} and {{sample.output_text}} "
        "in them stand for what the judge is shown of the row",
    )
    model: str | None = Field(
        default=None, description="the model that the grader names; who is asked is the judge of the run"
    )
    sampling_params: Sampling | None = Field(
        default=None, description="temperature, top_p, seed, max_completions_tokens, reasoning_effort"
    )

    @cached_property
    def prompt(self) -> GraderPrompt:
        """The prompt, parsed."""
        return parse_messages(self.input)

    @property
    def extra_needs(self) -> tuple[str, ...]:
        """The answer, where the prompt shows it."""
        return tuple(name for name in self.prompt.blocks if name == "response")

    @property
    def extra_wants(self) -> tuple[str, ...]:
        """The fields behind the other blocks."""
        return tuple(_name_field(name) for name in self.prompt.blocks if name != "response")

    @property
    def extra_mapping(self) -> dict[str, str]:
        """Field to placeholder."""
        return {_name_field(name): placeholder for name, placeholder in self.prompt.blocks.items()}

    @model_validator(mode="after")
    def _show_something(self) -> Self:
        if not self.prompt.blocks:
            text = "messages that show the judge something of the row: {{sample.output_text}}, {{item.FIELD}}"
            raise PydanticCustomError("nothing_shown", "{text}", {"text": text})
        return self


@dataclass(frozen=True, slots=True)
class GraderPrompt:
    """The messages as one rubric.

    Attributes:
        text: What they say, placeholders named as blocks.
        blocks: Block to placeholder, as written.
    """

    text: str
    blocks: dict[str, str]


def parse_messages(messages: list[GraderMessage]) -> GraderPrompt:
    r"""Name a block for every different placeholder and put its name into the text; `\{{` is plain text."""
    blocks: dict[str, str] = {}
    names: dict[str, str] = {}

    def place(match: re.Match[str]) -> str:
        if match["off"]:
            return match["whole"]
        inner = (match["braces"] or match["angles"] or match["older"] or "").strip()
        if inner not in names:
            names[inner] = _name_block(inner, blocks)
            blocks[names[inner]] = match["whole"]
        return f"`{names[inner]}`"

    text = "\n\n".join(_PLACEHOLDER.sub(place, message.text) for message in messages)
    return GraderPrompt(text, blocks)


def _name_block(inner: str, taken: dict[str, str]) -> str:
    if inner in {ANSWER, ANSWER.replace("sample", "target")}:
        return "response"
    base = re.sub(r"\W+", "_", inner).strip("_") or "value"
    name, number = base, 1
    while name in taken or name == "response":
        number += 1
        name = f"{base}_{number}"
    return name


def _name_field(block: str) -> str:
    """Return the field behind a block; what it is read from is up to the mapping."""
    return block if block == "response" else f"{block}.context"


async def ask_grader(options: ModelGraderOptions, form: Form, fields: Fields, chat: Chat) -> Verdict:
    """Ask the judge what the messages ask, and take `result` and `steps` for a reply as well.

    Raises:
        CallError: As `ask_judge`.
    """
    prompt = options.prompt
    rubric = build_rubric(prompt.text, form, prompt.blocks)
    shown = {block: fields[_name_field(block)] or "" for block in prompt.blocks}
    return await ask_judge(rubric, shown, SampledChat(chat, options.sampling_params or Sampling()))


@dataclass(frozen=True, slots=True)
class StepsForm:
    """A form that may also come as OpenAI's graders write it: `result` for the verdict, `steps` for a reason.

    Attributes:
        form: The form as it is asked for.
        name: The member that is the verdict.
    """

    form: Form
    name: str

    @property
    def keys(self) -> tuple[str, ...]:
        """The verdict, under either name."""
        return (self.name, "result")

    @property
    def schema(self) -> Schema:
        """That of the form."""
        return self.form.schema

    @property
    def example(self) -> str:
        """That of the form."""
        return self.form.example

    def read(self, found: Found) -> Verdict:
        """Read the object; steps go into the details, and the last conclusion stands for a reason."""
        if self.name in found and "result" in found:
            raise UnusableError(f"both `{self.name}` and `result`")
        verdict = self.form.read({self.name: found.get("result"), **found})
        told = found.get("steps")
        steps = [step for step in told if isinstance(step, dict)] if isinstance(told, list) else []
        if not steps:
            return verdict
        reason = verdict.reason or read_text(steps[-1], "conclusion")
        return replace(verdict, reason=reason, details={**(verdict.details or {}), "steps": steps})
