"""Ids of items over all blocks of a run: unique, stable, and cheap to keep."""

from __future__ import annotations

import polars as pl

from assay.errors import ConfigError

ID_DIGITS = 16
TRACKED_ITEMS = 100_000  # so many first items are remembered by name; later ones as 8 bytes each
MAX_WARNINGS = 5


class IdRegister:
    """Names items and remembers which names are taken.

    The id of an item is the one in its file, else the first 16 hex digits of its task hash, so it does not
    depend on the order of rows. Equal ids with equal tasks get `-2`, `-3` and a warning. The first
    `TRACKED_ITEMS` items are remembered exactly. Of later ones only a 64-bit hash is kept, and
    `find_repeats` tells at the end which of them came twice: those are to be tracked in a second
    reading.

    Attributes:
        warnings: What the user should know.
    """

    def __init__(self, repeats: frozenset[int] = frozenset()) -> None:
        """Start without any item.

        Args:
            repeats: Hashes that an earlier reading found more than once.
        """
        self._repeats = repeats
        self._tracked = pl.Series(sorted(repeats), dtype=pl.UInt64)
        self._seen: dict[str, tuple[str, str, int | None]] = {}  # base to item_sha, file and line
        self._times: dict[str, int] = {}  # base to how often it came, where that is more than once
        self._made: set[str] = set()
        self._hashes: list[pl.Series] = []
        self._count, self._repeated = 0, 0
        self._warnings: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences for the user, each naming a place."""
        rest = self._repeated - len(self._warnings)
        return (*self._warnings, *([f"and {rest} more items that repeat another"] if rest else ()))

    def name(self, items: pl.DataFrame) -> pl.Series:
        """Return the `item_id` of each item.

        Args:
            items: One row per item: `id`, `item_sha`, `source_file`, `source_line`.

        Raises:
            ConfigError: Two items share an id but not their task; both places are named.
        """
        base = items.select(
            pl.coalesce(pl.col("id").replace("", None), pl.col("item_sha").str.head(ID_DIGITS))
        ).to_series()
        tracked = self._list_tracked(base)
        self._count += items.height
        if tracked.is_empty():
            return base.alias("item_id")
        bases = base.gather(tracked).to_list()
        known = items.select("item_sha", "source_file", "source_line")[tracked].rows()
        fresh = dict(zip(bases, known, strict=True))
        if len(fresh) == len(bases) and self._seen.keys().isdisjoint(fresh) and self._made.isdisjoint(fresh):
            self._seen.update(fresh)
            return base.alias("item_id")
        names = [self._name_one(each, *row) for each, row in zip(bases, known, strict=True)]
        return base.scatter(tracked, pl.Series(names, dtype=pl.String)).alias("item_id")

    def _list_tracked(self, base: pl.Series) -> pl.Series:
        """Return the positions of items that are remembered exactly, and keep the hashes of the others."""
        hashes = base.hash(seed=1)
        exact = pl.int_range(0, len(base), eager=True) < TRACKED_ITEMS - self._count
        if self._repeats:
            exact |= hashes.is_in(self._tracked.implode())
        if not exact.all():
            self._hashes.append(hashes.filter(~exact))
        return exact.arg_true()

    def _name_one(self, base: str, item_sha: str, file: str, line: int | None) -> str:
        known = self._seen.get(base)
        if known is None:
            if base in self._made:
                raise ConfigError(_taken(base))
            self._seen[base] = (item_sha, file, line)
            return base
        if known[0] != item_sha:
            first, second = _place(*known[1:]), _place(file, line)
            raise ConfigError(
                f"item id {base!r} stands for two different items: {first} and {second}; "
                "ids must be unique over all datasets of a run"
            )
        self._times[base] = count = self._times.get(base, 1) + 1
        name = f"{base}-{count}"
        if name in self._seen:
            raise ConfigError(_taken(name))
        self._made.add(name)
        self._repeated += 1
        if len(self._warnings) < MAX_WARNINGS:
            place = _place(file, line)
            self._warnings.append(f"{place}: asks the same as item {base!r}; it runs as {name!r}")
        return name

    def find_repeats(self) -> frozenset[int]:
        """Return all hashes that another reading has to track; none when every name is final."""
        if not self._hashes:
            return frozenset()
        names = pl.Series([*self._seen, *self._made], dtype=pl.String)
        every = pl.concat([*self._hashes, names.hash(seed=1)]).sort()
        twice = every.filter(every == every.shift(1))
        found = frozenset(int(each) for each in twice.unique().to_list())
        return found | self._repeats if found else found


def _place(file: str, line: int | None) -> str:
    return f"{file}:{line}" if line is not None else file


def _taken(name: str) -> str:
    return f"item id {name!r} is taken twice: once given, once made from a repeated id"
