"""No key lands anywhere: field case F079."""

from __future__ import annotations

import json
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import assay
from assay.cli.app import run_app
from assay.errors import AssayError
from assay.testing.forms import build_chunks, build_completion

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    Call = Callable[..., tuple[int, str, str]]

KEY, OTHER, PASSWORD = "sk-test-DEADBEEF0123456789", "judge-CAFEBABE9876543210", "pw-FACADE1357924680"
MARKS = ("DEADBEEF", "CAFEBABE", "FACADE13")
DEBUG = ("--log-level", "debug")
TOML = """url = "{url}/hook?code=${{AGENT_CODE}}"
{stream}
[headers]
Authorization = "Bearer ${{AGENT_CODE}}"
"X-Desk" = "desk-7"
"X-Odd" = "Pass sk-odd-FACADE13579246801357"
[body]
question = "{{{{query}}}}"
options = {{ api_key = "FACADE13579246801357" }}
"""
MODES = (
    "refused",
    "html",
    "error",
    "page",
    "empty",
    "answer",
    "calls",
    "redirect",
    "limited",
    "reason",
    "sse",
)
FAILING = {"refused", "html", "redirect"}
AGENT = """import os
def raises(query):
    try:
        raise ValueError("cause " + os.environ["OPENAI_API_KEY"])
    except ValueError as error:
        raise RuntimeError("key " + os.environ["OPENAI_API_KEY"]) from error
def says(query):
    return {"output_text": "my key is " + os.environ["OPENAI_API_KEY"], "model": os.environ["JUDGE_KEY"]}
def hangs(query):
    import time
    time.sleep(0.1)
def score(response):
    raise RuntimeError("scoring " + os.environ["JUDGE_KEY"])
def reasons(response):
    return {"score": 1, "reason": "by " + os.environ["JUDGE_KEY"], "details": dict(os.environ)}
"""


class Echo(ThreadingHTTPServer):
    """Repeats the headers and the path of every request in its answer, in the way that the path begins with.

    Attributes:
        url: Its root.
        seen: What it repeated.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Repeater)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.seen: list[str] = []


class _Repeater(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        sent = self.rfile.read(length).decode()
        said = f"{[*self.headers.items()]} {self.path} {sent}"
        assert isinstance(self.server, Echo)
        self.server.seen.append(said)
        self._answer(self.path.split("/")[1], said)

    def do_GET(self) -> None:
        self.do_POST()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass

    def _answer(self, mode: str, said: str) -> None:
        fault: Any = {"error": {"message": said, "param": said}}
        completion = build_completion({"reply": said, "finish": said}, said)
        call = {"id": "1", "type": "function", "function": {"name": said, "arguments": said}}
        match mode:
            case "refused" | "limited":
                self._send({"refused": 401, "limited": 429}[mode], json.dumps(fault), retry_after="9999")
            case "html" | "page":
                self._send({"html": 404, "page": 200}[mode], f"<p>{said}</p>", content_type="text/html")
            case "error" | "empty":
                self._send(200, json.dumps(fault if mode == "error" else {"odd": said}))
            case "redirect":
                key = self.headers.get("authorization", self.headers.get("api-key", "")).split()[-1]
                self._send(307, "", location=f"/html/there?key={key}")
            case "reason":
                self._send(400, "", reason=said)
            case "sse" | "broken":
                events = build_chunks(completion) if mode == "sse" else [fault]
                text = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
                self._send(200, f"{text}data: [DONE]\n\n", content_type="text/event-stream")
            case _:
                step = {"reply": said} if mode == "answer" else {"reply": said, "tool_calls": [call]}
                self._send(200, json.dumps(build_completion({**step, "finish": said}, said)))

    def _send(self, status: int, text: str, *, reason: str | None = None, **headers: str) -> None:
        data = text.encode()
        self.send_response(status, reason)
        every = {"content_type": "application/json", "content_length": str(len(data)), **headers}
        for name, value in every.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("x-repeated", self.headers.get("authorization", ""))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def echo() -> Iterator[Echo]:
    with Echo() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AGENT_CODE", KEY)
    monkeypatch.setenv("JUDGE_KEY", OTHER)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text('{"id":"1","query":"q","response":"r","ground_truth":"r"}\n', encoding="utf-8")
    return path


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / "agent.py"
    path.write_text(AGENT, encoding="utf-8")
    return path


def assert_hidden(folder: Path, *texts: str, own: Sequence[Path] = ()) -> None:
    """Look for the keys in texts and in all files but the user's own; tables are unpacked."""
    for text in texts:
        assert [mark for mark in MARKS if mark in text] == [], text
    for path in folder.rglob("*"):
        if path.is_file() and path not in own:
            content = path.read_bytes() + str(path).encode()
            if path.suffix == ".parquet":
                content += str(pl.read_parquet(path).to_dicts()).encode()
            assert [mark for mark in MARKS if mark.encode() in content] == [], path


