"""What all tests share: a scripted server on the loopback interface and a key to look for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from assay.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OURS = ("ASSAY_", "PREFECT_", "OPENAI_", "AZURE_")  # variables of the user's shell that change what we do

settings.register_profile(
    "assay", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", settings.get_profile("assay"), max_examples=1_000)
settings.load_profile(os.environ.get("ASSAY_EXAMPLES", "assay"))  # `deep` looks longer

MARKED_KEY = "sk-marked-0123456789-secret"
Loopback = ModelServer


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def api_key(monkeypatch: pytest.MonkeyPatch) -> str:
    """Set a key for both kinds of servers, and nothing else of theirs."""
    for name in ("OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", MARKED_KEY)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", MARKED_KEY)
    return MARKED_KEY


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every test without the variables of whoever runs it."""
    for name in list(os.environ):
        if name.startswith(OURS) or name.upper().endswith("_PROXY"):
            monkeypatch.delenv(name)


class StoppableRun:
    """A run of four questions, one at a time, whose third answer comes after the signal."""

    def __init__(self, loopback: Loopback, folder: Path) -> None:
        self.store = folder / "store"
        self._reached, self._released = threading.Event(), threading.Event()
        loopback.script([], after={"reply": "x"}, match=[("q2", self._hold)])
        data = folder / "questions.jsonl"
        rows = (f'{{"id":"{n}","query":"q{n}","ground_truth":"x"}}\n' for n in range(4))
        data.write_text("".join(rows), encoding="utf-8")
        target = ["--model", "m", "--base-url", loopback.base_url, "--evaluators", "ExactMatch"]
        self._tokens = ["run", str(data), *target, "--concurrency", "1"]
        self._tokens += ["--store", str(self.store)]

    def _hold(self, _: dict[str, Any]) -> dict[str, Any]:
        self._reached.set()
        self._released.wait(60)
        return {"reply": "x"}

    def stop_by(
        self, number: int, *tokens: str, twice: bool = False, batch_size: int = 4, **variables: str
    ) -> tuple[int, str]:
        """Start the run, send it a signal once it waits, and return exit code and standard error.

        Args:
            number: The signal.
            *tokens: Further options.
            batch_size: Rows of a batch.
            twice: Send it again while the answer under way does not come.
            **variables: Of the environment.
        """
        command = [sys.executable, "-m", "assay", *self._tokens, "--batch-size", str(batch_size), *tokens]
        environment = os.environ | variables
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self._reached.wait(60)
        assert process.stderr is not None
        process.send_signal(number)
        said = ""
        for line in process.stderr:  # until it has taken note of the signal
            said += line
            if signal.Signals(number).name in line:
                break
        if twice:
            process.send_signal(number)
            process.wait(10)
        self._released.set()
        _, err = process.communicate(timeout=60)
        return process.returncode, said + err


@pytest.fixture
def stoppable(loopback: Loopback, api_key: str, tmp_path: Path) -> StoppableRun:
    assert api_key
    return StoppableRun(loopback, tmp_path)
