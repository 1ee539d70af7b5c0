"""A scripted server on the loopback interface that has files and batch jobs beside its model."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections import deque
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from assay.testing.forms import build_completion, build_embeddings, build_response
from assay.testing.server import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from assay.testing.server import Connection, Step

    Json = dict[str, Any]

_ROOT = re.compile(r"^(?:/v1|/openai/v1|/openai)(?=/(?:files|batches|chat|responses|deployments))")
_FILE = re.compile(rb'name="file"[^\r]*\r\n(?:[^\r\n]+\r\n)*\r\n(.*)\r\n--', re.DOTALL)
_EXPIRED = {"code": "batch_expired", "message": "not executed before the completion window expired"}
_CANCELLED = {"code": "batch_cancelled", "message": "not executed before the batch was cancelled"}
_UNDONE: Mapping[str, Json] = {"expired": _EXPIRED, "cancelled": _CANCELLED}
ENDED = ("completed", "failed", "expired", "cancelled")


class BatchServer(ModelServer):
    """Does jobs as soon as they are made, every line of them by one step, as a request of a `ModelServer`.

    A step may also be `{"error": {"code": …}}`, a line that fails without an answer. Each job takes one plan:

    - `"status"`: how it ends; `completed` is usual
    - `"answered"`: how many of its lines are answered; the others fail as those of an expired or cancelled
      job do, or stand in neither file
    - `"errors"`: of a job that fails as a whole, objects with `code`, `message` and `line`
    - `"edit"`: a function from the lines of its output file to those that are sent, such as one that doubles
      or tears some
    - `"held"`: True: it stays `in_progress` until `release`
    - `"refuse"`: a status, the job is not made; `"cut"`: True, it is made, and the connection is closed
      without an answer

    Attributes:
        files: Content by id.
        jobs: The jobs, oldest first, as they end.
        plans: What is still to come of the plans.
        states: What is told of the state of a file, one per answer that tells it; `processed` beyond these.
    """

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        after: Step | None = None,
        match: Iterable[tuple[str, Step]] = (),
        key: str | None = None,
        plans: Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Take a free port; arguments as those of `ModelServer`, and the plans of the jobs in order."""
        super().__init__(steps, after=after, match=match, key=key)
        self.files: dict[str, bytes] = {}
        self.jobs: list[Json] = []
        self.plans = deque(plans)
        self.states: deque[str] = deque()
        self._held: set[str] = set()
        self._jobs_lock = threading.Lock()

    def finish_request(self, request: Connection, client_address: object) -> None:
        """Answer the requests of a connection."""
        _BatchHandler(request, client_address, self)

    def release(self) -> None:
        """Let all jobs end that are held."""
        self._held.clear()

    def keep_file(self, content: bytes) -> Json:
        """Keep a file, and describe it."""
        with self._jobs_lock:
            file_id = f"file-{len(self.files) + 1}"
            self.files[file_id] = content
        return self.show_file(file_id)

    def show_file(self, file_id: str) -> Json:
        """Describe a file."""
        return {
            "id": file_id,
            "object": "file",
            "bytes": len(self.files[file_id]),
            "created_at": 1,
            "filename": "requests.jsonl",
            "purpose": "batch",
            "status": self.states.popleft() if self.states else "processed",
        }

    def make_job(self, asked: Json) -> tuple[Json, Mapping[str, Any]]:
        """Make a job, do it, and return it with its plan."""
        plan: Mapping[str, Any] = self.plans.popleft() if self.plans else {}
        if "refuse" in plan:
            return {}, plan
        entries = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        output, failed = self._work(entries, plan)
        job: Json = {
            "id": f"batch_{len(self.jobs) + 1}",
            "object": "batch",
            "endpoint": asked["endpoint"],
            "input_file_id": asked["input_file_id"],
            "completion_window": asked["completion_window"],
            "created_at": 4_000_000_000,
            "metadata": asked.get("metadata"),
            "status": plan.get("status", "completed"),
            "errors": {"object": "list", "data": plan["errors"]} if "errors" in plan else None,
            "output_file_id": self._keep_lines(plan.get("edit", list)(output)),
            "error_file_id": self._keep_lines(failed),
            "request_counts": {"total": len(entries), "completed": len(output), "failed": len(failed)},
        }
        if plan.get("held"):
            self._held.add(job["id"])
        self.jobs.append(job)
        return job, plan

    def show_job(self, job: Json) -> Json:
        """Return a job as it is now."""
        if job["id"] not in self._held:
            return job
        return job | {"status": "in_progress", "output_file_id": None, "error_file_id": None}

    def list_jobs(self, after: str | None, limit: int) -> Json:
        """Return a page of all jobs, newest first."""
        newest = [self.show_job(job) for job in reversed(self.jobs)]
        names = [job["id"] for job in newest]
        start = names.index(after) + 1 if after in names else 0
        page = newest[start : start + limit]
        return {"object": "list", "data": page, "has_more": start + limit < len(newest)}

    def _work(self, entries: list[Json], plan: Mapping[str, Any]) -> tuple[list[str], list[str]]:
        """Do the lines of a job as it is planned, and return those of its output and error file."""
        status = plan.get("status", "completed")
        count = 0 if status == "failed" else plan.get("answered", len(entries))
        lines = [self._do(entry) for entry in entries[:count]]
        if status in _UNDONE:
            lines += [_fail(entry, _UNDONE[status]) for entry in entries[count:]]
        written: tuple[list[str], list[str]] = ([], [])
        for line in lines:
            written[not _is_answer(line)].append(json.dumps(line) + "\n")
        return written

    def _do(self, entry: Json) -> Json:
        body = entry["body"]
        step = self.begin({"path": entry["url"], "body": body, "headers": {}})
        self.end()
        if "error" in step:
            return _fail(entry, step["error"])
        if "status" in step:
            return _answer(entry, step["status"], step["body"])
        return _answer(entry, 200, _build(entry["url"], step, body))

    def _keep_lines(self, lines: list[str]) -> str | None:
        return self.keep_file("".join(lines).encode())["id"] if lines else None


