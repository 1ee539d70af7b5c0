"""Pairs of answers and references for benchmarks: English and German, 30 to 80 tokens, one in ten equal."""

from __future__ import annotations

import numpy as np
import polars as pl


def _split(text: str) -> list[str]:
    return text.split()


ENGLISH = _split(
    "the of and to in a is that for it as was with be by on not he his but at are this have from or had "
    "an they which one you were all her she there would their we him been has when who will no more if "
    "out so up said what its about than into them can only other time new some could these two may "
    "first then do any like my now over such our man me even most made after also did many off before "
    "must well back through years much where your way order invoice refund account password delivery "
    "package tracking support customer service contract meeting "
)
GERMAN = _split(
    "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden "
    "aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur "
    "oder aber vor zur bis mehr durch man sein wurde sei Prozent hatte kann gegen vom können schon wenn "
    "habe seine Mark ihre dann unter wir soll ich eines Jahr zwei Jahren diese dieser wieder keine Uhr "
    "seiner worden Rückerstattung Größe Übergabe Bestellung Rechnung Konto Passwort Lieferung Paket "
    "Sendungsnummer Kundendienst Vertrag Besprechung Gebühr "
)
ENDINGS = ("", "", "", "", "", ",", ",", ".", ".", ":", "?", "!", " 12", " 3.50", " (see below)")


def make_pairs(count: int, seed: int = 7) -> pl.DataFrame:
    """Return `response` and `ground_truth`; of the unequal pairs most share about half their words."""
    generator = np.random.default_rng(seed)
    rows = [_make_pair(generator) for _ in range(min(count, 20_000))]
    block = pl.DataFrame(rows, schema=["response", "ground_truth"], orient="row")
    whole = pl.concat([block] * (count // block.height + 1)).head(count)
    number = pl.int_range(pl.len()) // block.height  # repeated rows differ, so that no memo helps
    mark = pl.when(number > 0).then(pl.format(" n{}", number)).otherwise(pl.lit(""))
    return whole.with_columns(pl.col("response") + mark, pl.col("ground_truth") + mark)


def _make_pair(generator: np.random.Generator) -> tuple[str, str]:
    words = ENGLISH if generator.random() < 0.5 else GERMAN
    reference = _draw(generator, words, int(generator.integers(30, 81)))
    kind = generator.random()
    if kind < 0.1:
        return " ".join(reference), " ".join(reference)
    if kind < 0.6:
        kept = [word for word in reference if generator.random() < 0.7]
        answer = kept + _draw(generator, words, max(30 - len(kept), 8))
    else:
        answer = _draw(generator, words, int(generator.integers(30, 81)))
    return " ".join(answer), " ".join(reference)


def _draw(generator: np.random.Generator, words: list[str], count: int) -> list[str]:
    """Draw words as languages do, few of them often, with what stands behind them."""
    weights = 1 / np.arange(2, len(words) + 2)
    ranks = generator.choice(len(words), count, p=weights / weights.sum())
    endings = generator.integers(len(ENDINGS), size=count)
    return [words[rank] + ENDINGS[ending] for rank, ending in zip(ranks, endings, strict=True)]
