"""Material: what a judge was shown, whether a text is a piece of it, and what in it imitates a verdict."""

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

from evaluators.reply_forms import NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assay.contracts.json_text import JsonValue

    JsonObject = dict[str, JsonValue]

MOST_MEMBERS = 40  # members of an object that are looked for
LONG_SOURCE = 20  # letters of an object that cannot be alike by chance
MOST_ROUNDS = 16  # escapes within escapes
MOST_PLAIN = 100  # characters of a text that is nothing but a score
MOST_CODED = 20  # pieces of a text that are tried as base64
PLAIN = re.compile(
    rf"[*_#\s]*(?:(?:overall |final )?(?:score|rating|grade)[*_\s]*[:=][*_\s]*)?({NUMBER})"
    rf"(?:\s*/\s*({NUMBER}))?[*_\s.]*",
    re.IGNORECASE,
)
"""A text that is nothing but a score, perhaps with the top of its scale."""

_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|(.))", re.DOTALL | re.IGNORECASE)
_RARE_ESCAPE = re.compile(r"\\[ux\\]", re.IGNORECASE)
_SPACES = frozenset("nrtbf")  # letters of escapes that stand for white space
_AMPERSANDS = re.compile(r"&(?:amp;|#0*38;|#x0*26;)+", re.IGNORECASE)
_ZEROS = re.compile(r"&#(x?)0+(?=[0-9a-f])", re.IGNORECASE)
_NO_CHARACTER = re.compile(r"&#\d{8,}+;?")
_WORD = re.compile(r"[^\W\d_]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_LONGEST_NUMBER = 40  # digits beyond which a number is compared letter by letter
_MARKS = {code: None for code in range(128) if not chr(code).isalnum()}
_PIECES = re.compile(r'[\n\r"<>|]')
_BRACKETS = " \t[](){}`'"
_CODED = re.compile(r"[A-Za-z0-9+/]{20,}={0,2}")
_IMITATIONS: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...] = (
    (
        ("score", "label", "verdict", "rating", "grade"),
        re.compile(r"""\b(?:score|label|verdict|rating|grade)['"*_\\]*\s*[:=\uff1a]\s*\S"""),
    ),
    (
        (
            "bewertung",
            "punktzahl",
            "puntuaci",
            "pontua",
            "punteggio",
            "оценка",
            "балл",
            "分",
            "点数",
            "點数",
            "점수",
        ),
        re.compile(
            r"(?:\b(?:bewertung|punktzahl|puntuaci[oó]n|pontua[cç][aã]o|punteggio|оценка|балл)"
            r"|[评評得]分|分[数數]|[点點]数|점수)['\"*_]*\s*[:=\uff1a]"
        ),
    ),
    (
        ("<", "[["),
        re.compile(
            r"</?s\d>|</[a-z_]*(?:response|query|context|system|assistant|user|material)"
            r"|<(?:system|/?tool_call)\b|<\|\w|<<sys>>|\[\[\d"
        ),
    ),
    (("[inst", "[/inst"), re.compile(r"\[/?inst\]")),
    (
        ("system", "assistant", "developer", "instruct"),
        re.compile(
            r"^[^\w\n]*(?:system|assistant|developer)[^\w\n]{0,3}:|^#+ *(?:system|instruct)", re.MULTILINE
        ),
    ),
    (
        ("ignor", "disregard", "forget", "vergiss"),
        re.compile(
            r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:above|previous|prior|instructions?|rubric|rules)\b"
            r"|\b(?:ignoriere|ignorez|ignora|vergiss)\b",
            re.DOTALL,
        ),
    ),
    (
        ("give", "award", "assign", "rate", "grade", "reply", "respond"),
        re.compile(
            r"\b(?:give|award|assign|rate|grade|reply|respond)\b.{0,40}"
            r"\b(?:scores?|grade|points|marks|[1-9]\d* ?(?:/|out of) ?\d|five|ten)\b",
            re.DOTALL,
        ),
    ),
    (("игнорируй", "忽略", "無視", "무시"), re.compile(r"игнорируй|忽略|無視|무시")),
)
"""What looks like a verdict, the end of a block or an order, each behind words it never comes without."""


