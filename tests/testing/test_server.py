"""The model server and the scripted target, as tests of users take them."""

from __future__ import annotations

import doctest
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from openai import APIStatusError, OpenAI

import assay.testing
from assay.testing import ModelServer, scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

HI: Any = [{"role": "user", "content": "hi"}]
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def client(server: ModelServer) -> Iterator[OpenAI]:
    with OpenAI(api_key="any", base_url=server.base_url, max_retries=0) as client:
        yield client


def test_the_client_of_openai_reads_every_form(server: ModelServer, client: OpenAI) -> None:
    server.script([], after={"reply": "one two", "tool_calls": [CALL]})
    completion = client.chat.completions.create(model="m", messages=HI)
    assert completion.choices[0].message.content == "one two"
    chunks = list(client.chat.completions.create(model="m", messages=HI, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "one two"
    assert chunks[-1].usage
    response = client.responses.create(model="m", input="hi")
    assert (response.output_text, response.output[1].type) == ("one two", "function_call")
    events = list(client.responses.create(model="m", input="hi", stream=True))
    assert events[-1].type == "response.completed"
    vectors = client.embeddings.create(model="m", input=["a", "b", "a"]).data
    assert vectors[0].embedding == vectors[2].embedding != vectors[1].embedding


def test_steps_are_taken_in_order_and_matches_take_none(server: ModelServer, client: OpenAI) -> None:
    def ask(text: str) -> str | None:
        messages: Any = [{"role": "user", "content": text}]
        return client.chat.completions.create(model="m", messages=messages).choices[0].message.content

    server.script(
        [{"reply": "1"}, lambda body: {"reply": body["model"]}], match=[("ping", {"reply": "pong"})]
    )
    assert [ask("x"), ask("a ping"), ask("x"), ask("x")] == ["1", "pong", "m", "ok"]
    assert [request["path"] for request in server.requests] == ["/v1/chat/completions"] * 4


def test_a_key_of_its_own_is_the_only_one_taken() -> None:
    with ModelServer(key="right") as server:
        with OpenAI(api_key="right", base_url=server.base_url, max_retries=0) as client:
            assert client.chat.completions.create(model="m", messages=HI).choices
        stranger = OpenAI(api_key="wrong", base_url=server.base_url, max_retries=0)
        with stranger, pytest.raises(APIStatusError, match="wrong key"):
            stranger.chat.completions.create(model="m", messages=HI)
        assert "right" not in str(server.requests)


def test_other_paths_are_not_found(client: OpenAI) -> None:
    with pytest.raises(APIStatusError, match="no route /v1/moderations"):
        client.moderations.create(input="x")


def test_scripted_answers_by_table_or_rule() -> None:
    answer = scripted({"a": "1", "b": ""})
    assert (answer("a"), answer("b")) == ("1", "")
    with pytest.raises(LookupError, match="no answer is scripted for 'c'"):
        answer("c")
    assert scripted({"*": "any"})("c") == "any"
    assert scripted(str.upper)("c") == "C"


def test_the_example_of_the_package_holds() -> None:
    assert doctest.testmod(assay.testing) == (0, 3)


def test_neither_pytest_nor_a_client_is_imported_with_it() -> None:
    code = "import assay.testing, sys; print({'pytest', 'openai', 'polars'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "set()\n"
