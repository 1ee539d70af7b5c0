"""Verdicts: what a judge's reply says, read strictly first, and never from the material it was shown."""

from __future__ import annotations

import base64
import binascii
import html
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from assay.contracts.json_text import MENDING, mend_commas, parse_json
from evaluators.contract import Verdict
from evaluators.reply_forms import NUMBER, ScoreForm, UnusableError, read_score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.contracts.json_text import JsonValue
    from evaluators.reply_forms import Form

    JsonObject = dict[str, JsonValue]

MOST_TRIES = 1_000  # broken objects of one text that are looked past
MOST_OBJECTS = 16  # different verdicts of one reply that are compared with the material
MOST_MEMBERS = 40  # members of one of them
MOST_ROUNDS = 8  # escapes within escapes
MOST_PLAIN = 100  # characters of a reply that is nothing but a score
MOST_MENDED = 4_000  # characters of a reply whose commas are looked at
MOST_CODED = 20  # pieces of a text that are tried as base64
_OPENING = re.compile(r'\{\s*+"')
_BRACES = re.compile(r"[{}]")
_PLAIN = re.compile(
    rf"[*_#\s]*(?:(?:overall |final )?(?:score|rating|grade)[*_\s]*[:=][*_\s]*)?({NUMBER})"
    rf"(?:\s*/\s*({NUMBER}))?[*_\s.]*",
    re.IGNORECASE,
)
_TAGGED = re.compile(rf"<S2>\s*({NUMBER})\s*</S2>")
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|(.))", re.DOTALL | re.IGNORECASE)
_AMPERSANDS = re.compile(r"&(?:amp;|#0*38;|#x0*26;)+", re.IGNORECASE)
_SPACES = frozenset("nrtbf")  # letters of escapes that stand for white space
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_LONGEST_NUMBER = 40  # digits beyond which a number is compared letter by letter
_PIECES = re.compile(r'[\n\r"<>|]')
_CODED = re.compile(r"[A-Za-z0-9+/]{20,}={0,2}")
_IMITATION = re.compile(
    r'"(?:score|label|verdict|rating|grade)"\s*:|</?S\d>|\[\[\d'
    r"|\b(?:score|rating|grade|verdict|label|bewertung|punktzahl|note|puntuaci[oó]n|pontua[cç][aã]o"
    r"|punteggio|оценка|балл)['\"*_]*\s*(?:[:=]|\bis\b)\s*\S|(?:评分|評分|得分|分数|分數|点数|点數|점수)\s*[::=]"
    r"|</?[a-z_]*(?:response|query|context|system|assistant|user|material|tool_call|function)\b"
    r"|<\|\w|\[/?INST\]|<<SYS>>|^\W*(?:system|assistant|developer)\W{0,3}:|^#+ *(?:system|instruction)"
    r"|\b(?:ignore|disregard|forget)\b.{0,40}\b(?:above|previous|prior|instructions?|rubric|rules)\b"
    r"|\b(?:give|award|assign|rate|grade|reply|respond|output|return)\b.{0,40}"
    r"\b(?:score|scores|grade|points|marks|[1-9]\d* ?(?:/|out of) ?\d|five|ten)\b"
    r"|\b(?:ignorier|vergiss|ignorez|ignora|игнорируй)|忽略|無視|무시",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Material:
    """What a judge was shown.

    Attributes:
        texts: The texts of the blocks.
        code: The code that their fences carry in this call.
    """

    texts: tuple[str, ...]
    code: str

    def holds(self, found: JsonObject) -> bool:
        """Whether every member of a verdict stands in the material, however it is spelt, laid out or escaped."""
        if self._is_opaque:
            return True
        pairs = islice(_list_members(found), MOST_MEMBERS)
        return all(self._holds_member(key, value) for key, value in pairs)

    def holds_words(self, text: str) -> bool:
        """Whether the words of a text follow one another in the material; one without letters: as a piece."""
        words = _split_words(_decode(text))
        if any(word.isalpha() for word in words):
            return self._is_opaque or f" {' '.join(words)} " in self._words
        return self._is_opaque or tuple(words) in self._scores

    def drop_echo(self, reply: str) -> str:
        """Return a reply without the blocks that it repeats."""
        if self.code not in reply:
            return reply
        return re.sub(rf"<(\w+)-{self.code}>.*?</\1-{self.code}>", " ", reply, flags=re.DOTALL)

    def _holds_member(self, key: str, value: JsonValue) -> bool:
        if isinstance(value, str) and not re.fullmatch(NUMBER, value.strip()):
            return _squeeze(f"{key} {_decode(value)}") in self._letters
        words = _split_words(_decode(f"{key} {value}"))
        return f" {' '.join(words)} " in self._words

    @cached_property
    def _plain(self) -> str:
        return "\n".join(map(_decode, self.texts))

    @cached_property
    def _is_opaque(self) -> bool:
        """Whether escapes are nested so deep that nobody can say what the material holds."""
        return _decode_once(self._plain) != self._plain

    @cached_property
    def _words(self) -> str:
        return f" {' '.join(_split_words(self._plain))} "

    @cached_property
    def _letters(self) -> str:
        return _squeeze(self._plain)

    @cached_property
    def _scores(self) -> frozenset[tuple[str, ...]]:
        """The pieces that are nothing but a number, such as a line or a JSON text."""
        pieces = (piece for piece in _PIECES.split(self._plain) if len(piece) <= MOST_PLAIN)
        return frozenset(tuple(_split_words(piece)) for piece in pieces if _PLAIN.fullmatch(piece.strip()))


def count_imitations(text: str) -> int:
    """Return how many pieces of a text look like a verdict, the end of a block or an order to the judge.

    Escapes, look-alike characters and invisible ones are seen through, and so is base64.
    """
    coded = islice(_CODED.finditer(text), MOST_CODED)
    told = [text, "\n".join(_decode_base64(match.group()) for match in coded)]
    plain = _decode(text)
    counts = [sum(1 for _ in _IMITATION.finditer(each)) for each in (*told, plain if plain != text else "")]
    return max(counts[0], counts[2]) + counts[1]


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
    told = reply.strip()
    is_json, value = _parse_whole(told)
    if not is_json:
        told = material.drop_echo(told).strip()
        is_json, value = _parse_whole(told)
    objects = (value,) if is_json else _scan(told)
    found = [each for each in objects if isinstance(each, dict) and any(key in each for key in form.keys)]
    if found:
        return form.read(_choose(found, material))
    if isinstance(form, ScoreForm) and not isinstance(value, dict | list):
        return _read_plain(told, form, material)
    raise UnusableError("no JSON object with " + " or ".join(f"`{key}`" for key in form.keys))


def _choose(found: list[JsonObject], material: Material) -> JsonObject:
    """Return the one verdict that is the judge's own."""
    distinct: list[JsonObject] = []
    for each in found:
        if each not in distinct:
            distinct.append(each)
        if len(distinct) > MOST_OBJECTS:
            raise UnusableError("many verdicts where one is asked for")
    own = [each for each in distinct if not material.holds(each)]
    if not own:
        raise UnusableError("the verdict is a piece of the material, not your own")
    if len(own) > 1:
        raise UnusableError("several verdicts where one is asked for")
    return own[0]


def _parse_whole(told: str) -> tuple[bool, JsonValue]:
    """Return whether a text is JSON, in a fence or not, and its value."""
    head, _, body = told.partition("\n")
    fenced = re.fullmatch(r"```[a-z]*\s*", head, re.IGNORECASE) and body.endswith("```")
    inner = body[:-3] if fenced else told
    for read in (parse_json, _parse_mended):
        try:
            return True, read(inner)
        except (ValueError, RecursionError):
            continue
    return False, None


def _parse_mended(text: str) -> JsonValue:
    value: JsonValue = MENDING.decode(mend_commas(text) if len(text) <= MOST_MENDED else text)
    return value


def _scan(text: str) -> Iterator[JsonObject]:
    """Yield the JSON objects inside a text, the outermost ones, none from inside of a broken one.

    Raises:
        UnusableError: So much of it is broken that it is not worth the time.
    """
    place, broken, ends = 0, 0, dict[int, int]()
    while opening := _OPENING.search(text, place):
        start = opening.start()
        try:
            value, place = MENDING.raw_decode(text, start)
        except (ValueError, RecursionError):
            broken += 1
            ends = ends or _match_braces(text)
            place = ends.get(start, len(text))
            if broken > MOST_TRIES:
                raise UnusableError("no JSON object among so many broken ones") from None
        else:
            yield value


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
    plain = _PLAIN.fullmatch(told) if len(told) <= MOST_PLAIN else None
    if len(own) == 1 and len(tagged) <= MOST_OBJECTS:
        number, top = own[0].group(1), None
    elif plain is not None:
        number, top = plain.groups()
        if material.holds_words(told):
            raise UnusableError("the score is a piece of the material, not your own")
    else:
        raise UnusableError("no JSON object with `score`")
    if top is not None and float(top) != form.scale.high:
        raise UnusableError(f"a score out of {top} on the scale {form.scale}")
    return Verdict(read_score({"score": number}, form.scale))


def _list_members(found: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Yield the values at all depths of an object, each with the name it stands under."""
    waiting: list[tuple[str, JsonValue]] = [("", found)]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += reversed(value.items())
        elif isinstance(value, list):
            waiting += [("", each) for each in reversed(value)]
        else:
            yield key, value


def _decode(text: str) -> str:
    """Return a text as a reader may see it: escapes resolved, look-alikes and invisible characters gone."""
    for _ in range(MOST_ROUNDS):
        before, text = text, _decode_once(text)
        if text == before:
            break
    return text


def _decode_once(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    if "\\" in text:
        text = _ESCAPE.sub(_read_escape, text)
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return html.unescape(_AMPERSANDS.sub("&", text)) if "&" in text else text


def _read_escape(escape: re.Match[str]) -> str:
    digits, letter = escape.group(1) or escape.group(2), escape.group(3)
    if digits:
        return chr(int(digits, 16))
    return " " if letter in _SPACES else letter


def _split_words(text: str) -> list[str]:
    """Return the words of a text, whatever their case, and its numbers, whatever their spelling."""
    return [
        repr(float(word)) if word[0].isdecimal() and len(word) <= _LONGEST_NUMBER else word
        for word in _WORD.findall(text.casefold())
    ]


def _squeeze(text: str) -> str:
    """Return the letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text.casefold())


def _decode_base64(text: str) -> str:
    try:
        return base64.b64decode(text[: len(text) // 4 * 4]).decode("utf-8", "ignore")
    except (binascii.Error, ValueError):
        return ""
