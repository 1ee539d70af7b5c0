"""Where a model is: the tidied URL, the key, and the client that speaks to it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient, Timeout
from pydantic import SecretStr

from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from assay.config import Endpoint

OPENAI_URL = "https://api.openai.com/v1"
AZURE_API_VERSION = "2024-12-01-preview"
CONNECT_S = 10.0  # a server that accepts no connection in this time is not there
SHORTEST_SECRET = 8  # shorter keys (`none`, `EMPTY`) are placeholders of local servers, not secrets

_AZURE_PATH = re.compile(r"(.*?)(?:/openai(?:/deployments(?:/([^/]+)(?:/chat/completions)?)?)?)?")
_AZURE_FORMS = (
    "accepted: https://RESOURCE.openai.azure.com, the same with /openai, or the full deployment URL"
)


@dataclass(frozen=True, slots=True)
class Place:
    """One model at one server.

    Attributes:
        model: Model name, on Azure the deployment.
        base_url: Root that the client is given.
        key: The key.
        key_env: Variable the key was read from.
        api_version: Azure API version; None where requests do not name a deployment in their path.
        query: Parameters that every request carries.
    """

    model: str
    base_url: str = field(repr=False)
    key: SecretStr
    key_env: str
    api_version: str | None = None
    query: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def url(self) -> str:
        """The URL of a request, without user information and query, fit for messages."""
        deployment = f"/openai/deployments/{self.model}" if self.api_version else ""
        return f"{_show_url(self.base_url)}{deployment}/chat/completions"

    def hide_key(self, text: str) -> str:
        """Return the text with every occurrence of the key replaced by `***`."""
        key = self.key.get_secret_value()
        return text.replace(key, "***") if len(key) >= SHORTEST_SECRET else text


def locate_model(endpoint: Endpoint) -> Place:
    """Find URL, key and API version of a model from its endpoint and the environment.

    Raises:
        ConfigError: No key, no Azure URL, or a URL of another form than the client can use.
    """
    if endpoint.provider == "azure":
        return _locate_azure(endpoint)
    parts = _split_url(endpoint.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)
    return _place_openai(endpoint, parts, "OPENAI_API_KEY")


def open_client(place: Place, timeout_s: float) -> AsyncOpenAI:
    """Return a client without retries of its own; nothing is sent yet."""
    key, query = place.key.get_secret_value(), dict(place.query)
    timeout = Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))
    if place.api_version is None:
        return AsyncOpenAI(
            api_key=key,
            base_url=place.base_url,
            default_query=query,
            timeout=timeout,
            max_retries=0,
            http_client=DefaultAioHttpClient(),
        )
    return AsyncAzureOpenAI(
        api_key=key,
        azure_endpoint=place.base_url,
        api_version=place.api_version,
        default_query=query,
        timeout=timeout,
        max_retries=0,
        http_client=DefaultAioHttpClient(),
    )


def _place_openai(endpoint: Endpoint, parts: SplitResult, usual_key: str) -> Place:
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    key_env = endpoint.api_key_env or usual_key
    return Place(
        endpoint.model,
        f"{parts.scheme}://{parts.netloc}{path}",
        _read_key(key_env, endpoint.model),
        key_env,
        query=dict(parse_qsl(parts.query)),
    )


def _locate_azure(endpoint: Endpoint) -> Place:
    url = endpoint.base_url or os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not url:
        raise ConfigError(
            f"model {endpoint.model!r} on Azure needs a URL: set AZURE_OPENAI_ENDPOINT or --base-url; "
            f"{_AZURE_FORMS}"
        )
    parts = _split_url(url)
    if re.search(r"/openai/v1(/|$)", parts.path):  # the route that takes the deployment as `model`
        return _place_openai(endpoint, parts, "AZURE_OPENAI_API_KEY")
    match = _AZURE_PATH.fullmatch(parts.path.rstrip("/"))
    root, deployment = match.groups() if match else ("/openai/", None)
    if re.search(r"/openai(/|$)", root):
        raise ConfigError(f"Azure URL {_show_url(url)} has an unknown path; {_AZURE_FORMS}")
    if deployment and unquote(deployment) != endpoint.model:
        raise ConfigError(
            f"Azure URL {_show_url(url)} names deployment {unquote(deployment)!r} but the model is "
            f"{endpoint.model!r}; give both the same name, or a URL without a deployment"
        )
    query = dict(parse_qsl(parts.query))
    named = query.pop("api-version", None)
    key_env = endpoint.api_key_env or "AZURE_OPENAI_API_KEY"
    return Place(
        endpoint.model,
        f"{parts.scheme}://{parts.netloc}{root.rstrip('/')}",
        _read_key(key_env, endpoint.model),
        key_env,
        endpoint.api_version or named or os.environ.get("AZURE_OPENAI_API_VERSION") or AZURE_API_VERSION,
        query,
    )


def _read_key(variable: str, model: str) -> SecretStr:
    """Read a key from the environment; a blank one counts as missing."""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ConfigError(
            f"no key for model {model!r}: the environment variable {variable} is not set; "
            "for a local server that needs no key any value will do"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the key in {variable} holds characters that no key has; copy it again")
    return SecretStr(key)


def _split_url(url: str) -> SplitResult:
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    else:
        if usable:
            return parts
    raise ConfigError(
        f"URL {_show_url(url)!r} cannot be used; "
        f"accepted: http:// or https:// with a host, such as {OPENAI_URL}"
    )


def _show_url(url: str) -> str:
    """Return the URL without user information, query and fragment, which may hold secrets."""
    return re.sub(r"//[^/]*@", "//", re.split(r"[?#]", url.strip())[0])
