"""Ids over many blocks: what is remembered by name, and what by its hash alone."""

from __future__ import annotations

import polars as pl
import pytest

from assay.errors import ConfigError
from transforms.ids import IdRegister


def name_all(*ids: str, tasks: str | None = None) -> list[str]:
    """Name items one block each, reading again as often as that is asked for."""
    shas = tasks or "x" * len(ids)
    repeats: frozenset[int] = frozenset()
    for _ in range(5):
        register = IdRegister(repeats)
        names: list[str] = []
        for line, (given, sha) in enumerate(zip(ids, shas, strict=True), start=1):
            row = {"id": given, "item_sha": sha, "source_file": "a.jsonl", "source_line": line}
            names += register.name(pl.DataFrame([row])).to_list()
        repeats = register.find_repeats()
        if not repeats:
            return names
    raise AssertionError("read again and again")


@pytest.mark.parametrize("tracked", [0, 1, 3, 100])
def test_repeats_are_numbered_in_order_however_few_are_remembered(
    tracked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.ids.TRACKED_ITEMS", tracked)
    assert name_all("a", "b", "a", "c", "b", "a") == ["a", "b", "a-2", "c", "b-2", "a-3"]


@pytest.mark.parametrize("tracked", [0, 2, 100])
@pytest.mark.parametrize("ids", [("a", "b", "a", "a-2"), ("a-2", "b", "a", "a")])
def test_a_given_id_that_a_repeat_would_get_is_refused(
    tracked: int, ids: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.ids.TRACKED_ITEMS", tracked)
    with pytest.raises(ConfigError, match="'a-2' is taken twice"):
        name_all(*ids)


@pytest.mark.parametrize("tracked", [0, 1, 100])
def test_an_id_of_two_tasks_is_refused_with_both_places(
    tracked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transforms.ids.TRACKED_ITEMS", tracked)
    with pytest.raises(ConfigError, match=r"'a' stands for two different items: a\.jsonl:1 and a\.jsonl:3"):
        name_all("a", "b", "a", tasks="xyz")
