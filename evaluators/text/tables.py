"""Tables that say what each code point is to a tokeniser, and the steps a tokeniser takes.

A tokeniser reads one code point after the other. The code table gives the character it stands for after
case folding, and its class; the step table gives, for a state and a class, the next state and what to do.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from evaluators.text.columns import list_changes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Kind = Literal["unicode", "f1", "rouge"]

CODES = 0x110000
STATES = 16
CLASSES = 32  # columns of the step table
CLASS_SHIFT = 21
SYMBOL = (1 << CLASS_SHIFT) - 1  # an entry without its class: the character plus one
MANY = 31  # the class of a character that becomes several; its symbol is where they stand
END = 30  # the class of the end of a text

ADD = 1  # the character belongs to the token
COUNT = 1 << 1  # the token is complete, without the character
CLEAR = 1 << 2  # a new token begins
SAVE = 1 << 3  # remember the token and the place behind the character
RESTORE = 1 << 4  # the token is the remembered one
STATE = 0x1E0  # the next state, times CLASSES
BACK = 1 << 9  # go on from the remembered place
_EMIT = COUNT | CLEAR

COMPOSE = 16  # bit of a word class: the form NFC may change the character or join it with its neighbour
TRAITS = ("", "L", "D", "F", "FX", "M", "m", "Mm", "_", "N", "FXN", "E", "LE", "R", "FZ")
"""Word classes: which of `columns.CLASSES` a character is in; N only where it is neither L nor D."""

_KNOWN = 0x40000  # no letter and no space stands above
_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_ASCII = 0x80

_START, _PREFIX, _LETTERS, _DIGITS, _CONNECTED, _JOIN_LETTERS, _JOIN_DIGITS = range(7)
_ALONE, _EMOJI, _JOIN_EMOJI, _REGION, _FLAG = range(7, 12)
_BEGIN = {
    "_": (_PREFIX, ADD),
    "L": (_LETTERS, ADD),
    "D": (_DIGITS, ADD),
    "N": (_ALONE, ADD),
    "E": (_EMOJI, ADD),
    "R": (_REGION, ADD),
}
_GO_ON: dict[int, dict[str, tuple[int, int]]] = {
    _START: {},
    _PREFIX: {"_": (_PREFIX, ADD), "L": (_LETTERS, ADD), "D": (_DIGITS, ADD)},
    _LETTERS: {
        "L": (_LETTERS, ADD),
        "F": (_LETTERS, ADD),
        "D": (_DIGITS, ADD),
        "_": (_CONNECTED, ADD),
        "M": (_JOIN_LETTERS, SAVE | ADD),
    },
    _DIGITS: {
        "D": (_DIGITS, ADD),
        "F": (_DIGITS, ADD),
        "L": (_LETTERS, ADD),
        "_": (_CONNECTED, ADD),
        "m": (_JOIN_DIGITS, SAVE | ADD),
    },
    _CONNECTED: {"L": (_LETTERS, ADD), "D": (_DIGITS, ADD), "_": (_CONNECTED, ADD)},
    _JOIN_LETTERS: {"L": (_LETTERS, ADD), "F": (_JOIN_LETTERS, ADD)},
    _JOIN_DIGITS: {"D": (_DIGITS, ADD), "F": (_JOIN_DIGITS, ADD)},
    _ALONE: {"F": (_ALONE, ADD)},
    _EMOJI: {"X": (_EMOJI, ADD), "Z": (_JOIN_EMOJI, SAVE | ADD)},
    _JOIN_EMOJI: {"E": (_EMOJI, ADD)},
    _REGION: {"R": (_FLAG, ADD)},
    _FLAG: {},
}
_UNDONE = {_JOIN_LETTERS, _JOIN_DIGITS, _JOIN_EMOJI}  # the joint turned out to be none
_DROPPED = {_START: 0, _PREFIX: CLEAR}  # states whose characters are no token

_F1 = ("other", "word", "space", "deleted", "a", "n", "t", "h", "e")  # classes
_F1_STATES = ("", "|", "a", "an", "t", "th", "the", "|a", "|an", "|t", "|th", "|the", "w")
"""What of a token was read: nothing, something that ends outside a word (|), the beginning of a word that
may be an article, alone or after such a thing, or any other word."""
_ARTICLES: dict[str, int] = {
    **dict.fromkeys(["a", "an", "the"], CLEAR),
    **dict.fromkeys(["|a", "|an", "|the"], RESTORE | _EMIT),
}
"""How an article ends: it is dropped, and what stands before it is a token."""


class Rules(NamedTuple):
    """What the loop over the characters of a text looks up.

    Attributes:
        codes: Per code point its class << 21 | symbol.
        many: Runs of such entries, each ended by 0, for characters that become several.
        steps: Per state * 32 + class what to do and the next state.
    """

    codes: NDArray[np.uint32]
    many: NDArray[np.uint32]
    steps: NDArray[np.uint16]


@cache
def make_rules(kind: Kind, case_sensitive: bool) -> Rules:
    """Return the rules of a tokeniser."""
    change: dict[Kind, Callable[[str], str]] = {"unicode": str.casefold, "f1": str.lower, "rouge": str.lower}
    classes, steps = {"unicode": _word_rules, "f1": _f1_rules, "rouge": _rouge_rules}[kind]()
    folded = np.arange(CODES, dtype=np.uint32)
    several: dict[int, str] = {}
    for char, text in () if case_sensitive else list_changes(change[kind]).items():
        code = ord(char)
        folded[code] = ord(text[0])
        if text[1:]:
            several[code] = text
    codes = (classes.astype(np.uint32)[folded] << np.uint32(CLASS_SHIFT)) | (folded + np.uint32(1))
    many = [0]
    for code, text in several.items():
        codes[code] = MANY << CLASS_SHIFT | len(many)
        many.extend((int(classes[ord(char)]) << CLASS_SHIFT) | (ord(char) + 1) for char in text)
        many.append(0)
    return Rules(codes, np.array(many, np.uint32), steps)


@cache
def load_words() -> NDArray[np.uint8]:
    """Return the word class of every code point, with its `COMPOSE` bit."""
    with files("evaluators.text").joinpath("data", "words.npy").open("rb") as file:
        runs: NDArray[np.int32] = np.load(file)
    return np.repeat(runs[:, 1].astype(np.uint8), np.diff(runs[:, 0], append=CODES))


def _word_rules() -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    steps = _empty_steps()
    for state in _GO_ON:
        for number, traits in enumerate(TRAITS):
            steps[state, number] = _step_word(state, traits)
        steps[state, END] = _step_word(state, "")
    return load_words() & np.uint8(COMPOSE - 1), steps.ravel()


def _step_word(state: int, traits: str) -> int:
    for trait, (following, action) in _GO_ON[state].items():
        if trait in traits:
            return following * CLASSES | action
    if state in _UNDONE:
        return _START * CLASSES | RESTORE | _EMIT | BACK
    ending = _DROPPED.get(state, _EMIT)
    for trait, (following, action) in _BEGIN.items():
        if trait in traits:
            return following * CLASSES | action | ending
    return _START * CLASSES | ending


def _f1_rules() -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    every = "".join(map(chr, range(_KNOWN)))
    classes = np.zeros(CODES, np.uint8)
    for name, pattern in (("word", r"\w+"), ("space", r"\s+"), ("deleted", _PUNCTUATION + "+")):
        for run in re.finditer(pattern, every):
            classes[run.start() : run.end()] = _F1.index(name)
    for char in "antheANTHE":
        classes[ord(char)] = _F1.index(char.lower())
    steps = _empty_steps()
    for number, state in enumerate(_F1_STATES):
        for column, name in enumerate(_F1):
            steps[number, column] = _step_f1(state, name)
        steps[number, END] = _step_f1(state, "space")
    return classes, steps.ravel()


def _step_f1(state: str, name: str) -> int:
    following, action = state, 0
    if name == "space":
        following, action = "", _ARTICLES.get(state, _EMIT if state else 0)
    elif name == "other":
        following, action = "|", _ARTICLES.get(state, 0) | ADD
    elif name != "deleted":
        following = state + name if state + name in _F1_STATES else "w"
        action = ADD | (SAVE if state == "|" and following != "w" else 0)
    return _F1_STATES.index(following) * CLASSES | action


def _rouge_rules() -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    classes = np.zeros(CODES, np.uint8)
    for code in range(_ASCII):
        classes[code] = chr(code).isalnum()
    steps = _empty_steps()
    steps[1, 0] = steps[1, END] = _EMIT
    steps[:2, 1] = CLASSES | ADD
    return classes, steps.ravel()


def _empty_steps() -> NDArray[np.uint16]:
    return np.zeros((STATES, CLASSES), np.uint16)
