"""METEOR: how many words of two texts can be paired, and in how few runs.

Method: Lavie and Agarwal (2007), METEOR: An Automatic Metric for MT Evaluation with High Levels of
Correlation with Human Judgments. Words are paired as NLTK 3.10 does: each takes the last free word alike.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from evaluators.text.porter import stem
from evaluators.text.wordnet import list_synonyms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_Placed: TypeAlias = "list[tuple[int, str]]"  # words with their positions


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the metric.

    Attributes:
        alpha: Share of recall in the mean, 0 to 1.
        beta: Exponent of the fragmentation.
        gamma: Most that fragmentation can take away, 0 to 1.
    """

    alpha: float = 0.9
    beta: float = 3.0
    gamma: float = 0.5


@dataclass(frozen=True, slots=True)
class Meteor:
    """What METEOR found.

    Attributes:
        score: 0 to 1.
        matches: Pairs of words.
        chunks: Runs of pairs that are neighbours on both sides.
    """

    score: float
    matches: int
    chunks: int


@dataclass(slots=True)
class _Rest:
    """The words of both sides that no pair has yet."""

    left: _Placed
    right: _Placed

    def map(self, change: Callable[[str], str]) -> _Rest:
        """Change the words, not their positions."""
        return _Rest(
            [(at, change(word)) for at, word in self.left], [(at, change(word)) for at, word in self.right]
        )

    def take(self, alike: Callable[[str], Iterable[str]]) -> list[tuple[int, int]]:
        """Pair words from the last one on, each with the last free word that is `alike`, and drop them."""
        places: defaultdict[str, list[int]] = defaultdict(list)
        for at, word in self.right:
            places[word].append(at)
        pairs: list[tuple[int, int]] = []
        for at, word in reversed(self.left):
            free = max((places[each] for each in alike(word) if places.get(each)), key=_last, default=None)
            if free:
                pairs.append((at, free.pop()))
        lefts, rights = {left for left, _ in pairs}, {right for _, right in pairs}
        self.left = [placed for placed in self.left if placed[0] not in lefts]
        self.right = [placed for placed in self.right if placed[0] not in rights]
        return pairs


def _last(places: list[int]) -> int:
    return places[-1]


def score_compat(response: Sequence[str], expected: Sequence[str], weights: Weights) -> Meteor:
    """Score as NLTK does: synonyms are looked up for stems, and one run of all words is a fragment too.

    Args:
        response: Words of the answer, lower-cased.
        expected: Words of the reference, lower-cased.
        weights: Weights.
    """
    rest = _Rest([*enumerate(response)], [*enumerate(expected)])
    pairs = rest.take(_itself)
    stems = rest.map(stem)
    pairs += stems.take(_itself)
    pairs += stems.take(list_synonyms)
    return _score(pairs, len(response), len(expected), weights)


def score_words(response: Sequence[str], expected: Sequence[str], weights: Weights) -> Meteor:
    """Score with synonyms of whole words; texts paired in one run from end to end have no fragments.

    So equal words score 1.0. Stems and synonyms are English.

    Args:
        response: Words of the answer, case folded.
        expected: Words of the reference, case folded.
        weights: Weights.
    """
    rest = _Rest([*enumerate(response)], [*enumerate(expected)])
    pairs = rest.take(_itself)
    stems = rest.map(stem)
    pairs += stems.take(_itself)
    left, right = ({at for at, _ in side} for side in (stems.left, stems.right))
    words = _Rest([each for each in rest.left if each[0] in left], [e for e in rest.right if e[0] in right])
    pairs += words.take(list_synonyms)
    found = _score(pairs, len(response), len(expected), weights)
    whole = found.chunks == 1 and len(response) == len(expected) == found.matches
    return Meteor(1.0, found.matches, 1) if whole else found


def _itself(word: str) -> tuple[str]:
    return (word,)


def _score(pairs: list[tuple[int, int]], given: int, wanted: int, weights: Weights) -> Meteor:
    matches = len(pairs)
    precision = float(matches) / given if given else 0.0
    recall = float(matches) / wanted if wanted else 0.0
    mean = weights.alpha * precision + (1 - weights.alpha) * recall
    if not mean:
        return Meteor(0.0, matches, 0)
    chunks = _count_chunks(sorted(pairs))
    penalty = weights.gamma * (float(chunks) / matches) ** weights.beta
    return Meteor((1 - penalty) * ((precision * recall) / mean), matches, chunks)


def _count_chunks(pairs: list[tuple[int, int]]) -> int:
    follows = ((left + 1, right + 1) for left, right in pairs)
    return len(pairs) - sum(then == now for then, now in zip(follows, pairs[1:], strict=False))
