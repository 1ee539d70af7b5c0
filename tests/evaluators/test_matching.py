from __future__ import annotations

from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from evaluators.matching import match_greedy, match_most
from evaluators.tool_call_order import find_common

CHOICES = st.lists(st.lists(st.integers(0, 4), unique=True, max_size=5), max_size=5)
NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=6)


def is_matching(pairs: dict[int, int], choices: list[list[int]]) -> bool:
    allowed = all(right in choices[left] for left, right in pairs.items())
    return allowed and len(set(pairs.values())) == len(pairs)


@given(CHOICES)
def test_the_most_pairs_are_found(choices: list[list[int]]) -> None:
    best = max(
        sum(right is not None for right in tried)
        for tried in product(*([None, *options] for options in choices))
        if len({right for right in tried if right is not None}) == sum(right is not None for right in tried)
    )
    found = match_most(choices)
    assert is_matching(found, choices)
    assert len(found) == best


@given(CHOICES)
def test_greedy_never_finds_more(choices: list[list[int]]) -> None:
    greedy = match_greedy(choices)
    assert is_matching(greedy, choices)
    assert len(greedy) <= len(match_most(choices))


def test_greedy_takes_the_first_free_choice_in_turn() -> None:
    assert match_greedy([[0, 1], [0]]) == {0: 0}
    assert match_most([[0, 1], [0]]) == {0: 1, 1: 0}
    assert match_most([]) == {}


def test_a_long_chain_of_moves_is_followed() -> None:
    size = 2_000
    choices = [[place, place + 1] for place in range(size)] + [[0]]
    assert len(match_most(choices)) == size + 1


@given(NAMES, NAMES)
def test_the_longest_common_subsequence_is_found(made: list[str], expected: list[str]) -> None:
    found = find_common([[name == other for other in expected] for name in made])
    subsequences = {sub for size in range(len(made) + 1) for sub in combinations(made, size)}
    longest = max(
        size
        for size in range(len(expected) + 1)
        if any(sub in subsequences for sub in combinations(expected, size))
    )
    assert found == sorted(set(found))
    assert len(found) == longest
    assert tuple(expected[place] for place in found) in subsequences
