"""Tokens of whoever is signed in at Azure (Entra ID), in place of a key."""

from __future__ import annotations

import asyncio
import time
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from assay.chat.failures import FailedCallError, Failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    TokenProvider: TypeAlias = Callable[[], Awaitable[str]]

SCOPE = "https://cognitiveservices.azure.com/.default"
EARLY_S = 300  # seconds before its end that a token is replaced


class Token(Protocol):
    """An access token of azure-identity."""

    @property
    def token(self) -> str:
        """The token."""
        ...

    @property
    def expires_on(self) -> int:
        """When it ends, in seconds since 1970."""
        ...


class Credential(Protocol):
    """Signs in."""

    async def get_token(self, *scopes: str) -> Token:
        """Fetch a token."""
        ...


def can_sign_in() -> bool:
    """Whether azure-identity, which comes with the extra `azure`, is installed."""
    try:
        return find_spec("azure.identity") is not None
    except ModuleNotFoundError:
        return False


def open_provider(
    open_credential: Callable[[], AbstractAsyncContextManager[Credential]] | None = None,
) -> TokenProvider:
    """Return a function that gives a valid token, fetched when it is first asked for.

    A credential is open only while a token is fetched, once for all calls that wait for it.

    Args:
        open_credential: Opens what signs in; None: the credential that Azure finds (environment,
            managed identity, `az login`).
    """
    lock = asyncio.Lock()
    known: list[Token] = []

    async def provide() -> str:
        async with lock:
            if not known or known[0].expires_on - EARLY_S <= time.time():
                known[:] = [await _fetch_token(open_credential or _open_default)]
        return known[0].token

    return provide


async def _fetch_token(open_credential: Callable[[], AbstractAsyncContextManager[Credential]]) -> Token:
    """Sign in.

    Raises:
        FailedCallError: `auth` nobody is signed in, or `network`.
    """
    try:
        async with open_credential() as credential:
            return await credential.get_token(SCOPE)
    except Exception as error:
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if "AzureError" not in kinds:
            raise
        code = "auth" if "ClientAuthenticationError" in kinds else "network"
        raise FailedCallError(Failure(code, f"signing in at Azure failed: {error}")) from error


def _open_default() -> AbstractAsyncContextManager[Credential]:
    identity: Any = import_module("azure.identity.aio")  # an optional package, and slow to import
    return identity.DefaultAzureCredential()
