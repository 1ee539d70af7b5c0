"""TextSimilarity: one of several likenesses of two texts, as the grader text_similarity of OpenAI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import polars as pl
from pydantic import Field

from evaluators import bleu_score, gleu_score, meteor_score, rouge_score
from evaluators.contract import ColumnEvaluator, EmbeddingEvaluator, Options
from evaluators.paired import measure_ratio
from evaluators.semantic_similarity import COSINES, measure_cosine

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROUGE_TYPES = {f"rouge_{size}": f"rouge{size}" for size in range(1, 6)} | {"rouge_l": "rougeL"}
_DELEGATES: Mapping[str, tuple[ColumnEvaluator[Any], dict[str, str]]] = {
    "bleu": (bleu_score.EVALUATOR, {}),
    "gleu": (gleu_score.EVALUATOR, {}),
    "meteor": (meteor_score.EVALUATOR, {}),
    **{name: (rouge_score.EVALUATOR, {"rouge_type": kind}) for name, kind in _ROUGE_TYPES.items()},
}


class TextSimilarityOptions(Options):
    """Options of TextSimilarity."""

    evaluation_metric: Literal[
        "fuzzy_match",
        "bleu",
        "gleu",
        "meteor",
        "rouge_1",
        "rouge_2",
        "rouge_3",
        "rouge_4",
        "rouge_5",
        "rouge_l",
        "cosine",
    ] = Field(
        description="fuzzy_match: WRatio of rapidfuzz; cosine: of the vectors of an embedding model, which "
        "--embedding-model names; the others as the evaluators of their names"
    )
    mode: Literal["compat", "unicode"] = Field(
        default="compat",
        description="compat: the numbers of azure-ai-evaluation, for English; unicode: words of every "
        "script; fuzzy_match and cosine are the same in both",
    )

    @property
    def keeps_blank(self) -> bool:
        """In `compat` a blank reference is text, which nothing but a blank answer resembles."""
        return self.mode == "compat" and not self.asks_model

    @property
    def asks_model(self) -> bool:
        """Whether a model makes the vectors that are compared."""
        return self.evaluation_metric == "cosine"


def measure_text_similarity(options: TextSimilarityOptions, frame: pl.DataFrame) -> pl.DataFrame:
    """Score by the metric asked for, between 0 and 1.

    OpenAI does not publish which function of rapidfuzz `fuzzy_match` is; this is WRatio / 100, which its
    guide takes for the same purpose, in code points and with case. Equal texts are 1.
    """
    if options.evaluation_metric == "fuzzy_match":
        from rapidfuzz.fuzz import WRatio

        details = pl.lit(f'{{"equals":"rapidfuzz WRatio / 100","mode":"{options.mode}"}}')
        return measure_ratio(frame, WRatio, top=100.0).with_columns(details_json=details)
    evaluator, chosen = _DELEGATES[options.evaluation_metric]
    return evaluator.measure(evaluator.options(mode=options.mode, **chosen), frame)


_SUMMARY = "Likeness of the answer and the reference by fuzzy_match, BLEU, GLEU, METEOR, ROUGE or cosine."
_NEEDS = ("response", "expected_response")
EVALUATOR = ColumnEvaluator(
    name="TextSimilarity",
    summary=_SUMMARY,
    aliases=("text_similarity", "builtin.text_similarity", "textSimilarity"),
    needs=_NEEDS,
    options=TextSimilarityOptions,
    templates={"input": "response", "reference": "expected_response"},
    threshold=None,
    threshold_names=("threshold", "pass_threshold"),
    measure=measure_text_similarity,
    asking=EmbeddingEvaluator(
        name="TextSimilarity",
        summary=_SUMMARY,
        needs=_NEEDS,
        options=TextSimilarityOptions,
        scale=COSINES,
        threshold=None,
        measure=measure_cosine,
    ),
)