def _build(path: str, step: Mapping[str, Any], body: Json) -> Json:
    if path.endswith("/embeddings"):
        return build_embeddings(step, body)
    build = build_response if path.endswith("/responses") else build_completion
    return build(step, body.get("model", ""))


def _answer(entry: Json, status: int, body: object) -> Json:
    response = {"status_code": status, "request_id": "req_1", "body": body}
    return {"id": "batch_req_1", "custom_id": entry["custom_id"], "response": response, "error": None}


def _fail(entry: Json, error: Json) -> Json:
    return {"id": "batch_req_1", "custom_id": entry["custom_id"], "response": None, "error": error}


def _is_answer(line: Json) -> bool:
    return bool(line["response"]) and line["response"]["status_code"] == HTTPStatus.OK


class _BatchHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Show a job, the jobs, or a file."""
        server, parts = self._server, self._split()
        match parts:
            case _ if not self._knows_key():
                self._send(401, {"error": {"message": "wrong key"}})
            case ["files", file_id, "content"] if file_id in server.files:
                self._send(200, server.files[file_id])
            case ["files", file_id] if file_id in server.files:
                self._send(200, server.show_file(file_id))
            case ["batches"]:
                asked = parse_qs(urlsplit(self.path).query)
                after, limit = asked.get("after", [None])[0], int(asked.get("limit", ["20"])[0])
                self._send(200, server.list_jobs(after, limit))
            case ["batches", job_id] if found := [job for job in server.jobs if job["id"] == job_id]:
                self._send(200, server.show_job(found[0]))
            case _:
                self._send(404, {"error": {"message": f"no {'/'.join(parts)}"}})

    def do_POST(self) -> None:
        """Take a file, make a job, or answer one request of a model."""
        content, parts = self.rfile.read(int(self.headers["content-length"])), self._split()
        if not self._knows_key():
            self._send(401, {"error": {"message": "wrong key"}})
        elif parts == ["files"]:
            found = _FILE.search(content)
            self._send(200, self._server.keep_file(found.group(1) if found else b""))
        elif parts == ["batches"]:
            self._make(json.loads(content))
        else:
            body = json.loads(content)
            step = self._server.begin({"path": self.path, "body": body, "headers": {}})
            self._server.end()
            answer = step["body"] if "status" in step else _build(urlsplit(self.path).path, step, body)
            self._send(step.get("status", 200), answer)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    @property
    def _server(self) -> BatchServer:
        if not isinstance(self.server, BatchServer):
            raise TypeError("this handler belongs to a BatchServer")
        return self.server

    def _make(self, asked: Json) -> None:
        job, plan = self._server.make_job(asked)
        if "refuse" in plan:
            self._send(plan["refuse"], {"error": {"message": plan.get("message", "refused")}})
        elif plan.get("cut"):
            self.close_connection = True
        else:
            self._send(200, self._server.show_job(job) | {"status": "validating"})

    def _split(self) -> list[str]:
        return _ROOT.sub("", urlsplit(self.path).path).strip("/").split("/")

    def _knows_key(self) -> bool:
        told = self.headers.get("api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")
        return self._server.key in {None, told}

    def _send(self, status: int, content: object) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        kind = "application/octet-stream" if isinstance(content, bytes) else "application/json"
        with contextlib.suppress(OSError):  # the client may have hung up
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
