"""Normal forms: which spellings of a text count as the same."""

from __future__ import annotations

from typing import Literal, TypeAlias

import polars as pl

from evaluators.text import compose, fold_case

NormalForm: TypeAlias = Literal["none", "nfc", "nfkc_casefold"]
NORMAL_FORMS = (
    "none: code points as they are; nfc: composed and decomposed accents are the same; nfkc_casefold: so are "
    "upper and lower case, full-width characters, ligatures and every kind of space"
)
"""What the forms mean, for the description of an option."""

_BEYOND_ASCII = r"[^\x00-\x7F]"


def normalise(texts: pl.DataFrame, form: NormalForm) -> pl.DataFrame:
    """Bring all columns of String to one form; nulls stay null.

    `nfkc_casefold` is NFKC, `str.casefold` and NFKC again, as folding may part what was composed. Quotation
    marks and dashes keep their shape, and a dotted capital I is not an i.
    """
    match form:
        case "none":
            return texts
        case "nfc":
            return compose(texts)
        case "nfkc_casefold":
            return _unify(fold_case(_unify(texts)))


def _unify(texts: pl.DataFrame) -> pl.DataFrame:
    """Bring texts to NFKC; where all is ASCII there is nothing to do."""
    beyond = texts.select(pl.all().str.contains(_BEYOND_ASCII).any()).row(0, named=True)
    return texts.with_columns(pl.col(name).str.normalize("NFKC") for name, found in beyond.items() if found)
