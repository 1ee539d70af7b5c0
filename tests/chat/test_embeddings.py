"""Embeddings over a real connection: order, forms, batches, faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from assay.chat.embeddings import EmbeddingModel, open_embeddings, pack_vectors, split_texts, unpack_vectors
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.errors import CallError
from assay.testing.forms import derive_vector, pack_vector

if TYPE_CHECKING:
    from tests.conftest import Loopback

pytestmark = pytest.mark.usefixtures("api_key")


async def no_nap(_: float) -> None:
    return


def open_to(loopback: Loopback, traffic: Traffic | None = None, **fields: Any) -> EmbeddingModel:
    endpoint = Endpoint.model_validate({"model": "m", "base_url": loopback.base_url, **fields})
    return open_embeddings(endpoint, traffic or Traffic(RunConfig(datasets=()), sleep=no_nap))


async def test_vectors_come_in_the_order_of_the_texts_over_all_batches(loopback: Loopback) -> None:
    texts = [f"text {number}" for number in range(300)]
    traffic = Traffic(RunConfig(datasets=()))
    async with open_to(loopback, traffic) as model:
        vectors = await model.embed(texts)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, np.array([derive_vector(text) for text in texts], np.float32))
    assert sorted(len(request["body"]["input"]) for request in loopback.requests) == [44, 128, 128]
    assert traffic.meter.usage.input_tokens == 300
    assert loopback.requests[0]["path"] == "/v1/embeddings"


@pytest.mark.parametrize("is_packed", [True, False])
async def test_base64_and_lists_in_any_order_give_the_same(loopback: Loopback, is_packed: bool) -> None:
    wanted = [[1.0, 0.5], [0.25, -2.0], [3.0, 4.0]]
    data = [
        {"index": index, "embedding": pack_vector(wanted[index]) if is_packed else wanted[index]}
        for index in (2, 0, 1)
    ]
    loopback.script([{"status": 200, "body": {"data": data}}])
    async with open_to(loopback) as model:
        assert (await model.embed(["a", "b", "c"])).tolist() == wanted


async def test_a_server_without_base64_is_asked_without_it(loopback: Loopback) -> None:
    loopback.script([{"status": 400, "body": {"error": "Unsupported parameter: 'encoding_format'"}}])
    async with open_to(loopback) as model:
        vectors = await model.embed(["a"])
    assert vectors.tolist() == [np.array(derive_vector("a"), np.float32).tolist()]
    assert "encoding_format" not in loopback.requests[1]["body"]


async def test_no_text_asks_nothing(loopback: Loopback) -> None:
    async with open_to(loopback) as model:
        assert (await model.embed([])).shape == (0, 0)
    assert loopback.requests == []


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ([{"index": 0, "embedding": [1.0]}], "1 embeddings of sizes [1] for 2 texts"),
        ([{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}], "sizes [1, 2]"),
        ([{"index": 0, "embedding": "?"}, {"index": 1, "embedding": "?"}], "sizes [0]"),
        ([], "0 embeddings"),
        (None, "0 embeddings"),
    ],
)
async def test_other_vectors_than_asked_for_are_an_error_that_was_paid_for(
    loopback: Loopback, data: Any, part: str
) -> None:
    usage = {"prompt_tokens": 9, "total_tokens": 9}
    loopback.script([], after={"status": 200, "body": {"data": data, "usage": usage}})
    async with open_to(loopback) as model:
        with pytest.raises(CallError, match="unparseable") as caught:
            await model.embed(["a", "b"])
    assert part in caught.value.message
    assert caught.value.reply
    assert caught.value.reply.usage.input_tokens == 9


async def test_a_passing_failure_is_tried_again(loopback: Loopback) -> None:
    loopback.script([{"status": 500, "body": ""}, {"close": True}])
    async with open_to(loopback) as model:
        assert (await model.embed(["a"])).shape == (1, 8)
    assert len(loopback.requests) == 3


async def test_azure_asks_the_deployment(loopback: Loopback) -> None:
    async with open_to(loopback, provider="azure", base_url=loopback.azure_url, api_version="v") as model:
        await model.embed(["a"])
    assert loopback.requests[0]["path"] == "/openai/deployments/m/embeddings?api-version=v"


def test_long_texts_make_small_batches() -> None:
    long, short = "x" * 50_000, "y" * 20_000
    assert split_texts([long, short, short, long, "z"]) == [[long], [short, short], [long, "z"]]
    assert split_texts(["w" * 99_999]) == [["w" * 99_999]]


def test_vectors_come_back_as_they_were_packed() -> None:
    vectors = np.array([[0.1, -2.5, 3e-30], [1.0, 0.0, 7.25]], np.float32)
    np.testing.assert_array_equal(unpack_vectors(pack_vectors(vectors)), vectors)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"size":3,"floats":"AAAA"}', '{"size":0,"floats":""}'])
def test_what_holds_no_vectors_is_an_error(text: str) -> None:
    with pytest.raises(CallError, match="holds no embeddings"):
        unpack_vectors(text)