def name_target(kind: str, mode: str, echo: Echo, folder: Path) -> tuple[list[str], list[Path]]:
    """Return the options that ask the server, and the files with a key of the user's own."""
    url, stream = f"{echo.url}/{mode}", mode in {"sse", "broken"}
    if kind == "http":
        path = folder / "agent.toml"
        path.write_text(TOML.format(url=url, stream='stream = "sse"' if stream else ""), encoding="utf-8")
        return ["--target", f"http:{path}"], [path]
    tokens = ["--model", "gpt-visible", *(["--stream"] if stream else [])]
    if kind == "azure":
        return ["--target", "azure", "--base-url", url, *tokens], []
    if kind == "responses":
        tokens.append("--responses-api")
    return [*tokens, "--base-url", f"{url}/v1"], []


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *((kind, mode) for kind in ("openai", "http") for mode in (*MODES, "broken")),
        *((kind, mode) for kind in ("azure", "responses") for mode in ("refused", "answer", "sse")),
    ],
)
def test_what_a_server_repeats_is_hidden(
    kind: str, mode: str, echo: Echo, call: Call, data: Path, tmp_path: Path
) -> None:
    tokens, own = name_target(kind, mode, echo, tmp_path)
    tokens += [*DEBUG, "--log-file", str(tmp_path / "log.jsonl"), "--evaluators", "ExactMatch"]
    code, out, err = call("run", data, *tokens, "--format", "json")
    assert_hidden(tmp_path, out, err, own=own)
    assert KEY in echo.seen[-1] or mode == "redirect"
    assert echo.seen[-1].count("/there?key=") <= 1
    assert (code == 2) == (mode in FAILING), err
    if code == 2:
        assert ("agent.toml" if kind == "http" else "gpt-visible") in err
        assert echo.url in err


@pytest.mark.parametrize("mode", ["refused", "answer", "error", "reason"])
def test_what_the_server_of_a_judge_repeats_is_hidden(
    mode: str, echo: Echo, call: Call, data: Path, tmp_path: Path
) -> None:
    tokens = ["--judge", "gpt-judge", "--judge-base-url", f"{echo.url}/{mode}/v1"]
    tokens += ["--judge-api-key-env", "JUDGE_KEY", "--evaluators", "Coherence", *DEBUG]
    _, out, err = call("run", data, *tokens, "--format", "json")
    assert_hidden(tmp_path, out, err)
    assert OTHER in echo.seen[-1]
    assert KEY not in echo.seen[-1]


@pytest.mark.parametrize("function", ["raises", "says", "hangs"])
def test_what_a_function_tells_of_the_environment_is_hidden(
    function: str, call: Call, data: Path, agent: Path, tmp_path: Path
) -> None:
    tokens = ["--target", f"python:{agent}:{function}", "--timeout", "0.05", "--evaluators", "ExactMatch"]
    _, out, err = call("run", data, *tokens, *DEBUG, "--format", "json")
    assert_hidden(tmp_path, out, err)
    _, out, err = call("show", "latest", "--failed", *DEBUG, "--format", "json")
    assert_hidden(tmp_path, out, err)
    assert {"raises": "RuntimeError: key ***", "says": "my key is ***", "hangs": "timeout"}[function] in out


