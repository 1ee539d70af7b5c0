"""WordErrorRate and CharErrorRate: edits that turn the answer into the expected one, per unit of that."""

from __future__ import annotations

import polars as pl
from pydantic import Field

from evaluators.contract import ColumnEvaluator, Options, Scale
from evaluators.normal_form import NORMAL_FORMS, NormalForm, normalise
from evaluators.paired import score_pairs, score_tokens
from evaluators.text import fold_case

_SIDES = ("response", "expected_response")


class ErrorRateOptions(Options):
    """Options of WordErrorRate and CharErrorRate."""

    case_sensitive: bool = Field(default=False, description="whether upper and lower case differ")
    normalise: NormalForm = Field(default="nfc", description=NORMAL_FORMS)


def measure_word_errors(options: ErrorRateOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score (substitutions + deletions + insertions) / words of the reference.

    Words are those of every script by UAX-29, characters of scripts without spaces; punctuation is dropped,
    and accents are composed whatever the form. 0 is equal, more than 1 an answer much longer than its
    reference. A reference without words counts as one word.
    """
    from rapidfuzz.distance import Levenshtein

    from evaluators.text.tokenising import split_tokens

    texts = normalise(frame.select(_SIDES), options.normalise)
    given, wanted = (split_tokens(texts[side], "unicode", options.case_sensitive) for side in _SIDES)
    return _rate(score_tokens(given, wanted, Levenshtein.distance), pl.Series(wanted.counts))


def measure_character_errors(options: ErrorRateOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score (substitutions + deletions + insertions) / code points of the reference, white space trimmed."""
    from rapidfuzz.distance import Levenshtein

    texts = normalise(frame.select(_SIDES), options.normalise)
    if not options.case_sensitive:
        texts = fold_case(texts)
    texts = texts.select(pl.all().str.strip_chars())
    return _rate(score_pairs(texts, Levenshtein.distance), texts["expected_response"].str.len_chars())


def _rate(edits: pl.Series, size: pl.Series) -> pl.DataFrame:
    counted = pl.DataFrame({"edits": edits.cast(pl.Int64), "reference_length": size.cast(pl.Int64)})
    score = pl.col("edits") / pl.col("reference_length").clip(lower_bound=1)
    return counted.select(score=score, details_json=pl.struct(pl.all()).struct.json_encode())


EVALUATOR = ColumnEvaluator(
    name="WordErrorRate",
    summary="Words to change, drop or add until the answer is the expected answer, per expected word.",
    aliases=("word_error_rate", "wer"),
    needs=_SIDES,
    options=ErrorRateOptions,
    scale=Scale(0.0, None),
    higher_is_better=False,
    threshold=None,
    measure=measure_word_errors,
)
CHARACTERS = ColumnEvaluator(
    name="CharErrorRate",
    summary="Characters to change, drop or add until the answer is the expected answer, per expected one.",
    aliases=("char_error_rate", "cer"),
    needs=_SIDES,
    options=ErrorRateOptions,
    scale=Scale(0.0, None),
    higher_is_better=False,
    threshold=None,
    measure=measure_character_errors,
)
