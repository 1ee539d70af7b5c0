"""A quick server for benchmarks: chat completions after a fixed time, with a limit of requests a second.

Usage: model_server.py LATENCY_S [LIMIT_PER_S [ANSWER]]; prints its port. `GET /count` tells what was asked,
`GET /limit/N` sets another limit, 0 none.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter

SAID = "The answer is forty-two, as every model knows. " * 4


def build_answer(text: str) -> bytes:
    """Return a chat completion that says a text."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 120, "completion_tokens": 40, "total_tokens": 160}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "usage": usage}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return json.dumps(head | {"choices": choices}).encode()


class Model:
    """What all connections share."""

    def __init__(self, latency_s: float, limit: int, said: str) -> None:
        self.latency_s, self.limit, self.data = latency_s, limit, build_answer(said)
        self.asked: Counter[bytes] = Counter()
        self.counts: Counter[str] = Counter()
        self.in_flight = self.most = 0
        self.window = self.taken = 0

    def take(self) -> bool:
        """Whether the limit of this second has room."""
        now = int(time.monotonic())
        if now != self.window:
            self.window, self.taken = now, 0
        self.taken += 1
        return not self.limit or self.taken <= self.limit

    def report(self) -> bytes:
        """Return what was asked so far."""
        told = {
            **self.counts,
            "most": self.most,
            "distinct": len(self.asked),
            "repeated": self.count_repeated(),
        }
        return json.dumps(told).encode()

    def count_repeated(self) -> int:
        """Return how many requests had come before with the same body."""
        return sum(count - 1 for count in self.asked.values())


class Connection(asyncio.Protocol):
    """One connection, requests one after the other."""

    def __init__(self, model: Model) -> None:
        self.model, self.held = model, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole."""
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end].lower()
            place = head.find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n")[0]) if place >= 0 else 0
            if len(self.held) < end + 4 + length:
                return
            body, line = self.held[end + 4 : end + 4 + length], self.held[:end].split(b"\r\n", 1)[0]
            self.held = self.held[end + 4 + length :]
            self.ask(line, body)

    def ask(self, line: bytes, body: bytes) -> None:
        """Answer one request, at once or after the latency."""
        model = self.model
        if line.startswith(b"GET /limit/"):
            model.limit = int(line.split(b"/")[2].split(b" ")[0])
        if line.startswith(b"GET"):
            self.write(b"200 OK", model.report())
            return
        model.counts["requests"] += 1
        if not model.take():
            model.counts["refused"] += 1
            self.write(b"429 Too Many Requests", b'{"error":{"message":"slow down"}}', b"retry-after: 1\r\n")
            return
        model.asked[body] += 1
        model.in_flight += 1
        model.most = max(model.most, model.in_flight)
        asyncio.get_running_loop().call_later(model.latency_s, self.answer)

    def answer(self) -> None:
        """Write the answer; the client may be gone."""
        self.model.in_flight -= 1
        self.model.counts["answered"] += 1
        self.write(b"200 OK", self.model.data)

    def write(self, status: bytes, body: bytes, more: bytes = b"") -> None:
        """Write one response."""
        if not self.transport.is_closing():
            head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\n%scontent-length: %d\r\n\r\n"
            self.transport.write(head % (status, more, len(body)) + body)


async def serve(latency_s: float, limit: int, said: str) -> None:
    """Serve until the process is ended."""
    model = Model(latency_s, limit, said)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(model), "127.0.0.1", 0, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    given = sys.argv[1:]
    limit_per_s = int(given[1]) if len(given) > 1 else 0
    asyncio.run(serve(float(given[0]), limit_per_s, given[2] if len(given) > 2 else SAID))