@pytest.mark.parametrize("command", ["echo $OPENAI_API_KEY >&2; exit 1", "echo $OPENAI_API_KEY"])
def test_what_a_program_tells_of_the_environment_is_hidden(
    command: str, call: Call, data: Path, tmp_path: Path
) -> None:
    _, out, err = call(
        "run", data, "--target", f"cmd:sh -c '{command}'", "--evaluators", "ExactMatch", *DEBUG
    )
    assert_hidden(tmp_path, out, err)
    assert pl.DataFrame(assay.get_run(store=tmp_path / "store").samples)["request_json"].item() is not None


@pytest.mark.parametrize("function", ["score", "reasons"])
def test_what_an_evaluator_of_the_users_own_tells_is_hidden(
    function: str, call: Call, data: Path, agent: Path, tmp_path: Path
) -> None:
    _, out, err = call("run", data, "--evaluator", f"{agent}:{function}", *DEBUG)
    scores = assay.get_run(store=tmp_path / "store").scores
    assert_hidden(tmp_path, out, err, str(scores.to_dicts()))
    assert "***" in str(scores.to_dicts())


def test_no_command_shows_a_key(echo: Echo, call: Call, data: Path, tmp_path: Path) -> None:
    target = ["--model", "m", "--base-url", f"{echo.url}/answer/v1", "--evaluators", "ExactMatch"]
    call("run", data, *target)
    lines = [["run", data, *target, "--reuse", "all"], ["run", "--resume", "latest"], ["plan", data, *target]]
    lines += [["runs"], ["show", "latest"], ["show", "latest", "--failed"], ["query", "from samples"]]
    lines += [["query", "from runs"], ["query", f"from {KEY}"], ["evaluators"]]
    lines += [["evaluators", KEY], ["validate", data], ["show", KEY]]
    for place, line in enumerate(lines):
        out, err = call(*line, *DEBUG, "--format", ("table", "json", "csv", "md")[place % 4])[1:]
        assert_hidden(tmp_path, out, err)
    for line in (["convert", data, tmp_path / "o.csv"], ["sample", data, "-n", "1"], ["convert", KEY, "x"]):
        assert_hidden(tmp_path, *call(*line)[1:])
    assert assay.get_run(store=tmp_path / "store").samples["output_text"].str.contains(r"Bearer \*\*\*").all()


