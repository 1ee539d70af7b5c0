"""SemanticSimilarity: cosines, texts embedded once, and what a text has no vector for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from assay.errors import CallError, ConfigError, EndpointError
from evaluators.catalog import resolve_evaluation
from evaluators.panel import Judging
from evaluators.runner import run_evaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VECTORS = {"a": [1.0, 0.0], "b": [0.0, 2.0], "-a": [-3.0, 0.0], "ab": [1.0, 1.0], "zero": [0.0, 0.0]}


class ScriptedEmbedder:
    """Embeds from a table; `refuse` says which call fails and how."""

    def __init__(self, refuse: Callable[[Sequence[str]], Exception | None] = lambda _: None) -> None:
        self.refuse = refuse
        self.calls: list[list[str]] = []

    async def embed(self, texts: Sequence[str]) -> Any:
        self.calls.append(list(texts))
        error = self.refuse(texts)
        if error is not None:
            raise error
        return np.array([VECTORS.get(text, [1.0, 0.5]) for text in texts], np.float32)


def compare(embedder: ScriptedEmbedder, *pairs: tuple[str, str]) -> pl.DataFrame:
    judging = Judging((), 1, lambda: None, embed=embedder.embed)
    rows = pl.DataFrame(pairs, schema=["response", "expected_response"], orient="row")
    return asyncio.run(run_evaluation(resolve_evaluation("SemanticSimilarity", {}), rows, judging))


def test_a_cosine_is_told_as_it_is_and_every_text_is_embedded_once() -> None:
    embedder = ScriptedEmbedder()
    result = compare(embedder, ("a", "a"), ("a", "b"), ("-a", "a"), ("ab", "a"))
    assert result["score"].to_list() == pytest.approx([1.0, 0.0, -1.0, 0.5**0.5])
    assert result["passed"].to_list() == [None] * 4
    assert embedder.calls == [["a", "-a", "ab", "b"]]


def test_blank_texts_are_never_sent() -> None:
    embedder = ScriptedEmbedder()
    result = compare(embedder, (" \n", "a"), ("a", "  "), ("a", "a"))
    assert result["status"].to_list() == ["error", "skipped", "ok"]
    assert result["error_code"].to_list() == ["empty_response", None, None]
    assert result["reason"][1] == "no expected_response"
    assert embedder.calls == [["a"]]


def test_a_text_that_is_refused_fails_its_rows_alone() -> None:
    embedder = ScriptedEmbedder(
        lambda texts: CallError("bad_request", "too long") if "long" in texts else None
    )
    result = compare(embedder, *((f"t{number}", "a") for number in range(20)), ("long", "b"), ("b", "b"))
    assert result.filter(pl.col("status") == "error").select("row", "error_code", "error_message").rows() == [
        (20, "bad_request", "too long")
    ]
    assert result["score"][21] == pytest.approx(1.0)


def test_a_server_that_is_down_fails_the_texts_of_its_calls_and_is_not_asked_again() -> None:
    embedder = ScriptedEmbedder(
        lambda texts: CallError("timeout", "no answer in time") if "t200" in texts else None
    )
    result = compare(embedder, *((f"t{number}", "a") for number in range(300)))
    assert len(embedder.calls) == 3
    failed = result.filter(pl.col("status") == "error")
    assert failed["error_code"].unique().to_list() == ["timeout"]
    assert (failed["row"].min(), failed["row"].max(), failed.height) == (128, 255, 128)


def test_what_is_wrong_for_all_texts_is_not_tried_with_each() -> None:
    embedder = ScriptedEmbedder(lambda _: CallError("bad_request", "no such dimensions"))
    result = compare(embedder, *((f"t{number}", "a") for number in range(1_000)))
    assert set(result["error_code"]) == {"bad_request"}
    assert len(embedder.calls) < 100


def test_a_vector_without_direction_is_an_error() -> None:
    result = compare(ScriptedEmbedder(), ("zero", "a"), ("a", "a"))
    assert result["error_code"].to_list() == ["invalid_result", None]


def test_a_wrong_key_ends_the_run() -> None:
    with pytest.raises(EndpointError, match="key"):
        compare(ScriptedEmbedder(lambda _: EndpointError("the key is wrong")), ("a", "a"))


def test_without_an_embedding_model_nothing_is_scored() -> None:
    rows = pl.DataFrame({"response": ["a"], "expected_response": ["a"]})
    with pytest.raises(ConfigError, match="--embedding-model"):
        asyncio.run(run_evaluation(resolve_evaluation("SemanticSimilarity", {}), rows, None))
