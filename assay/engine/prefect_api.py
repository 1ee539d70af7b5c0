"""Which Prefect API is configured and whether it answers, found out without importing Prefect."""

from __future__ import annotations

import os
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

from assay.errors import ConfigError

API_VARIABLE = "PREFECT_API_URL"
ANSWER_WITHIN_S = 5.0
SERVER_START_S = "120"  # a fresh home migrates its database first; the default of 20 s is too short


def find_api_url() -> str | None:
    """Return the API URL of the environment or of the active profile; None when there is none."""
    if url := os.environ.get(API_VARIABLE):
        return url
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    path = Path(os.environ.get("PREFECT_PROFILES_PATH", home / "profiles.toml"))
    try:
        profiles = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return None
    active = os.environ.get("PREFECT_PROFILE", profiles.get("active", ""))
    settings = profiles.get("profiles", {}).get(active, {})
    url = settings.get(API_VARIABLE) if isinstance(settings, dict) else None
    return url if isinstance(url, str) and url else None


def check_api(url: str) -> None:
    """Ask the API for its health.

    Raises:
        ConfigError: It did not answer within 5 seconds.
    """
    request = urllib.request.Request(f"{url.rstrip('/')}/health")  # noqa: S310 - http(s) as configured
    if key := os.environ.get("PREFECT_API_KEY"):
        request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S):  # noqa: S310 - the same URL
            return
    except urllib.error.HTTPError:
        return  # something answers; Prefect itself says what it dislikes
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the Prefect API at {url} does not answer ({error}); start it, unset {API_VARIABLE}, "
            "or run without Prefect: --engine local"
        ) from error


def use_temporary_server(store_root: str) -> None:
    """Set the environment for Prefect's own temporary server: home under the store, quiet, patient."""
    for name, value in {
        "PREFECT_HOME": str(Path(store_root).absolute() / "prefect"),
        "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": SERVER_START_S,
    }.items():
        os.environ.setdefault(name, value)


def hush() -> None:
    """Keep Prefect from logging below warnings and from reporting to anybody."""
    for name, value in {
        "PREFECT_LOGGING_LEVEL": "WARNING",
        "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
    }.items():
        os.environ.setdefault(name, value)