@pytest.mark.parametrize(
    "tokens",
    [
        ["--model", KEY],
        ["--model", "sk-proj-FACADE1357924680abcdef"],
        ["--model", "m", "--param", f"user={KEY}"],
        ["--model", "m", "--param", KEY],
        ["--model", "m", "--param", "api_key=FACADE1357924680"],
        ["--model", "m", "--api-key-env", KEY],
        ["--model", "m", "--base-url", f"https://u:{KEY}@h/v1"],
        ["--model", "m", "--base-url", f"https://u:{PASSWORD}@h/v1"],
        ["--model", "m", "--base-url", f"https://h/v1?api-key={PASSWORD}"],
        ["--judge", "m", "--judge-base-url", f"https://h/{KEY}/v1"],
        ["--judge", KEY],
        ["--model", "m", "--system", f"The key is {KEY}."],
        ["--model", "m", "--label", f"k={KEY}"],
        ["--model", "m", "--name", KEY],
        ["--model", "m", "--option", f"{KEY}"],
        ["--evaluators", KEY],
        ["--target", KEY],
        ["--target", f"cmd:cat {KEY}"],
        ["--target", f"python:{KEY}"],
        [f"--api-key={KEY}"],
        ["--limit", KEY],
        ["--resume", "latest", "--name", KEY],
        ["--resume", KEY],
        ["--reuse", KEY],
        ["--where", f"x = '{KEY}'"],
        ["--engine", KEY],
    ],
    ids=str,
)
def test_a_pasted_key_is_refused_and_not_repeated(
    tokens: list[str], data: Path, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = run_app(["run", str(data), *tokens, *DEBUG])
    except SystemExit as stopped:  # the parser ends by itself
        code = int(str(stopped.code))
    out, err = capsys.readouterr()
    assert code in {1, 2}, err
    assert_hidden(store, out, err)


@pytest.mark.parametrize("line", [f'api_key = "{KEY}"', f'base_url = "https://h/{KEY}"', f'kind = "{KEY}"'])
def test_a_key_in_the_project_file_is_refused(line: str, call: Call, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "assay.toml"
    path.write_text(f'[targets.desk]\nmodel = "m"\n{line}\n', encoding="utf-8")
    code, out, err = call("run", data, "--target", "desk", "--config", path, *DEBUG)
    assert code == 2
    assert_hidden(tmp_path, out, err, own=[path])
    assert "[targets.desk]: " in err


def test_a_key_in_a_prompt_template_is_refused(call: Call, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(f"Use {KEY}: {{{{item.query}}}}", encoding="utf-8")
    code, out, err = call("run", data, "--model", "m", "--prompt-template", path, *DEBUG)
    assert code == 2
    assert_hidden(tmp_path, out, err, own=[path])


@pytest.mark.parametrize("mode", ["refused", "answer", "html"])
def test_what_the_url_of_the_environment_holds_is_hidden(
    mode: str, echo: Echo, call: Call, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = echo.url.removeprefix("http://")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://{host}/{mode}/v1?subscription-key={PASSWORD}")
    _, out, err = call("run", data, "--model", "m", "--evaluators", "ExactMatch", *DEBUG)
    assert_hidden(tmp_path, out, err)
    assert PASSWORD in echo.seen[-1]
    for end in ("@h/v1", "/x@h/v1", "#x@h/v1"):
        monkeypatch.setenv("OPENAI_BASE_URL", f"https://u:{PASSWORD}{end}")
        code, out, err = call("run", data, "--model", "m", "--evaluators", "ExactMatch", *DEBUG)
        assert code == 2
        assert_hidden(tmp_path, out, err)
        assert "https://h/v1" in err


def test_no_exception_of_the_python_api_shows_a_key(echo: Echo, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(TOML.format(url=f"{echo.url}/refused", stream=""), encoding="utf-8")
    (tmp_path / "broken.py").write_text(f"{AGENT}\nraises('q')\n", encoding="utf-8")
    settings: list[dict[str, Any]] = [{"target": f"python:{tmp_path / 'broken.py'}:says"}]
    settings += [{"model": "m", "base_url": f"{echo.url}/refused/v1"}, {"target": f"http:{path}"}]
    settings += [{"model": KEY}, {"model": "m", "params": {"x": [KEY]}}, {"target": f"cmd:{KEY}"}]
    for each in settings:
        with pytest.raises(AssayError) as caught:
            assay.run(data, evaluators="ExactMatch", store=tmp_path / "s", **each)
        error = caught.value
        told = "".join(traceback.format_exception(error))
        assert_hidden(tmp_path / "s", str(error), repr(error), repr(error.__cause__), told)


def test_what_is_no_secret_stays_visible(
    echo: Echo, call: Call, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "lm-studio")  # what servers without keys are given, by convention
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "desk-2026-01@example.com")
    monkeypatch.setenv("AGENT_KEY_FILE", str(data))
    tokens = ["--model", "m1", "--base-url", f"{echo.url}/answer/v1", "--evaluators", "ExactMatch"]
    said = f"lm-studio desk-2026-01@example.com {data}"
    assert call("run", data, *tokens, "--system", said)[0] == 0
    run = assay.get_run(store=tmp_path / "store")
    assert "Bearer lm-studio" in run.samples["output_text"].item()
    assert said in run.samples["output_text"].item()
    assert echo.url in str(run.info["config_json"])
