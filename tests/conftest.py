"""What all tests share: a scripted server on the loopback interface and a key to look for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

OURS = ("ASSAY_", "PREFECT_", "OPENAI_", "AZURE_")  # variables of the user's shell that change what we do

settings.register_profile(
    "assay", deadline=None, max_examples=15, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("deep", settings.get_profile("assay"), max_examples=1_000)
settings.load_profile(os.environ.get("ASSAY_EXAMPLES", "assay"))  # `deep` looks longer

MARKED_KEY = "sk-marked-0123456789-secret"
ROUTE = re.compile(r"(/v1|/openai/deployments/[^/]+)/chat/completions")
SECRET_HEADERS = {"authorization", "api-key"}
Step: TypeAlias = "Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]"


class Loopback(ThreadingHTTPServer):
    """A scripted server that speaks chat completions in the OpenAI and the Azure form.

    Steps: {"reply": text or None, "usage": {}, "finish": "stop", "tool_calls": [], "refusal": text},
    {"status": 503, "body": {} or text, "headers": {}}, {"close": True}; "delay" seconds go with any.
    A step may be a function of the request body that returns one.

    Attributes:
        base_url: URL for OpenAI clients.
        azure_url: URL of the pretended Azure resource.
        requests: Path, body and harmless headers of every request, in order of arrival.
        most_in_flight: Highest number of requests that were being answered at one time.
        key: When set, requests with another key get status 401.
    """

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.azure_url = f"http://127.0.0.1:{self.server_address[1]}"
        self.base_url = f"{self.azure_url}/v1"
        self.requests: list[dict[str, Any]] = []
        self.most_in_flight = 0
        self.key: str | None = None
        self.stopping = threading.Event()
        self._in_flight = 0
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self.script([])

    def script(
        self, steps: Iterable[Step], after: Step | None = None, match: Iterable[tuple[str, Step]] = ()
    ) -> None:
        """Set what is answered.

        Args:
            steps: One per request, in order of arrival.
            after: For requests beyond the steps; None: the reply `ok`.
            match: For requests whose body holds the text; these take no step.
        """
        self._steps = deque(steps)
        self._after: Step = {"reply": "ok"} if after is None else after
        self._match = list(match)

    def begin(self, request: dict[str, Any]) -> Mapping[str, Any]:
        """Record a request and choose its step."""
        body = request["body"]
        text = json.dumps(body, ensure_ascii=False)
        with self._lock:
            self.requests.append(request)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            step = next((step for part, step in self._match if part in text), None)
            if step is None:
                step = self._steps.popleft() if self._steps else self._after
        return step(body) if callable(step) else step

    def end(self) -> None:
        """Note that a request is about to be answered."""
        with self._lock:
            self._in_flight -= 1

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember the connection, so that `stop` can end it."""
        self._sockets.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that ends."""
        self._sockets.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that was killed between two requests."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """End every connection, thread and the server itself."""
        self.stopping.set()
        self.shutdown()
        for connection in list(self._sockets):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes

    def do_POST(self) -> None:
        assert isinstance(self.server, Loopback)
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {k.lower(): v for k, v in self.headers.items() if k.lower() not in SECRET_HEADERS}
        step = self.server.begin({"path": self.path, "body": body, "headers": headers})
        try:
            self.server.stopping.wait(step.get("delay", 0))
        finally:
            self.server.end()
        key = self.headers.get("api-key") or self.headers["authorization"].removeprefix("Bearer ")
        if not ROUTE.fullmatch(urlsplit(self.path).path):
            step = {"status": 404, "body": {"error": {"message": f"no route {self.path}"}}}
        elif self.server.key not in {None, key}:
            step = {"status": 401, "body": {"error": {"message": "wrong key"}}}
        with contextlib.suppress(OSError):  # the client may have hung up
            self._answer(step, body["model"])

    def _answer(self, step: Mapping[str, Any], model: str) -> None:
        if step.get("close"):
            self.close_connection = True
            return
        content: Any = step["body"] if "status" in step else _complete(step, model)
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(step.get("status", 200))
        kind = "text/html" if isinstance(content, str) else "application/json"
        headers = {"content-type": kind, "content-length": str(len(data)), **step.get("headers", {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Say nothing."""


def _complete(step: Mapping[str, Any], model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": step.get("reply")}
    message |= {name: step[name] for name in ("tool_calls", "refusal") if name in step}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": step.get("finish", "stop")}],
        "usage": step.get("usage", {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}),
    }


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join()


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
    """A run of four questions in two batches whose third answer never comes."""

    def __init__(self, loopback: Loopback, folder: Path) -> None:
        self.store = folder / "store"
        self._reached = threading.Event()
        loopback.script([], after={"reply": "x"}, match=[("q2", self._hold)])
        data = folder / "questions.jsonl"
        rows = (f'{{"id":"{n}","query":"q{n}","ground_truth":"x"}}\n' for n in range(4))
        data.write_text("".join(rows), encoding="utf-8")
        target = ["--model", "m", "--base-url", loopback.base_url, "--evaluators", "ExactMatch"]
        self._tokens = ["run", str(data), *target, "--batch-size", "2", "--store", str(self.store)]

    def _hold(self, _: dict[str, Any]) -> dict[str, Any]:
        self._reached.set()
        return {"reply": "x", "delay": 60}

    def stop_by(self, number: int, *tokens: str, **variables: str) -> tuple[int, str]:
        """Start the run, send it a signal once it waits, and return exit code and standard error."""
        command = [sys.executable, "-m", "assay", *self._tokens, *tokens]
        environment = os.environ | variables
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self._reached.wait(60)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        return process.returncode, err


@pytest.fixture
def stoppable(loopback: Loopback, api_key: str, tmp_path: Path) -> StoppableRun:
    assert api_key
    return StoppableRun(loopback, tmp_path)
