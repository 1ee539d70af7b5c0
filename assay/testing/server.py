"""A scripted server on the loopback interface that speaks as a model does."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from urllib.parse import urlsplit

from assay.testing.forms import (
    build_chunks,
    build_completion,
    build_embeddings,
    build_events,
    build_response,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    Json = dict[str, Any]
    Connection = socket.socket | tuple[bytes, socket.socket]

Step: TypeAlias = "Mapping[str, Any] | Callable[[dict[str, Any]], Mapping[str, Any]]"

_ROUTE = re.compile(
    r"(?:/v1|/openai/v1|/openai/deployments/[^/]+)/(chat/completions|embeddings)"
    r"|(?:/v1|/openai/v1|/openai)/(responses)"
)
_SECRET_HEADERS = ("authorization", "api-key")
_POLL_S = 0.01  # how often the thread of a server looks whether it is to end


class ModelServer(ThreadingHTTPServer):
    """Answers chat completions, responses and embeddings, plain or as a stream, at OpenAI and Azure paths.

    Every request takes one step. A step is one of

    - `{"reply": text or None, "usage": {…}, "finish": "stop", "tool_calls": […], "refusal": text}`: an
      answer in whatever form was asked for, each key optional; `output` holds items of a response as they are
    - `{"embeddings": [[…], …]}`: vectors; without them each text has one of its own
    - `{"status": 503, "body": {…} or text, "headers": {…}}`: any other answer
    - `{"sse": [{…}, …]}`: the events of a stream as they are; `"done": False` leaves out the last `[DONE]`
    - `{"close": True}`: no answer; in a stream, `"cut": 3` breaks the connection after three events
    - a function of the request body that returns one of these

    `"delay"` seconds go with any of them.

    Attributes:
        base_url: URL for OpenAI clients.
        azure_url: URL of the pretended Azure resource.
        requests: Path, body and harmless headers of every request, in order of arrival.
        connections: How many were opened so far.
        most_in_flight: Highest number of requests that were being answered at one time.
        key: When set, requests with another key get status 401.

    Example:
        >>> with ModelServer([{"reply": "4"}], after={"reply": "5"}) as server:
        ...     run = assay.run("questions.jsonl", model="any", base_url=server.base_url)  # doctest: +SKIP
    """

    daemon_threads = False

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        after: Step | None = None,
        match: Iterable[tuple[str, Step]] = (),
        key: str | None = None,
    ) -> None:
        """Take a free port; nothing is answered before `start`.

        Args:
            steps: One per request, in order of arrival.
            after: For requests beyond the steps; None: the reply `ok`.
            match: For requests whose body holds the text; these take no step.
            key: The only key that is accepted; None: any.
        """
        super().__init__(("127.0.0.1", 0), _Handler)
        self.azure_url = f"http://127.0.0.1:{self.server_address[1]}"
        self.base_url = f"{self.azure_url}/v1"
        self.requests: list[Json] = []
        self.connections = 0
        self.most_in_flight = 0
        self.key = key
        self.stopping = threading.Event()
        self._in_flight = 0
        self._lock = threading.Lock()
        self._open: set[Connection] = set()
        self._thread: threading.Thread | None = None
        self.script(steps, after, match)

    def script(
        self, steps: Iterable[Step], after: Step | None = None, match: Iterable[tuple[str, Step]] = ()
    ) -> None:
        """Set what is answered from now on; arguments as those of the server."""
        self._steps = deque(steps)
        self._after: Step = {"reply": "ok"} if after is None else after
        self._match = list(match)

    def start(self) -> None:
        """Answer from a thread until `stop`."""
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": _POLL_S})
        self._thread.start()

    def stop(self) -> None:
        """End every connection, thread and the server itself."""
        self.stopping.set()
        if self._thread is not None:
            self.shutdown()
        for connection in list(self._open):
            if isinstance(connection, socket.socket):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def begin(self, request: Json) -> Mapping[str, Any]:
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

    def process_request(self, request: Connection, client_address: object) -> None:
        """Remember the connection, so that `stop` can end it."""
        self.connections += 1
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Connection) -> None:
        """Forget a connection that ends."""
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Connection, client_address: object) -> None:
        """Say nothing of a client that was killed between two requests."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes

    def do_POST(self) -> None:
        """Answer one request."""
        server = self._server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {k.lower(): v for k, v in self.headers.items() if k.lower() not in _SECRET_HEADERS}
        step = server.begin({"path": self.path, "body": body, "headers": headers})
        try:
            server.stopping.wait(step.get("delay", 0))
        finally:
            server.end()
        key = self.headers.get("api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")
        route = _ROUTE.fullmatch(urlsplit(self.path).path)
        kind = route.group(1) or route.group(2) if route else ""
        if not kind:
            step = {"status": 404, "body": {"error": {"message": f"no route {self.path}"}}}
        elif server.key not in {None, key}:
            step = {"status": 401, "body": {"error": {"message": "wrong key"}}}
        with contextlib.suppress(OSError):  # the client may have hung up
            self._answer(step, kind, body)

    @property
    def _server(self) -> ModelServer:
        if not isinstance(self.server, ModelServer):
            raise TypeError("this handler belongs to a ModelServer")
        return self.server

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def _answer(self, step: Mapping[str, Any], kind: str, body: Json) -> None:
        if step.get("close"):
            self.close_connection = True
            return
        if "sse" in step:
            self._send_events(step["sse"], step)
            return
        if "status" in step:
            self._send_body(step["body"], step)
            return
        model = body.get("model", "")
        if kind == "embeddings":
            self._send_body(build_embeddings(step, body), step)
            return
        content = build_response(step, model) if kind == "responses" else build_completion(step, model)
        if not body.get("stream"):
            self._send_body(content, step)
            return
        events = build_events(content) if kind == "responses" else build_chunks(content)
        self._send_events(events, {"done": kind != "responses", **step})

    def _send_body(self, content: object, step: Mapping[str, Any]) -> None:
        data = (content if isinstance(content, str) else json.dumps(content)).encode()
        self.send_response(step.get("status", 200))
        kind = "text/html" if isinstance(content, str) else "application/json"
        headers = {"content-type": kind, "content-length": str(len(data)), **step.get("headers", {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _send_events(self, events: Sequence[Json], step: Mapping[str, Any]) -> None:
        """Send events, each in a piece of its own, to the end or to where the connection is cut."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        kinds = [f"event: {event['type']}\n" if "type" in event else "" for event in events]
        texts = [f"{kind}data: {json.dumps(event)}\n\n" for kind, event in zip(kinds, events, strict=True)]
        texts += ["data: [DONE]\n\n"] if step.get("done", True) else []
        for text in texts[: step.get("cut")]:
            data = text.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        if "cut" in step:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")
