"""Vectors in a run: from the endpoint to the scores, kept so that nobody pays for them twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import assay
from assay.cli.app import run_app
from assay.errors import ConfigError
from assay.testing.forms import derive_vector

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")

PAIRS = [("4", "4"), ("Lyon", "Paris"), ("Blau", "blau")]


def cosine(left: str, right: str) -> float:
    first, second = (np.array(derive_vector(text), np.float64) for text in (left, right))
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


def embed_rows(run_rows: Callable[..., Run], loopback: Loopback, **settings: Any) -> Run:
    asked = {"evaluators": "SemanticSimilarity", "embedding_model": "e", "base_url": loopback.base_url}
    return run_rows(**asked | settings)


def test_every_text_is_embedded_once_and_the_cosine_is_the_score(
    run_rows: Callable[..., Run], loopback: Loopback
) -> None:
    run = embed_rows(run_rows, loopback)
    assert run.scores["score"].to_list() == pytest.approx([cosine(*pair) for pair in PAIRS], abs=1e-6)
    assert run.scores["passed"].to_list() == [None] * 3
    (request,) = loopback.requests
    assert request["path"] == "/v1/embeddings"
    assert request["body"]["input"] == ["4", "Lyon", "Blau", "Paris", "blau"]
    assert run.info["judge_model"] is None


def test_a_later_run_reuses_the_vectors(run_rows: Callable[..., Run], loopback: Loopback) -> None:
    first = embed_rows(run_rows, loopback)
    again = embed_rows(run_rows, loopback, reuse="all")
    assert len(loopback.requests) == 1
    assert again.scores["score"].to_list() == first.scores["score"].to_list()


def test_a_resumed_run_asks_only_for_the_vectors_it_lacks(
    run_rows: Callable[..., Run], loopback: Loopback, tmp_path: Path
) -> None:
    refused = {"status": 400, "body": {"error": {"message": "bad moment"}}}
    loopback.script([], match=[("text 140", refused)])
    rows = [{"id": f"r{n}", "response": f"text {n}", "ground_truth": "x"} for n in range(150)]
    asked = {"evaluators": "SemanticSimilarity", "embedding_model": "e", "base_url": loopback.base_url}
    first = run_rows(*rows, **asked)
    assert first.scores.filter(pl.col("status") == "error")["item_id"].to_list() == ["r140"]
    loopback.requests.clear()
    loopback.script([])
    again = assay.run(resume="latest", store=tmp_path / "store")
    assert [len(request["body"]["input"]) for request in loopback.requests] == [151 - 128]
    assert again.scores["status"].unique().to_list() == ["ok"]


def test_a_call_that_fails_is_the_error_of_its_rows(run_rows: Callable[..., Run], loopback: Loopback) -> None:
    loopback.script([], after={"status": 400, "body": {"error": {"message": "input is too long"}}})
    run = embed_rows(run_rows, loopback)
    assert run.scores.select("status", "error_code", "score").unique().rows() == [
        ("error", "bad_request", None)
    ]


def test_the_grader_of_openai_takes_cosine(run_rows: Callable[..., Run], loopback: Loopback) -> None:
    run = embed_rows(
        run_rows,
        loopback,
        evaluators="text_similarity",
        options={"TextSimilarity": {"evaluation_metric": "cosine", "pass_threshold": 0.99}},
    )
    assert run.scores["evaluator"].unique().to_list() == ["TextSimilarity"]
    assert run.scores["passed"].to_list() == [cosine(*pair) >= 0.99 for pair in PAIRS]


def test_without_an_embedding_model_the_run_is_refused(run_rows: Callable[..., Run]) -> None:
    with pytest.raises(ConfigError, match="--embedding-model MODEL"):
        run_rows(evaluators="SemanticSimilarity")


def test_the_command_line_compares_vectors(
    write_rows: Callable[..., Path], loopback: Loopback, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    flags = ["--evaluators", "SemanticSimilarity", "--embedding-model", "e", "--store", str(store)]
    assert run_app(["run", str(write_rows()), *flags, "--base-url", loopback.base_url]) == 0
    assert assay.query("select count(score) as n from scores", store=store)["n"].to_list() == [3]
