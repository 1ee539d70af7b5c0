"""Azure without a key: whose token is sent, how often it is fetched, what is said when there is none."""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Self

import pytest

from assay.chat.client import ModelChat
from assay.chat.endpoints import locate_model, open_client
from assay.chat.entra import SCOPE, open_provider
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatRequest, text_message
from assay.errors import CallError, EndpointError

if TYPE_CHECKING:
    from tests.conftest import Loopback

HELLO = ChatRequest((text_message("user", "hello"),))
PARTS = ("eyJhbGciOi", "eyJzdWIiOi", "c2lnbmF0dXJl")  # header, claims, signature
TOKEN = ".".join(PARTS)


class AzureError(Exception):
    """Named as the base of all errors of azure-core."""


class ClientAuthenticationError(AzureError):
    """Named as the error of a sign-in that is refused."""


@dataclass(frozen=True)
class Issued:
    token: str
    expires_on: int


class Credential:
    """Counts how often it is opened, asked and closed."""

    def __init__(self, lasts_s: float = 3600, error: Exception | None = None) -> None:
        self.steps: list[str] = []
        self._lasts_s, self._error = lasts_s, error

    async def __aenter__(self) -> Self:
        self.steps.append("open")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.steps.append("close")

    async def get_token(self, *scopes: str) -> Issued:
        assert scopes == (SCOPE,)
        await asyncio.sleep(0)
        if self._error:
            raise self._error
        self.steps.append("token")
        return Issued(TOKEN, int(time.time() + self._lasts_s))


@pytest.fixture
def endpoint(loopback: Loopback, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """An Azure endpoint without a key, where azure-identity is installed."""
    module = ModuleType("azure.identity")
    module.__spec__ = ModuleSpec("azure.identity", None)
    monkeypatch.setitem(sys.modules, "azure.identity", module)
    loopback.key = TOKEN
    return Endpoint(model="d", provider="azure", base_url=loopback.azure_url)


def open_to(endpoint: Endpoint, credential: Credential) -> ModelChat:
    place = locate_model(endpoint)
    assert place.key is None
    traffic = Traffic(RunConfig(datasets=()))
    return ModelChat(open_client(place, 5, open_provider(lambda: credential)), place, traffic)


@pytest.mark.parametrize("ending", ["", "/openai/v1"])
async def test_one_token_serves_all_calls_and_the_credential_is_closed(
    loopback: Loopback, endpoint: Endpoint, ending: str
) -> None:
    there = endpoint.model_copy(update={"base_url": f"{loopback.azure_url}{ending}"})
    credential = Credential()
    async with open_to(there, credential) as chat:
        replies = await asyncio.gather(*(chat.complete(HELLO) for _ in range(4)))
    assert [reply.text for reply in replies] == ["ok"] * 4
    assert credential.steps == ["open", "token", "close"]


async def test_a_token_is_replaced_before_it_ends() -> None:
    credential = Credential(lasts_s=200)
    provide = open_provider(lambda: credential)
    assert [await provide(), await provide()] == [TOKEN, TOKEN]
    assert credential.steps == ["open", "token", "close"] * 2


async def test_nobody_signed_in_ends_the_run_and_says_what_to_do(endpoint: Endpoint) -> None:
    credential = Credential(error=ClientAuthenticationError("no credential was found"))
    async with open_to(endpoint, credential) as chat:
        with pytest.raises(EndpointError, match=r"no credential was found.*AZURE_OPENAI_API_KEY.*az login"):
            await chat.complete(HELLO)
    assert credential.steps == ["open", "close"]


async def test_a_sign_in_that_cannot_be_reached_is_a_network_failure(endpoint: Endpoint) -> None:
    place, config = locate_model(endpoint), RunConfig(datasets=())
    provide = open_provider(lambda: Credential(error=AzureError("no route")))
    traffic = Traffic(config, sleep=lambda _: asyncio.sleep(0))
    async with ModelChat(open_client(place, 5, provide), place, traffic) as chat:
        with pytest.raises(CallError, match="network: signing in at Azure failed: no route"):
            await chat.complete(HELLO)


async def test_a_token_that_the_server_repeats_is_hidden(loopback: Loopback, endpoint: Endpoint) -> None:
    loopback.script([], after={"status": 401, "body": {"error": {"message": f"token {TOKEN} is odd"}}})
    async with open_to(endpoint, Credential()) as chat:
        with pytest.raises(EndpointError, match=r"token \*\*\* is odd") as caught:
            await chat.complete(HELLO)
        assert TOKEN not in f"{caught.value!r} {chat!r} {chat.place!r}"
