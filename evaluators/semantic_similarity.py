"""SemanticSimilarity: the cosine of the vectors that an embedding model makes of answer and reference."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from assay.chat.pool import run_jobs
from assay.errors import CallError
from evaluators.contract import EmbeddingEvaluator, Options, Scale

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from evaluators.contract import Embed, Vectors

    Found = Vectors | CallError  # the vector of a text, or why it has none

COSINES = Scale(-1.0, 1.0)
MOST_TEXTS = 128  # of one call
MOST_CALLS = 32  # under way
MOST_FAILURES = 64  # after which texts are no longer looked at apart
_OF_TEXTS = frozenset({"bad_request", "content_filter"})  # failures that may be the fault of one text
_BLANK = CallError("empty_response", "the answer is blank, so it was not embedded", attempts=0)
_ZERO = CallError("invalid_result", "a vector of nothing but zeros has no direction")


class SemanticSimilarityOptions(Options):
    """Options of SemanticSimilarity; there are none."""


async def measure_cosine(_options: Options, frame: pl.DataFrame, embed: Embed) -> pl.DataFrame:
    """Score the cosine of the two vectors as it is, between -1 and 1.

    Every different text is embedded once. What a text has no vector for is the error of its rows: a blank
    one is not sent (`empty_response`), and a failed call is that of the texts it held, which are asked about
    in ever smaller parts where one of them may be to blame.

    Raises:
        CallError: `unparseable`, when the vectors are of different sizes.
    """
    import numpy as np  # the catalog does without it

    sides = (frame["response"], frame["expected_response"])
    texts = pl.concat([side.alias("text") for side in sides]).unique(maintain_order=True)
    found = await _embed_texts(texts.to_list(), embed)
    failures = [each if isinstance(each, CallError) else None for each in found]
    places = texts.to_frame().with_row_index("place")
    left, right = (
        side.alias("text").to_frame().join(places, on="text", how="left", maintain_order="left")["place"]
        for side in sides
    )
    told = {
        "error_code": pl.Series([each and each.code for each in failures], dtype=pl.String),
        "error_message": pl.Series([each and each.message for each in failures], dtype=pl.String),
    }
    units = _stack(found)
    cosines = np.einsum("ij,ij->i", units[left.to_numpy()], units[right.to_numpy()]).clip(-1.0, 1.0)
    return pl.DataFrame({"score": cosines}).with_columns(
        pl.coalesce(values.gather(left), values.gather(right)).alias(name) for name, values in told.items()
    )


async def _embed_texts(texts: Sequence[str], embed: Embed) -> list[Found]:
    """Return the vector of every text, or the failure that stands for it."""
    sent = [text for text in texts if text.strip()]
    groups = [sent[start : start + MOST_TEXTS] for start in range(0, len(sent), MOST_TEXTS)]
    embedding = _Embedding(embed)
    answers = chain.from_iterable(await run_jobs(groups, embedding.embed_group, MOST_CALLS))
    return [_check(next(answers)) if text.strip() else _BLANK for text in texts]


def _check(found: Found) -> Found:
    return found if isinstance(found, CallError) or found.any() else _ZERO


@dataclass(slots=True)
class _Embedding:
    """The calls of one evaluation.

    Attributes:
        embed: Makes a call.
        failures: Those that failed so far.
    """

    embed: Embed
    failures: list[CallError] = field(default_factory=list[CallError])

    async def embed_group(self, texts: Sequence[str]) -> list[Found]:
        """Embed a group, and its halves where that fails for what may lie in one text."""
        try:
            return [*await self.embed(texts)]
        except CallError as error:
            self.failures.append(error)
            is_apart = len(texts) == 1 or error.code not in _OF_TEXTS
            if is_apart or len(self.failures) > MOST_FAILURES:
                return [error] * len(texts)
        half = len(texts) // 2
        return [*await self.embed_group(texts[:half]), *await self.embed_group(texts[half:])]


def _stack(found: Sequence[Found]) -> npt.NDArray[np.float64]:
    """Return the vectors at length 1 as rows of one array, zeros where there is none.

    Raises:
        CallError: `unparseable`, when they are of different sizes.
    """
    import numpy as np  # the same

    sizes = {len(each) for each in found if not isinstance(each, CallError)}
    if len(sizes) > 1:
        raise CallError("unparseable", f"embeddings of different sizes: {sorted(sizes)}")
    nothing = np.zeros(max(sizes, default=0))
    rows = np.array([nothing if isinstance(each, CallError) else each for each in found], np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


EVALUATOR = EmbeddingEvaluator(
    name="SemanticSimilarity",
    summary="Cosine of the vectors that an embedding model makes of the answer and the reference.",
    aliases=("semantic_similarity", "semanticSimilarity"),
    needs=("response", "expected_response"),
    options=SemanticSimilarityOptions,
    scale=COSINES,
    threshold=None,
    measure=measure_cosine,
)
