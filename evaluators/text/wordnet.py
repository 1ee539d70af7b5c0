"""Synonyms of English words by WordNet 3.0, as METEOR in NLTK looks them up."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, TypeAlias

from evaluators.text.shipped import read_shipped

_Endings: TypeAlias = tuple[tuple[str, str], ...]

_ENDINGS: Final[tuple[_Endings, ...]] = (
    (
        *(("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z")),
        *(("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
    ),
    (
        *(("s", ""), ("ies", "y"), ("es", "e"), ("es", "")),
        *(("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    ),
    (("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
    (),
)
"""What an ending of a noun, verb, adjective or adverb may stand for."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One part of speech.

    Attributes:
        synsets: Of each lower-cased lemma, the groups of synonyms that hold it, names parted by spaces.
        irregular: Of an irregular form, its lemmas.
        endings: How a regular form becomes a lemma.
    """

    synsets: dict[str, list[str]]
    irregular: dict[str, list[str]]
    endings: _Endings

    def list_lemmas(self, form: str) -> set[str]:
        """Return the lemmas that a lower-cased form may stand for."""
        forms = self.irregular.get(form) or [
            form.removesuffix(ending) + instead for ending, instead in self.endings if form.endswith(ending)
        ]
        return {lemma for lemma in (form, *forms) if lemma in self.synsets}


@cache
def _load_parts() -> tuple[_Part, ...]:
    sections = read_shipped("wordnet-3.0.txt.gz").rstrip("\n").split("\n\n")
    return tuple(
        _Part(_index(groups), {form: lemmas for form, *lemmas in map(str.split, forms.split("\n"))}, endings)
        for groups, forms, endings in zip(sections[::2], sections[1::2], _ENDINGS, strict=True)
    )


def _index(groups: str) -> dict[str, list[str]]:
    index: defaultdict[str, list[str]] = defaultdict(list)
    for names, lemmas in zip(groups.split("\n"), groups.lower().split("\n"), strict=True):
        for lemma in lemmas.split(" "):
            index[lemma].append(names)
    return dict(index)


@lru_cache(maxsize=50_000)
def list_synonyms(word: str) -> frozenset[str]:
    """Return a word and the names of one word in all groups of synonyms that hold one of its lemmas.

    Nouns, verbs, adjectives and adverbs are looked up, case aside. The case of names is kept. The first call
    in a process reads the data, which takes a quarter of a second.
    """
    form = word.lower()
    groups = {
        names for part in _load_parts() for lemma in part.list_lemmas(form) for names in part.synsets[lemma]
    }
    return frozenset({word, *(name for name in " ".join(groups).split() if "_" not in name)})
