"""The Porter stemmer with the extensions of NLTK, which METEOR compares words by.

Method: Porter (1980), An algorithm for suffix stripping, Program 14. The extensions are irregular forms,
short words left alone, and milder rules for -y, -ies, -ied, -alli, -fulli and -logi.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

_Rule: TypeAlias = tuple[str, str]

_IRREGULAR: Final = {
    "skies": "sky",
    "dying": "die",
    "lying": "lie",
    "tying": "tie",
    "innings": "inning",
    "outings": "outing",
    "cannings": "canning",
} | {word: word for word in ("news", "inning", "outing", "canning", "howe", "proceed", "exceed", "succeed")}
_PLURALS: Final = (("sses", "ss"), ("ies", "i"), ("ss", "ss"), ("s", ""))
_SECOND: Final = (
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
)
_THIRD: Final = (
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
)
_FOURTH: Final = tuple(
    (suffix, "")
    for suffix in (
        *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion"),
        *("ou", "ism", "ate", "iti", "ous", "ive", "ize"),
    )
)
MAX_SHORT: Final = 2
"""Words up to this length keep their form."""


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a word, lower-cased."""
    lowered = word.lower()
    if lowered in _IRREGULAR:
        return _IRREGULAR[lowered]
    if len(word) <= MAX_SHORT:
        return lowered
    kept = _strip_y(_strip_past(_strip_plural(lowered)))
    kept = _strip_second(kept)
    kept = _replace(kept, _THIRD, lambda head: _measure(head) > 0)
    kept = _strip_fourth(kept)
    return _strip_l(_strip_e(kept))


def _shape(word: str) -> str:
    """Return one letter per letter: c a consonant, v a vowel; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Count the times that a consonant follows a vowel."""
    return _shape(word).count("vc")


def _is_short(word: str) -> bool:
    """Whether a word ends in consonant, vowel, consonant (not w, x, y), or is a vowel and a consonant."""
    shape = _shape(word)
    return (shape[-3:] == "cvc" and word[-1] not in "wxy") or shape == "vc"


def _replace(word: str, rules: tuple[_Rule, ...], allows: Callable[[str], bool]) -> str:
    """Apply the first rule whose suffix fits, if what stands before the suffix allows it; try no other."""
    for suffix, replacement in rules:
        if word.endswith(suffix):
            head = word.removesuffix(suffix)
            return head + replacement if allows(head) else word
    return word


def _strip_plural(word: str) -> str:
    if len(word) == len("dies") and word.endswith("ies"):
        return word[:-1]
    return _replace(word, _PLURALS, lambda _: True)


def _strip_past(word: str) -> str:
    if word.endswith("ied"):
        return word[:-1] if len(word) == len("died") else word[:-2]
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        head = word.removesuffix(suffix)
        if head != word and "v" in _shape(head):
            return _mend(head)
    return word


def _mend(head: str) -> str:
    """Give back an e, or take one of two equal consonants, where -ed or -ing was stripped."""
    if head.endswith(("at", "bl", "iz")):
        return head + "e"
    if head[-1:] == head[-2:-1] and _shape(head)[-1] == "c":
        return head if head[-1] in "lsz" else head[:-1]
    return head + "e" if _measure(head) == 1 and _is_short(head) else head


def _strip_y(word: str) -> str:
    head = word.removesuffix("y")
    consonant = len(head) > 1 and _shape(head)[-1] == "c"
    return head + "i" if head != word and consonant else word


def _strip_second(word: str) -> str:
    if word.endswith("alli") and _measure(word[:-4]) > 0:
        return _strip_second(word[:-2])
    if word.endswith("logi"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    return _replace(word, _SECOND, lambda head: _measure(head) > 0)


def _strip_fourth(word: str) -> str:
    ion = word.endswith("ion")
    return _replace(word, _FOURTH, lambda head: _measure(head) > 1 and (not ion or head[-1] in "st"))


def _strip_e(word: str) -> str:
    head = word.removesuffix("e")
    times = _measure(head)
    return head if times > 1 or (times == 1 and not _is_short(head)) else word


def _strip_l(word: str) -> str:
    return word[:-1] if word.endswith("ll") and _measure(word[:-1]) > 1 else word
