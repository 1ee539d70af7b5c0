"""Where a model is: the tidied URL, the key or who signs in, and the client that speaks to it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from httpx2 import Limits, create_ssl_context
from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient, Omit, Timeout, omit
from pydantic import SecretStr

from assay.chat.entra import can_sign_in, open_provider
from assay.contracts.hiding import JWT, Secrets
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from ssl import SSLContext

    from assay.chat.entra import TokenProvider
    from assay.config import Endpoint

Api: TypeAlias = Literal["chat", "responses", "embeddings"]

OPENAI_URL = "https://api.openai.com/v1"
AZURE_API_VERSION = "2024-12-01-preview"
CONNECT_S = 10.0  # a server that accepts no connection in this time is not there
MOST_CONNECTIONS = 10_000  # as many as calls may be under way; the client's own limit would make calls wait

# Headers that only tell of the machine and cost a tenth of the time of a call.
QUIET: Mapping[str, str | Omit] = dict.fromkeys(
    (
        "X-Stainless-Lang",
        "X-Stainless-Package-Version",
        "X-Stainless-OS",
        "X-Stainless-Arch",
        "X-Stainless-Runtime",
        "X-Stainless-Runtime-Version",
        "X-Stainless-Async",
        "x-stainless-retry-count",
        "x-stainless-read-timeout",
    ),
    omit,
)

_PATHS: Mapping[Api, str] = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "embeddings": "/embeddings",
}
_ENDINGS = "|".join(_PATHS.values())
_AZURE_PATH = re.compile(
    rf"(.*?)(?:/openai(?:/responses|/deployments(?:/([^/]+)(?:{_ENDINGS})?)?)?)?",
)
# Who was refused, and what else would help: with a key, without.
_OTHERS = (
    ("the key", ""),
    ("whoever is signed in at Azure", ", or run `az login` as a user of the resource"),
)
_AZURE_KEY = "AZURE_OPENAI_API_KEY"
_AZURE_FORMS = (
    "accepted: https://RESOURCE.openai.azure.com, the same with /openai, or the full deployment URL"
)


@dataclass(frozen=True, slots=True)
class Place:
    """One model at one server.

    Attributes:
        model: Model name, on Azure the deployment.
        base_url: Root that the client is given.
        key: The key; None: whoever is signed in at Azure.
        key_env: Variable the key is read from.
        api_version: Azure API version; None where requests do not name a deployment in their path.
        query: Parameters that every request carries.
        api: What is asked of the model, and in which form.
        stream: Whether answers come in pieces.
        secrets: What no message may show: the key, and the values of parameters.
    """

    model: str
    base_url: str = field(repr=False)
    key: SecretStr | None
    key_env: str
    api_version: str | None = None
    query: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    api: Api = "chat"
    stream: bool = False
    secrets: Secrets = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Note what is to be hidden."""
        sent = [value for name, value in self.query.items() if name != "api-version"]
        key = [self.key.get_secret_value()] if self.key else []
        object.__setattr__(self, "secrets", Secrets([*key, *sent]))

    @property
    def path(self) -> str:
        """The path of a request below the root that the client is given."""
        is_deployed = self.api_version is not None and self.api != "responses"
        return (
            f"/deployments/{quote(self.model, safe='')}{_PATHS[self.api]}"
            if is_deployed
            else _PATHS[self.api]
        )

    @property
    def url(self) -> str:
        """The URL of a request, without user information and query, fit for messages."""
        return f"{_show_url(self.base_url)}{'/openai' if self.api_version else ''}{self.path}"

    def hide_key(self, text: str) -> str:
        """Return the text with every secret of the place, or any token, replaced by `***`."""
        text = self.secrets.hide(text)
        return JWT.sub("***", text) if self.key is None else text

    def explain(self, code: str, said: str) -> str:
        """Say what is wrongly set up, and what to do."""
        deployed = self.api_version is not None
        what = f"deployment {self.model!r}" if deployed else f"model {self.model!r}"
        where = f"{self.url} (api-version {self.api_version})" if deployed else self.url
        match code:
            case "auth":
                who, other = _OTHERS[self.key is None]
                remedy = f"set {self.key_env} to a key that this server accepts for this model"
                return f"{where} refused {who} for {what}: {said}; {remedy}{other}"
            case "not_found":
                hint = (
                    "name the deployment, not the model, and check the resource and the API version"
                    if deployed
                    else "check the model name and --base-url; most servers expect a URL that ends in /v1"
                )
                return f"{where} does not know {what}: {said}; {hint}"
            case "quota":
                return f"{where}: the quota of the key in {self.key_env} is used up for {what}: {said}"
            case _:
                return f"cannot reach {where} for {what}: {said}; is the server running? --base-url names it"


