"""Judging: a prompt file and the fields of a row become one question to a model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from assay.contracts.chat import ChatRequest, text_message
from assay.contracts.json_text import sha_text
from assay.errors import CallError
from evaluators.verdicts import read_verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from assay.contracts.chat import Chat
    from evaluators.contract import Fields, Options, Scale, Verdict

MAX_OUTPUT_TOKENS = 800
_CODE_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt file.

    Attributes:
        name: The evaluator it belongs to.
        version: Version of the evaluator, raised with every change of the text.
        scale: The scale its rubric explains.
        system: Rubric and required form of the reply.
        sha: SHA-256 of the file.
    """

    name: str
    version: str
    scale: str
    system: str
    sha: str


@cache
def read_prompt(stem: str) -> Prompt:
    """Read `prompts/<stem>.md`: lines `key: value` between two lines `---`, then the system message."""
    data = files("evaluators").joinpath("prompts", f"{stem}.md").read_bytes()
    _, head, body = data.decode("utf-8").split("---\n", 2)
    facts = dict(line.split(": ", 1) for line in head.splitlines())
    sha = hashlib.sha256(data).hexdigest()
    return Prompt(facts["name"], facts["version"], facts["scale"], body.strip(), sha)


def build_request(prompt: Prompt, fields: Fields) -> ChatRequest:
    """Put the fields, unchanged, between tags that none of them can close.

    The tags carry a hash of all the fields, so a text that held its own closing tag would have to contain a
    hash of itself.

    Args:
        prompt: The rubric.
        fields: Field to text, in the order they are shown; a null one is left out.
    """
    code = sha_text(*fields.values())[:_CODE_DIGITS]
    blocks = [
        f"<{name}-{code}>\n{text}\n</{name}-{code}>" for name, text in fields.items() if text is not None
    ]
    messages = (text_message("system", prompt.system), text_message("user", "\n\n".join(blocks)))
    return ChatRequest(messages, temperature=0.0, max_output_tokens=MAX_OUTPUT_TOKENS, json_object=True)


def grade_by(
    stem: str, shown: tuple[str, ...], scale: Scale
) -> Callable[[Options, Fields, Chat], Awaitable[Verdict]]:
    """Return the question of a judge that needs nothing but its prompt file.

    Args:
        stem: Name of the prompt file.
        shown: Fields the judge sees, in that order.
        scale: Where its score must lie.
    """

    async def ask(_options: Options, fields: Fields, chat: Chat) -> Verdict:
        return await ask_judge(read_prompt(stem), {name: fields[name] for name in shown}, scale, chat)

    return ask


async def ask_judge(prompt: Prompt, fields: Fields, scale: Scale, chat: Chat) -> Verdict:
    """Ask a model for a verdict on a row that holds a `response`.

    Raises:
        CallError: `empty_response` without a call when the response is blank; `unparseable` or
            `truncated` for a reply without a verdict; or whatever the call failed with.
    """
    if not (fields["response"] or "").strip():
        raise CallError("empty_response", "the answer is blank, so the judge was not asked", attempts=0)
    reply = await chat.complete(build_request(prompt, fields))
    verdict = read_verdict(reply, scale)
    if verdict.score is None:
        raise CallError("unparseable", f"a label ({verdict.label}) where the rubric asks for a score")
    return replace(verdict, prompt_sha=prompt.sha)
