"""Ends of sentences in English ASCII text by the Punkt model, as NLTK 3.10 finds them.

Method: Kiss and Strunk (2006), Unsupervised Multilingual Sentence Boundary Detection, Computational
Linguistics 32. A period, question or exclamation mark is a candidate when white space or a mark that cannot
stand in a word follows. Whether it ends a sentence is read from the word before it and what follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final

from evaluators.text.shipped import read_shipped
from evaluators.text.treebank import SPACES

if TYPE_CHECKING:
    from collections.abc import Iterator

_S, _NOT_S = r"[ \t-\r]", r"[^ \t-\r]"
_NO_WORD: Final = r"[)\";}\]*:@'({\[?!]"
_RUN: Final = rf"(?:-{{2,}}|\.{{2,}}|(?:\.{_S}){{2,}}\.)"
_WORD: Final = re.compile(
    rf"{_RUN}"
    rf"|(?=[^(\"`{{\[:;&#*@)}}\]\-,]){_NOT_S}+?(?={_S}|\Z|{_NO_WORD}|{_RUN}|,(?:\Z|{_S}|{_NO_WORD}|{_RUN}))"
    rf"|{_NOT_S}"
)
_CANDIDATE: Final = re.compile(rf"[.?!](?=({_NO_WORD}|{_S}+({_NOT_S}+)))")
_CLOSERS: Final = frozenset("\"')]}")
_CLOSING: Final = re.compile(rf"[\"')\]}}]+?(?:{_S}+|(?=--)|$)", re.MULTILINE)
_NUMBER: Final = re.compile(r"-?[.,]?[0-9][0-9,.\-]*\Z")
_MARKS: Final = frozenset(";:,.!?")

_INNER_UPPER, _START_LOWER = 4, 16  # bits of the contexts in which the training text had a word
_UPPER, _LOWER = 2 + 4 + 8, 16 + 32 + 64

_TO_SPACE: Final = dict.fromkeys(map(ord, SPACES), " ")

MAX_DECISIONS: Final = 100_000
_always: dict[str, bool] = {}
_decided: dict[tuple[str, str], bool] = {}


@dataclass(frozen=True, slots=True)
class Model:
    """What training found out.

    Attributes:
        abbreviations: Lower-cased words that keep their period.
        starters: Lower-cased words that often begin a sentence.
        collocations: Pairs of a word with a period and the word after it that belong together.
        tied: The first words of these pairs.
        contexts: Of each lower-cased word, bits that say where it stood in upper and in lower case.
    """

    abbreviations: frozenset[str]
    starters: frozenset[str]
    collocations: frozenset[tuple[str, str]]
    tied: frozenset[str]
    contexts: dict[str, int]


@cache
def load_model() -> Model:
    """Read the English model."""
    abbreviations, starters, pairs, contexts = read_shipped("punkt-english.txt.gz").split("\n\n")
    rows = [line.split("\t") for line in contexts.splitlines()]
    tied = [(first, second) for first, second in (line.split("\t") for line in pairs.splitlines())]
    return Model(
        frozenset(abbreviations.split("\t")),
        frozenset(starters.split("\t")),
        frozenset(tied),
        frozenset(first for first, _ in tied),
        {word: int(bits) for bits, *words in rows for word in words},
    )


@dataclass(slots=True)
class _Word:
    """One word before and after the two looks at it."""

    text: str
    kind: str  # lower case, numbers alike
    ends: bool = False  # ends a sentence
    short: bool = False  # abbreviation or ellipsis

    @property
    def bare(self) -> str:
        """The kind without its last period."""
        return self.kind[:-1] if len(self.kind) > 1 and self.kind[-1] == "." else self.kind

    @property
    def follower(self) -> str:
        """The kind by which it is known as the word after a period."""
        return self.bare if self.ends else self.kind

    @property
    def initial(self) -> bool:
        """Whether it is one letter and a period."""
        return self.text[1:] == "." and (self.text[0].isalpha() or self.text[0] == "_")


def split_sentences(text: str) -> list[str]:
    """Return the sentences of an ASCII text, without the white space between them.

    Closing quotes and brackets that follow the end of a sentence belong to it.
    """
    last = len(text.rstrip())
    breaks = list(_list_breaks(text))
    ends = [stop for stop, _ in breaks[1:]]
    begin = 0
    sentences: list[str] = []
    for (stop, after), end in zip(breaks, [*ends, last], strict=False):
        closing = _CLOSING.match(text[after:end]) if text[after : after + 1] in _CLOSERS else None
        sentences.append(text[begin : after + len(closing[0].rstrip()) if closing else stop])
        begin = after + (closing.end() if closing else 0)
    return [*sentences, text[begin:last]]


def _list_breaks(text: str) -> Iterator[tuple[int, int]]:
    """Yield where a sentence stops and where the next one begins.

    Of several candidates within a word only the last one counts, unless nothing stands before the first.
    """
    spaced = text.translate(_TO_SPACE)
    last: re.Match[str] | None = None
    begin = stop = 0
    for found in chain(_CANDIDATE.finditer(text), [None]):
        at = found.start() if found else len(text)
        space = spaced.rfind(" ", stop, at)
        first = space + 1 if space > stop else begin
        if last and (found is None or stop <= first) and ends_sentence(text[begin : stop + 1], last[1]):
            yield stop + 1, stop + 1 if last[2] is None else last.start(2)
        last, begin, stop = found, first, at


def ends_sentence(word: str, after: str) -> bool:
    """Whether a sentence ends in `word`.

    Args:
        word: From the last white space to a mark that may end a sentence.
        after: The mark after it, or the white space and the word after it.
    """
    if len(_always) + len(_decided) >= MAX_DECISIONS:
        _always.clear()
        _decided.clear()
    always = _always.get(word)
    if always is None:
        always = _always[word] = _ends_always(word)
    if always and not after.isspace():
        return True
    decided = _decided.get((word, after))
    if decided is None:
        decided = _decided[word, after] = _ends_inside(_read_words(word + after))
    return decided


def ends_alone(piece: str) -> bool:
    """Whether a sentence ends with `piece`, which has no space, ends in a mark, and whatever comes next."""
    return not _CANDIDATE.search(piece) and _ends_always(piece)


def _ends_always(word: str) -> bool:
    """Whether a sentence ends in or after `word`, whatever follows."""
    words = _read_words(word)
    last = words[-1]
    doubtful = last.text[-1] == "." and (
        last.initial or last.bare == "##number##" or last.bare in load_model().tied
    )
    return _ends_inside(words) or (last.ends and not doubtful)


def _read_words(context: str) -> list[_Word]:
    """Part the words and look at each by itself: is it an abbreviation, or the end of a sentence?"""
    lines = [line for line in context.split("\n") if line.strip()]
    return [_look_once(text) for line in lines for text in _WORD.findall(line)]


def _look_once(text: str) -> _Word:
    kind = text.lower()
    word = _Word(text, "##number##" if _NUMBER.match(kind) else kind)
    if text in {".", "?", "!"}:
        word.ends = True
    elif text.startswith("..") and not text.strip("."):
        word.short = True
    elif text.endswith(".") and not text.endswith(".."):
        known = load_model().abbreviations
        word.short = kind[:-1] in known or kind[:-1].rpartition("-")[2] in known
        word.ends = not word.short
    return word


def _ends_inside(words: list[_Word]) -> bool:
    """Whether a word other than the last one ends a sentence."""
    return any(_look_twice(first, second) for first, second in pairwise(words))


def _look_twice(first: _Word, second: _Word) -> bool:
    """Whether a sentence ends between two words, as the second one tells of a word with a period."""
    model = load_model()
    if first.text[-1] != ".":
        return first.ends
    if (first.bare, second.follower) in model.collocations:
        return False
    starts = _starts_sentence(second)
    upper = second.text[0].isupper()
    if first.short and not first.initial and (starts or (upper and second.follower in model.starters)):
        return True
    if first.initial and starts is None and upper:
        return first.ends and bool(model.contexts.get(second.follower, 0) & _LOWER)
    return first.ends and not (starts is False and (first.initial or first.bare == "##number##"))


def _starts_sentence(word: _Word) -> bool | None:
    """Whether a word begins a sentence, by the cases in which training saw it; None: nobody knows."""
    if word.text in _MARKS:
        return False
    seen = load_model().contexts.get(word.follower, 0)
    if word.text[0].isupper() and seen & _LOWER and not seen & _INNER_UPPER:
        return True
    if word.text[0].islower() and (seen & _UPPER or not seen & _START_LOWER):
        return False
    return None