def locate_model(endpoint: Endpoint, api: Api | None = None) -> Place:
    """Find URL, key and API version of a model from its endpoint and the environment.

    Args:
        endpoint: Model, URL and where the key is.
        api: What is asked of it; None: as the endpoint says.

    Raises:
        ConfigError: No key, no Azure URL, or a URL of another form than the client can use.
    """
    asked = api or endpoint.api
    if endpoint.provider == "azure":
        return _locate_azure(endpoint, asked)
    parts = _split_url(endpoint.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI_URL)
    return _place_openai(endpoint, parts, "OPENAI_API_KEY", asked)


def open_client(place: Place, timeout_s: float, tokens: TokenProvider | None = None) -> AsyncOpenAI:
    """Return a client without retries of its own; nothing is sent yet.

    Args:
        place: Where the model is.
        timeout_s: Longest silence of a server, in seconds.
        tokens: Gives the tokens where the place has no key; None: the credential that Azure finds.
    """
    timeout = Timeout(timeout_s, connect=min(timeout_s, CONNECT_S))
    limits = Limits(max_connections=MOST_CONNECTIONS, max_keepalive_connections=MOST_CONNECTIONS)
    trusted = _load_trusted(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    http_client = DefaultAioHttpClient(limits=limits, verify=trusted)
    key = place.key.get_secret_value() if place.key else None
    provider = None if key else tokens or open_provider()
    query = dict(place.query)
    if place.api_version is None:
        return AsyncOpenAI(
            api_key=key or provider,
            base_url=place.base_url,
            default_query=query,
            timeout=timeout,
            max_retries=0,
            http_client=http_client,
        )
    return AsyncAzureOpenAI(
        api_key=key,
        azure_ad_token_provider=provider,
        azure_endpoint=place.base_url,
        api_version=place.api_version,
        default_query=query,
        timeout=timeout,
        max_retries=0,
        http_client=http_client,
    )


@lru_cache(maxsize=8)
def _load_trusted(_file: str | None, _folder: str | None) -> SSLContext:
    """Load the certificates to trust, once for all clients: it takes longer than everything else here.

    Args:
        _file: The environment's own file of certificates; the loader reads it, here it tells loads apart.
        _folder: The same for a folder.
    """
    return create_ssl_context()


def _place_openai(endpoint: Endpoint, parts: SplitResult, usual_key: str, api: Api) -> Place:
    path = re.sub(rf"(?:{_ENDINGS})$", "", parts.path.rstrip("/")).rstrip("/")
    return Place(
        endpoint.model,
        f"{parts.scheme}://{parts.netloc}{path}",
        *_find_key(endpoint, usual_key),
        query=dict(parse_qsl(parts.query)),
        api=api,
        stream=endpoint.stream,
    )


def _locate_azure(endpoint: Endpoint, api: Api) -> Place:
    url = endpoint.base_url or os.environ.get("AZURE_OPENAI_ENDPOINT")
    if not url:
        raise ConfigError(
            f"model {endpoint.model!r} on Azure needs a URL: set AZURE_OPENAI_ENDPOINT or --base-url; "
            f"{_AZURE_FORMS}"
        )
    parts = _split_url(url)
    if re.search(r"/openai/v1(/|$)", parts.path):  # the route that takes the deployment as `model`
        return _place_openai(endpoint, parts, _AZURE_KEY, api)
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
    return Place(
        endpoint.model,
        f"{parts.scheme}://{parts.netloc}{root.rstrip('/')}",
        *_find_key(endpoint, _AZURE_KEY),
        endpoint.api_version or named or os.environ.get("AZURE_OPENAI_API_VERSION") or AZURE_API_VERSION,
        query,
        api,
        endpoint.stream,
    )


def _find_key(endpoint: Endpoint, usual: str) -> tuple[SecretStr | None, str]:
    """Return the key and its variable; no key where Azure is asked as whoever is signed in."""
    variable = endpoint.api_key_env or usual
    may_sign_in = variable == _AZURE_KEY and endpoint.api_key_env is None
    if may_sign_in and not os.environ.get(variable, "").strip():
        if can_sign_in():
            return None, variable
        raise ConfigError(
            f"no key for model {endpoint.model!r}: set {variable}, or run `pip install 'assay[azure]'` and "
            "`az login` to ask as whoever is signed in"
        )
    return _read_key(variable, endpoint.model), variable


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
        usable = usable and "@" not in parts.netloc  # a password cannot be sent beside a key
    except ValueError:
        usable = False
    else:
        if usable:
            return parts
    raise ConfigError(
        f"URL {_show_url(url)!r} cannot be used; "
        f"accepted: http:// or https:// with a host and no user, such as {OPENAI_URL}"
    )


def _show_url(url: str) -> str:
    """Return the URL without user information, query and fragment, which may hold secrets."""
    return re.split(r"[?#]", re.sub(r"//.*@", "//", url.strip()))[0]  # a password may hold any character
