"""Verdicts: what a judge's reply says, read strictly first, and never from the material it was shown."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from assay.contracts.json_text import MENDING, is_deep, mend_commas, parse_json
from evaluators.contract import Verdict
from evaluators.material import MOST_PLAIN, PLAIN
from evaluators.reply_forms import NUMBER, ScoreForm, UnusableError, read_score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.contracts.json_text import JsonValue
    from evaluators.material import Material
    from evaluators.reply_forms import Form

    JsonObject = dict[str, JsonValue]

MOST_TRIES = 256  # broken objects of one text that are looked past
MOST_OBJECTS = 16  # different verdicts of one reply that are compared with the material
MOST_MENDED = 4_000  # characters of a reply whose commas are looked at
_OPENING = re.compile(r'\{\s*+"')
_BRACES = re.compile(r"[{}]")
_FENCE = re.compile(r"```[a-z]*\s*", re.IGNORECASE)
_TAGGED = re.compile(rf"<S2>\s*({NUMBER})\s*</S2>")


class QuotedError(UnusableError):
    """What looks like a verdict is a piece of the material."""


def read_verdict(reply: str, form: Form, material: Material) -> Verdict:
    """Read what a judge said.

    A JSON object alone is read as it is. Failing that, a fence around it, a comma before its closing bracket
    and line breaks inside its texts are looked past, then thoughts before it, then prose around it; where a
    score is asked for, a reply that is nothing but the score counts too. An object or score that stands in
    the material is a quotation and never a verdict, of several verdicts none counts, and nothing is taken out
    of a broken object. Nothing is guessed or moved onto a scale.

    Args:
        reply: The text of the answer.
        form: What was asked for.
        material: What the judge was shown.

    Raises:
        UnusableError: There is no verdict, or not exactly one, or it is not of the form.
        QuotedError: All there is stands in the material.
    """
    told = reply.strip()
    source, value = _parse_whole(told)
    if source is None and (rest := _drop_thoughts(material.drop_echo(told)).strip()) != told:
        told = rest
        source, value = _parse_whole(told)
    objects = _scan(told) if source is None else ((source, value),)
    found = [
        (text, each)
        for text, each in objects
        if isinstance(each, dict) and any(key in each for key in form.keys)
    ]
    if found:
        return form.read(_choose(found, material))
    if isinstance(form, ScoreForm) and not isinstance(value, dict | list):
        return _read_plain(told, form, material)
    raise UnusableError("no JSON object with " + " or ".join(f"`{key}`" for key in form.keys))


def _drop_thoughts(told: str) -> str:
    """Return what a model says after thinking aloud."""
    rest = told.rpartition("</think>")[2]
    return rest if rest.strip() else told


def _choose(found: list[tuple[str, JsonObject]], material: Material) -> JsonObject:
    """Return the one verdict that is the judge's own."""
    distinct = dict(found)
    if len(distinct) > MOST_OBJECTS:
        raise UnusableError("many verdicts where one is asked for")
    own: list[JsonObject] = []
    for source, each in distinct.items():
        if each not in own and not material.holds(source, each):
            own.append(each)
    if not own:
        raise QuotedError("the verdict is a piece of the material, not your own")
    if len(own) > 1:
        raise UnusableError("several verdicts where one is asked for")
    return own[0]


def _parse_whole(told: str) -> tuple[str | None, JsonValue]:
    """Return the JSON that a text is, in a fence or not, and its value; None: it is none."""
    head, _, body = told.partition("\n")
    inner = body[:-3] if _FENCE.fullmatch(head) and body.endswith("```") else told
    for read in (parse_json, _parse_mended):
        try:
            return inner.strip(), read(inner)
        except (ValueError, RecursionError):
            continue
    return None, None


def _parse_mended(text: str) -> JsonValue:
    value: JsonValue = MENDING.decode(mend_commas(text) if len(text) <= MOST_MENDED else text)
    if is_deep(text, value):
        raise RecursionError
    return value


def _scan(text: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the outermost JSON objects inside a text with their sources, none from inside of a broken one.

    Raises:
        UnusableError: So much of it is broken that it is not worth the time.
    """
    place, broken, ends = 0, 0, dict[int, int]()
    while opening := _OPENING.search(text, place):
        start = opening.start()
        try:
            value, place = _read_object(text, start)
        except (ValueError, RecursionError):
            broken += 1
            ends = ends or _match_braces(text)
            place = ends.get(start, len(text))
            if broken > MOST_TRIES:
                raise UnusableError("no JSON object among so many broken ones") from None
        else:
            yield text[start:place], value


def _read_object(text: str, start: int) -> tuple[JsonObject, int]:
    value, end = MENDING.raw_decode(text, start)
    if is_deep(text[start:end], value):
        raise RecursionError
    return value, end


def _match_braces(text: str) -> dict[int, int]:
    """Return where the brace that begins at a place is closed, by counting alone."""
    begun: list[int] = []
    ends: dict[int, int] = {}
    for brace in _BRACES.finditer(text):
        if brace.group() == "{":
            begun.append(brace.start())
        elif begun:
            ends[begun.pop()] = brace.end()
    return ends


def _read_plain(told: str, form: ScoreForm, material: Material) -> Verdict:
    """Read a reply that is nothing but a score, such as `4`, `Score: 4` or `4/5`, or one in `<S2>` tags."""
    tagged = list(islice(_TAGGED.finditer(told), MOST_OBJECTS + 1))
    own = [match for match in tagged if not material.holds_words(match.group())]
    plain = PLAIN.fullmatch(told) if len(told) <= MOST_PLAIN else None
    if len(own) == 1 and len(tagged) <= MOST_OBJECTS:
        number, top = own[0].group(1), None
    elif plain is not None:
        number, top = plain.groups()
        if material.holds_words(told):
            raise QuotedError("the score is a piece of the material, not your own")
    else:
        raise UnusableError("no JSON object with `score`")
    if top is not None and float(top) != form.scale.high:
        raise UnusableError(f"a score out of {top} on the scale {form.scale}")
    return Verdict(read_score({"score": number}, form.scale))
