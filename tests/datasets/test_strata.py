"""Shares of strata in a sample."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.datasets.strata import Pick, Stratum, allocate


@given(sizes=st.dictionaries(st.text(max_size=2), st.integers(1, 50), min_size=1), n=st.integers(1, 200))
def test_shares_add_up_and_follow_the_sizes(sizes: dict[str, int], n: int) -> None:
    shares, total = allocate(sizes, n), sum(sizes.values())
    assert sum(shares.values()) == min(n, total)
    assert all(1 <= shares[name] <= sizes[name] for name in shares)
    assert len(shares) == min(n, len(sizes))
    if n < total and all(n * size >= total for size in sizes.values()):
        assert all(abs(shares[name] * total - n * size) < total for name, size in sizes.items())
    assert all(shares.get(a, 0) >= shares.get(b, 0) for a in sizes for b in sizes if sizes[a] > sizes[b])


def test_a_larger_value_keeps_its_share_of_the_rest() -> None:
    assert allocate({"a": 97, "b": 1, "c": 1, "d": 1}, 4) == {"a": 1, "b": 1, "c": 1, "d": 1}
    assert allocate({"a": 97, "b": 1, "c": 1, "d": 1}, 6) == {"a": 3, "b": 1, "c": 1, "d": 1}
    assert allocate({"a": 50, "b": 30, "c": 20}, 7) == {"a": 4, "b": 2, "c": 1}
    assert allocate({"b": 1, "a": 1, "c": 2}, 2) == {"c": 1, "a": 1}


@given(keys=st.permutations([f"{n:02}" for n in range(40)]), most=st.integers(1, 10))
def test_a_stratum_keeps_the_smallest_in_whatever_order_they_come(keys: list[str], most: int) -> None:
    stratum = Stratum(most)
    for place, key in enumerate(keys):
        stratum.add(Pick(key, "", 0, place, None, None))
    assert stratum.count == 40
    assert [pick.key for pick in stratum.take(most)] == [f"{n:02}" for n in range(most)]
