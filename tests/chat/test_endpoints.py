"""URLs, keys and API versions before anything is sent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from assay.chat.client import open_chat
from assay.chat.endpoints import locate_model
from assay.chat.traffic import Traffic
from assay.config import Endpoint, RunConfig
from assay.contracts.chat import ChatRequest, text_message
from assay.errors import ConfigError, EndpointError

if TYPE_CHECKING:
    from tests.conftest import Loopback

HELLO = ChatRequest((text_message("user", "hello"),))

pytestmark = pytest.mark.usefixtures("api_key")


async def fetch_path(loopback: Loopback, endpoint: Endpoint) -> str:
    async with open_chat(endpoint, Traffic(RunConfig(datasets=()))) as chat:
        await chat.complete(HELLO)
    return str(loopback.requests[-1]["path"])


@pytest.mark.parametrize("ending", ["", "/", "/chat/completions", "/chat/completions/", "/responses", " "])
async def test_spellings_of_an_openai_url_give_one_path(loopback: Loopback, ending: str) -> None:
    endpoint = Endpoint(model="m", base_url=loopback.base_url + ending)
    assert await fetch_path(loopback, endpoint) == "/v1/chat/completions"


@pytest.mark.parametrize("ending", ["", "/", "/openai", "/openai/", "/openai/deployments/d/chat/completions"])
async def test_spellings_of_an_azure_url_give_one_path(loopback: Loopback, ending: str) -> None:
    url = f"{loopback.azure_url}{ending}?api-version=2024-06-01"
    endpoint = Endpoint(model="d", provider="azure", base_url=url)
    path = "/openai/deployments/d/chat/completions?api-version=2024-06-01"
    assert await fetch_path(loopback, endpoint) == path


def test_api_version_of_the_endpoint_beats_url_environment_and_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def locate(url: str, version: str | None) -> str | None:
        return locate_model(
            Endpoint(model="d", provider="azure", base_url=url, api_version=version)
        ).api_version

    assert locate("https://r.example", None) == "2024-12-01-preview"
    monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "from-env")
    assert locate("https://r.example", None) == "from-env"
    assert locate("https://r.example?api-version=from-url", None) == "from-url"
    assert locate("https://r.example?api-version=from-url", "2023-05-15") == "2023-05-15"


def test_urls_come_from_the_environment_when_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate_model(Endpoint(model="m")).url == "https://api.openai.com/v1/chat/completions"
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gate.example/v1")
    assert locate_model(Endpoint(model="m")).url == "https://gate.example/v1/chat/completions"
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "https://r.example/")
    place = locate_model(Endpoint(model="d", provider="azure"))
    assert place.url == "https://r.example/openai/deployments/d/chat/completions"


def test_azure_v1_route_takes_the_deployment_as_the_model() -> None:
    place = locate_model(Endpoint(model="d", provider="azure", base_url="https://r.example/openai/v1/"))
    assert place.url == "https://r.example/openai/v1/chat/completions"
    assert place.key_env == "AZURE_OPENAI_API_KEY"


def test_gateway_prefix_before_the_azure_path_is_kept() -> None:
    url = "https://gate.example/llm/openai/deployments/d"
    place = locate_model(Endpoint(model="d", provider="azure", base_url=url))
    assert place.url == "https://gate.example/llm/openai/deployments/d/chat/completions"


@pytest.mark.parametrize(
    ("endpoint", "part"),
    [
        (Endpoint(model="d", provider="azure"), "AZURE_OPENAI_ENDPOINT"),
        (Endpoint(model="d", provider="azure", base_url="https://r.example/openai/images"), "unknown path"),
        (
            Endpoint(model="d", provider="azure", base_url="https://r.example/openai/deployments/other"),
            "'other'",
        ),
    ],
)
def test_url_of_another_form_is_refused_with_the_right_form(endpoint: Endpoint, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        locate_model(endpoint)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "http://[::1"])
def test_a_url_of_the_environment_must_be_one(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ConfigError, match="http:// or https://"):
        locate_model(Endpoint(model="m"))


def test_message_shows_no_secret_of_a_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "ftp://me:hush@h/v1?code=hush")
    with pytest.raises(ConfigError) as caught:
        locate_model(Endpoint(model="m"))
    assert "ftp://h/v1" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY is not set.*any value will do"):
        open_chat(Endpoint(model="m"), Traffic(RunConfig(datasets=())))


@pytest.mark.parametrize("provider", ["openai", "azure"])
def test_a_variable_of_the_user_must_hold_the_key(provider: str) -> None:
    fields = {"model": "m", "provider": provider, "base_url": "https://r.example", "api_key_env": "MY_KEY"}
    with pytest.raises(ConfigError, match="MY_KEY is not set"):
        locate_model(Endpoint.model_validate(fields))


@pytest.mark.parametrize("path", ["", "/openai/v1"])
def test_azure_without_key_and_without_sign_in_names_both_ways(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    monkeypatch.setitem(sys.modules, "azure.identity", None)  # as if it were not installed
    endpoint = Endpoint(model="d", provider="azure", base_url=f"https://r.example{path}")
    with pytest.raises(ConfigError, match=r"set AZURE_OPENAI_API_KEY, or.*assay\[azure\].*az login"):
        locate_model(endpoint)


@pytest.mark.parametrize(
    ("ending", "path"),
    [
        ("", "/openai/responses?api-version=2025-04-01-preview"),
        ("/openai/responses", "/openai/responses?api-version=2025-04-01-preview"),
        ("/openai/v1/", "/openai/v1/responses?api-version=2025-04-01-preview"),
        ("/openai/v1/responses", "/openai/v1/responses?api-version=2025-04-01-preview"),
    ],
)
async def test_responses_have_paths_of_their_own_on_azure(loopback: Loopback, ending: str, path: str) -> None:
    url = f"{loopback.azure_url}{ending}?api-version=2025-04-01-preview"
    endpoint = Endpoint(model="d", provider="azure", base_url=url, api="responses")
    assert await fetch_path(loopback, endpoint) == path
    assert path.startswith(locate_model(endpoint).url.removeprefix(loopback.azure_url))


async def test_a_deployment_name_is_quoted_in_the_path(loopback: Loopback) -> None:
    endpoint = Endpoint(model="a b", provider="azure", base_url=loopback.azure_url, api_version="v")
    assert await fetch_path(loopback, endpoint) == (
        "/openai/deployments/a%20b/chat/completions?api-version=v"
    )


def test_embeddings_are_asked_where_the_chat_is() -> None:
    endpoint = Endpoint(model="d", provider="azure", base_url="https://r.example")
    place = locate_model(endpoint, "embeddings")
    assert place.url == "https://r.example/openai/deployments/d/embeddings"


def test_key_with_impossible_characters_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ключ")
    with pytest.raises(ConfigError) as caught:
        locate_model(Endpoint(model="m"))
    assert "ключ" not in str(caught.value)


@pytest.mark.parametrize("provider", ["openai", "azure"])
async def test_key_of_the_named_variable_is_sent(
    loopback: Loopback, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("MY_KEY", "other")
    loopback.key = "other"
    url = loopback.azure_url if provider == "azure" else loopback.base_url
    fields = {"model": "m", "provider": provider, "base_url": url, "api_key_env": "MY_KEY"}
    assert await fetch_path(loopback, Endpoint.model_validate(fields))
    with pytest.raises(EndpointError, match="OPENAI_API_KEY"):
        await fetch_path(loopback, Endpoint.model_validate({**fields, "api_key_env": None}))