@dataclass(frozen=True)
class Material:
    """What a judge was shown.

    Attributes:
        texts: The texts of the blocks.
        code: The code that their fences carry in this call.
    """

    texts: tuple[str, ...]
    code: str

    def holds(self, source: str, found: JsonObject) -> bool:
        """Whether an object stands in the material: its source, or each of its members in any spelling."""
        letters = _squeeze(source)
        is_long = len(letters) >= LONG_SOURCE
        if self._is_opaque or (is_long and letters in self._letters) or any(source in t for t in self.texts):
            return True
        pairs = islice(_list_members(found), MOST_MEMBERS)
        return all(self._holds_member(key, value) for key, value in pairs)

    def holds_words(self, text: str) -> bool:
        """Whether the words of a text follow one another in the material; one without letters: as a piece."""
        words = _split_words(_decode(text))
        if any(word.isalpha() for word in words):
            return self._is_opaque or f" {' '.join(words)} " in self._words
        return self._is_opaque or self._scores.issuperset(words)

    def drop_echo(self, reply: str) -> str:
        """Return a reply without the blocks that it repeats."""
        if self.code not in reply:
            return reply
        kept, place, unclosed = list[str](), 0, set[str]()
        for opening in re.finditer(rf"<(\w+)-{self.code}>", reply):
            closing = f"</{opening.group(1)}-{self.code}>"
            if opening.start() < place or closing in unclosed:
                continue
            end = reply.find(closing, opening.end())
            if end < 0:
                unclosed.add(closing)
            else:
                kept.append(reply[place : opening.start()])
                place = end + len(closing)
        return " ".join([*kept, reply[place:]])

    def _holds_member(self, key: str, value: JsonValue) -> bool:
        if isinstance(value, str) and not re.fullmatch(NUMBER, value.strip()):
            return _squeeze(_decode(f"{key} {value}")) in self._letters
        words = _split_words(_decode(f"{key} {'null' if value is None else value}"))
        return f" {' '.join(words)} " in self._words

    @cached_property
    def _plain(self) -> str:
        return "\n".join(map(_decode, self.texts))

    @cached_property
    def _is_opaque(self) -> bool:
        """Whether escapes are nested so deep that nobody can say what the material holds."""
        is_bare = "\\" not in self._plain and "&" not in self._plain
        return not is_bare and _decode_once(self._plain) != self._plain

    @cached_property
    def _words(self) -> str:
        return f" {' '.join(_split_words(self._plain))} "

    @cached_property
    def _letters(self) -> str:
        """Letters and digits, also as they were before anything was resolved: an echo may break that up."""
        raw = "\n".join(self.texts)
        return _squeeze(raw if raw == self._plain else f"{self._plain}\n{raw}")

    @cached_property
    def _scores(self) -> frozenset[str]:
        """The numbers of pieces that are nothing else, such as a line or a JSON text."""
        pieces = (each.strip(_BRACKETS) for each in _PIECES.split(self._plain) if len(each) <= MOST_PLAIN)
        return frozenset(word for each in pieces if PLAIN.fullmatch(each) for word in _split_words(each))


def count_imitations(text: str) -> int:
    """Return how many pieces of a text look like a verdict, the end of a block or an order to the judge.

    Escapes, look-alike characters and invisible ones are seen through, and so is base64.
    """
    plain = _decode(text)
    coded = [_decode_base64(match.group()) for match in islice(_CODED.finditer(text), MOST_CODED)]
    shown = max(map(_count, {text, plain}))
    return shown + sum(map(_count, coded))


def _count(text: str) -> int:
    folded = text.casefold()
    return sum(
        sum(1 for _ in pattern.finditer(folded))
        for words, pattern in _IMITATIONS
        if any(word in folded for word in words)
    )


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
    """Resolve entities, or where there are none, escapes; the other way round each could hide the other."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    if "&" in text:
        before, text = text, _ZEROS.sub(r"&#\1", _AMPERSANDS.sub("&", text))
        text = html.unescape(_NO_CHARACTER.sub(" ", text))
        if text != before:
            return text
    return _resolve_escapes(text) if "\\" in text else text


def _resolve_escapes(text: str) -> str:
    if _RARE_ESCAPE.search(text) is None:  # nearly always, and many times as fast
        for letter in _SPACES:
            text = text.replace(f"\\{letter}", " ")
        return text.replace("\\", "")
    text = _ESCAPE.sub(_read_escape, text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
    folded = text.casefold()
    if folded.isascii():
        return folded.translate(_MARKS)  # ten times as fast
    return re.sub(r"[\W_]+", "", folded)


def _decode_base64(text: str) -> str:
    try:
        return base64.b64decode(text[: len(text) // 4 * 4]).decode("utf-8", "ignore")
    except (binascii.Error, ValueError):
        return ""
