"""Verdicts: what a judge's reply says, read strictly first, and never from the material it was shown."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.contracts.json_text import MENDING, mend_commas, parse_json
from evaluators.contract import Verdict
from evaluators.reply_forms import NUMBER, ScoreForm, UnusableError, read_score

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from assay.contracts.json_text import JsonValue
    from evaluators.reply_forms import Form

    JsonObject = dict[str, JsonValue]

MOST_TRIES = 256  # places of one text where an object is looked for
_FENCE = re.compile(r"```[a-z]*\s*\n(.*)\n\s*```", re.DOTALL | re.IGNORECASE)
_PLAIN = re.compile(
    rf"[*_#\s]*(?:(?:overall |final )?(?:score|rating|grade)[*_\s]*[:=][*_\s]*)?({NUMBER})"
    rf"(?:\s*/\s*({NUMBER}))?[*_\s.]*",
    re.IGNORECASE,
)
_TAGGED = re.compile(rf"<S2>\s*({NUMBER})\s*</S2>")
_IMITATION = re.compile(
    r'"(?:score|label|verdict|rating|grade)"\s*:|</?S\d>|\b(?:score|rating|grade|verdict)\s*[:=]\s*\S'
    r"|</[a-z_]*(?:response|query|context|system|assistant|user|material)|<\|im_|\[/?INST\]"
    r"|\b(?:ignore|disregard|forget)\b.{0,40}\b(?:above|previous|prior|instructions?|rubric|rules)\b",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Material:
    """What a judge was shown.

    Attributes:
        texts: The texts of the blocks.
        code: The code that their fences carry in this call.
    """

    texts: tuple[str, ...]
    code: str

    def holds(self, text: str) -> bool:
        """Whether a text stands in the material; a short one without letters, as a line of its own."""
        if any(letter.isalpha() for letter in text):
            wanted = " ".join(text.casefold().split())
            return any(wanted in " ".join(each.casefold().split()) for each in self.texts)
        return any(line.strip() == text for each in self.texts for line in each.splitlines())

    def drop_echo(self, reply: str) -> str:
        """Return a reply without the blocks that it repeats, closed or not."""
        if self.code not in reply:
            return reply
        return re.sub(rf"<(\w+)-{self.code}>.*?(?:</\1-{self.code}>|\Z)", " ", reply, flags=re.DOTALL)


def count_imitations(text: str) -> int:
    """Return how many pieces of a text look like a verdict, the end of a block or an order to the judge."""
    return sum(1 for _ in _IMITATION.finditer(text))


def read_verdict(reply: str, form: Form, material: Material) -> Verdict:
    """Read what a judge said.

    A JSON object alone is read as it is. Failing that, a fence around it, a comma before its closing bracket
    and line breaks inside its texts are looked past, then prose around it; where a score is asked for, a
    reply that is nothing but the score counts too. An object or score that stands in the material is a
    quotation and never a verdict, and of several verdicts none counts. Nothing is guessed or moved onto a
    scale.

    Args:
        reply: The text of the answer.
        form: What was asked for.
        material: What the judge was shown.

    Raises:
        UnusableError: There is no verdict, or not exactly one, or it is not of the form.
    """
    told = material.drop_echo(reply).strip()
    objects = [pair for pair in _find_objects(told) if _is_verdict(pair[1], form)]
    own = [found for text, found in objects if not _is_quoted(text, found, material)]
    if objects and not own:
        raise UnusableError("the verdict is a piece of the material, not your own")
    if any(found != own[0] for found in own[1:]):
        raise UnusableError("several verdicts where one is asked for")
    if own:
        return form.read(own[0])
    if isinstance(form, ScoreForm):
        return _read_plain(told, form, material)
    raise UnusableError("no JSON object with " + " or ".join(f"`{key}`" for key in form.keys))


def _is_verdict(found: JsonObject, form: Form) -> bool:
    return any(key in found for key in form.keys)


def _is_quoted(text: str, found: JsonObject, material: Material) -> bool:
    """Whether a verdict stands in the material, letter by letter or written in another way."""
    if material.holds(text):
        return True
    return any(found == each for shown in material.texts if "{" in shown for _, each in _scan(shown))


def _find_objects(told: str) -> Sequence[tuple[str, JsonObject]]:
    """Return the JSON objects of a reply with their texts: the whole of it, or those inside."""
    fenced = _FENCE.fullmatch(told)
    inner = fenced.group(1) if fenced else told
    for read in (parse_json, _parse_mended):
        try:
            value = read(inner)
        except (ValueError, RecursionError):
            continue
        return [(inner.strip(), value)] if isinstance(value, dict) else []
    return list(_scan(told))


def _parse_mended(text: str) -> JsonValue:
    value: JsonValue = MENDING.decode(mend_commas(text))
    return value


def _scan(text: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the JSON objects inside a text, the outermost ones."""
    start = text.find("{")
    for _ in range(MOST_TRIES):
        if start < 0:
            return
        try:
            value, end = MENDING.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield text[start:end], value
        start = text.find("{", end)


def _read_plain(told: str, form: ScoreForm, material: Material) -> Verdict:
    """Read a reply that is nothing but a score, such as `4`, `Score: 4` or `4/5`, or one in `<S2>` tags."""
    tagged = [match for match in _TAGGED.finditer(told) if not material.holds(match.group())]
    plain = _PLAIN.fullmatch(told)
    if len(tagged) == 1:
        number, top = tagged[0].group(1), None
    elif plain is not None and not tagged:
        number, top = plain.groups()
        if material.holds(told):
            raise UnusableError("the score is a piece of the material, not your own")
    else:
        raise UnusableError("no JSON object with `score`")
    if top is not None and float(top) != form.scale.high:
        raise UnusableError(f"a score out of {top} on the scale {form.scale}")
    return Verdict(read_score({"score": json.loads(number.removeprefix("+"))}, form.scale))
