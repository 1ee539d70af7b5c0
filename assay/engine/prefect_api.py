"""The Prefect API: which one is configured, whether it answers, and a server of our own for a while."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from assay.errors import ConfigError, UndecidedError

if TYPE_CHECKING:
    from collections.abc import Generator

API_VARIABLE = "PREFECT_API_URL"
ANSWER_WITHIN_S = 5.0
START_VARIABLE = "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"
SERVER_START_S = "120"  # a fresh home migrates its database first; Prefect's own 20 s are too short
END_WITHIN_S = 10.0
POLL_EVERY_S = 0.3
QUIET = {
    "PREFECT_LOGGING_LEVEL": "ERROR",  # below that it tells of its own housekeeping at exit
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
}


def find_api_url() -> str | None:
    """Return the API URL of the environment or of the active profile; None when there is none."""
    if url := os.environ.get(API_VARIABLE):
        return url
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    path = Path(os.environ.get("PREFECT_PROFILES_PATH", home / "profiles.toml"))
    try:
        profiles = tomllib.loads(path.read_text(encoding="utf-8"))
        active = os.environ.get("PREFECT_PROFILE", profiles.get("active", ""))
        url = profiles.get("profiles", {}).get(active, {}).get(API_VARIABLE)
    except (OSError, ValueError, AttributeError):  # absent, or not the profiles that Prefect writes
        return None
    return url if isinstance(url, str) and url else None


def check_api(url: str) -> None:
    """Ask the API for its health.

    Raises:
        ConfigError: It did not answer within 5 seconds.
    """
    import urllib.error  # only a configured API is asked
    import urllib.request

    try:
        request = urllib.request.Request(f"{url.rstrip('/')}/health")  # noqa: S310 - http(s) as configured
        if key := os.environ.get("PREFECT_API_KEY"):
            request.add_header("Authorization", f"Bearer {key}")
        with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S):  # noqa: S310 - the same URL
            return
    except urllib.error.HTTPError:
        return  # something answers; Prefect itself says what it dislikes
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the Prefect API at {url} does not answer ({error}); start it, unset {API_VARIABLE}, "
            "or run without Prefect: --engine local"
        ) from error


def hush_prefect() -> None:
    """Keep Prefect from logging anything but errors and from reporting to anybody."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)


@contextmanager
def temporary_server(store_root: Path) -> Generator[str]:
    """Run a Prefect server of our own on the loopback interface while the block lasts.

    Its home and its log are under the store. The server ends with the block, however the block ends.

    Yields:
        The URL of its API, which the environment names as well.

    Raises:
        UndecidedError: It did not start in time; the message names its log and the setting.
    """
    home = store_root / "prefect"
    home.mkdir(parents=True, exist_ok=True)
    limit = float(os.environ.get(START_VARIABLE, SERVER_START_S))
    url = f"http://127.0.0.1:{_find_free_port()}/api"
    environment = {"PREFECT_HOME": str(home), "PREFECT_LOGGING_TO_API_ENABLED": "false"}
    with (home / "server.log").open("ab") as log, _changed_environment(environment):
        command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--no-ui"]
        server = subprocess.Popen(  # noqa: S603 - fixed arguments, no shell
            [*command, "--port", url.split(":")[2].removesuffix("/api")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            if not _wait_for(server, url, limit):
                raise UndecidedError(
                    f"the temporary Prefect server did not answer within {limit:g} s; its log is "
                    f"{log.name}; raise {START_VARIABLE}, or run without Prefect: --engine local"
                )
            with _changed_environment({API_VARIABLE: url}):
                yield url
        finally:
            _end(server)


def _wait_for(server: subprocess.Popen[bytes], url: str, limit: float) -> bool:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline and server.poll() is None:
        try:
            check_api(url)
        except ConfigError:
            time.sleep(POLL_EVERY_S)
        else:
            return True
    return False


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(END_WITHIN_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def _changed_environment(changes: dict[str, str]) -> Generator[None]:
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
