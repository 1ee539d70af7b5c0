from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from assay.api import Run, get_run
from assay.cli.app import run_app
from assay.engine.prefect_api import START_VARIABLE, temporary_server
from assay.testing import ModelServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import StoppableRun

pytestmark = pytest.mark.xdist_group("prefect")

ROOT = Path(__file__).parents[2]
DATA = ROOT / "data/foundry/support.jsonl"
MARK = "Expresszuschlag"  # a word of the dataset, to look for where no data may be
KEY = "sk-secret-of-the-flow-0123456789"
PARAMETERS_BELOW = 10_000
TOKENS = ("--evaluators", "ExactMatch,PartialMatch", "--batch-size", "80")
RUNS = """
import asyncio, json, sys
from pathlib import Path
from flows.evaluate import evaluate

root, data, codes = Path(sys.argv[1]), sys.argv[2], {"scheduled": 0}
print("begin scheduled", file=sys.stderr)
asyncio.run(evaluate(config=str(root / "config.json")))  # first, as a schedule finds it

from assay.cli.app import run_app

def run(name, *tokens):
    print(f"begin {name}", file=sys.stderr, flush=True)
    codes[name] = run_app(["run", *tokens, "--name", name, "--store", str(root / "store")])

run("unasked", data, "--evaluators", "ExactMatch", "--limit", "2")
run("batches", data, *json.loads(sys.argv[3]), "--engine", "prefect", "-q")
for answer in "xy":
    edited = root / "d.jsonl"
    edited.write_text(json.dumps({"id": "1", "response": answer, "ground_truth": "x"}), encoding="utf-8")
    run(answer, str(edited), "--evaluators", "ExactMatch", "--engine", "prefect", "-q")
asked = ["--model", "m", "--base-url", sys.argv[4], "--evaluators", "ExactMatch", "--log-level", "debug"]
run("refused", data, *asked, "--limit", "1", "--engine", "prefect")
(root / "told.json").write_text(json.dumps(codes), encoding="utf-8")
"""


def start(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    ours = ("PREFECT", "ASSAY")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, env=clean | variables, check=False, timeout=240
    )


def assay(*tokens: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return start("-m", "assay", *tokens, **variables)


def ask(api: str, path: str, **body: Any) -> list[dict[str, Any]]:
    where = urlsplit(api)
    connection = HTTPConnection(where.netloc, timeout=30)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", f"{where.path}/{path}/filter", json.dumps(body), headers)
    try:
        return json.load(connection.getresponse())
    finally:
        connection.close()


def find_servers(home: Path) -> list[str]:
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"PREFECT_HOME={home}".encode() in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


def count_flow_runs(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        (count,) = connection.execute("select count(*) from flow_run").fetchone()
    return count


@dataclass(frozen=True)
class Server:
    """A Prefect server.

    Attributes:
        url: Its API.
        home: Where it keeps everything.
        migrated: Copy of its database from before the first run.
    """

    url: str
    home: Path
    migrated: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    root = tmp_path_factory.mktemp("server")
    migrated = root / "migrated.db"
    with temporary_server(root) as url:
        database = sqlite3.connect(root / "prefect/prefect.db")
        with closing(database), closing(sqlite3.connect(migrated)) as copy:
            database.backup(copy)  # whole, although the server is at work
        yield Server(url, root / "prefect", migrated)


@pytest.fixture(scope="module")
def done(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Run, str]]:
    """Run what ends by itself in one process: importing Prefect takes longer than a run.

    Returns:
        By name, each run and what it wrote to standard error.
    """
    root = tmp_path_factory.mktemp("runs")
    config, told = root / "config.json", root / "told.json"
    settings = {"name": "scheduled", "datasets": [str(DATA)], "evaluators": ["ExactMatch"]}
    settings |= {"store": str(root / "store")}
    config.write_text(json.dumps(settings), encoding="utf-8")
    variables = {"PREFECT_API_URL": server.url, "PREFECT_LOGGING_LEVEL": "ERROR", "OPENAI_API_KEY": KEY}
    refused = {"status": 401, "body": {"error": {"message": f"wrong key {KEY}"}}}
    with ModelServer(after=refused) as model:
        ended = start("-c", RUNS, root, DATA, json.dumps(TOKENS), model.base_url, **variables)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr.partition("begin refused")[0]
    codes = json.loads(told.read_text(encoding="utf-8"))
    assert codes.pop("refused") == 2, ended.stderr
    assert set(codes.values()) == {0}, ended.stderr
    assert KEY not in ended.stderr + ended.stdout
    errors = dict(part.split("\n", 1) for part in ended.stderr.split("begin ")[1:])
    return {name: (get_run(name, store=root / "store"), errors[name]) for name in codes}


def test_one_flow_run_one_task_run_per_batch_and_the_tables_of_the_local_driver(
    server: Server, done: dict[str, tuple[Run, str]], tmp_path: Path
) -> None:
    run, _ = done["batches"]
    (flow_run,) = ask(server.url, "flow_runs", flow_runs={"id": {"any_": [run.info["flow_run_id"]]}})
    assert (flow_run["state_type"], flow_run["deployment_id"]) == ("COMPLETED", None)
    tasks = ask(server.url, "task_runs", flow_runs={"id": {"any_": [flow_run["id"]]}})
    assert sorted(task["name"] for task in tasks) == [f"batch-{n}" for n in range(4)]
    assert {task["state_type"] for task in tasks} == {"COMPLETED"}
    assert len(json.dumps([flow_run, tasks])) < PARAMETERS_BELOW * 5
    assert len(json.dumps(flow_run["parameters"])) < PARAMETERS_BELOW
    assert MARK in DATA.read_text(encoding="utf-8")
    assert MARK not in json.dumps([flow_run, tasks], ensure_ascii=False)
    assert run_app(["run", str(DATA), *TOKENS, "--store", str(tmp_path), "--engine", "local", "-q"]) == 0
    local = get_run(store=tmp_path)
    assert local.info["engine"] == "local"
    key = ["item_id", "evaluator"]
    assert run.scores.drop("run_id").sort(key).equals(local.scores.drop("run_id").sort(key))
    assert run.samples.drop("run_id").equals(local.samples.drop("run_id"))
    assert run.summary.drop("run_id").equals(local.summary.drop("run_id"))


def test_neither_the_database_of_prefect_nor_a_log_holds_a_key(
    server: Server, done: dict[str, tuple[Run, str]]
) -> None:
    assert done
    assert ask(server.url, "flow_runs", flow_runs={"state": {"type": {"any_": ["FAILED", "CRASHED"]}}})
    files = [path for path in server.home.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_an_edited_dataset_of_the_same_name_is_scored_anew(
    done: dict[str, tuple[Run, str]],
) -> None:  # field case F085
    assert [done[answer][0].scores["passed"].to_list() for answer in ("x", "y")] == [[True], [False]]


def test_an_answering_api_is_used_unasked(done: dict[str, tuple[Run, str]]) -> None:
    run, err = done["unasked"]
    assert run.info["engine"] == "prefect"
    assert "engine prefect" in err


def test_a_configuration_file_is_enough_for_a_schedule(done: dict[str, tuple[Run, str]]) -> None:
    assert done["scheduled"][0].info["engine"] == "prefect"


def test_sigterm_commits_the_finished_batches_as_partial(server: Server, stoppable: StoppableRun) -> None:
    returned, err = stoppable.stop_by(
        signal.SIGTERM, "--engine", "prefect", batch_size=2, PREFECT_API_URL=server.url
    )
    assert returned == 143, err
    run = get_run(store=stoppable.store)
    assert (run.info["status"], run.scores["item_id"].to_list()) == ("partial", ["0", "1"])


def test_an_api_that_does_not_answer_is_refused_at_once(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/api"
        began = time.monotonic()
        done = assay(
            "run", DATA, "--evaluators", "ExactMatch", "--store", tmp_path / "s", PREFECT_API_URL=url
        )
    assert done.returncode == 2
    assert url in done.stderr
    assert "--engine local" in done.stderr
    assert time.monotonic() - began < 30
    assert not (tmp_path / "s").exists()


def test_a_temporary_server_lives_under_the_store_and_ends_with_the_run(
    server: Server, tmp_path: Path
) -> None:
    home, store = tmp_path / "home", tmp_path / "s"
    home.mkdir()
    (store / "prefect").mkdir(parents=True)
    shutil.copy(server.migrated, store / "prefect/prefect.db")  # migrating a new one takes 10 s
    tokens = ("--evaluators", "ExactMatch", "--engine", "prefect", "--store", store)
    done = assay("run", DATA, *tokens, HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert "starting a temporary server" in done.stderr
    assert "Traceback" not in done.stderr
    flow_runs = count_flow_runs(store / "prefect/prefect.db")
    assert (count_flow_runs(server.migrated), flow_runs) == (0, 1)
    assert list(home.iterdir()) == []
    assert find_servers(store / "prefect") == []
    assert get_run(store=store).info["engine"] == "prefect"


def test_a_server_that_does_not_start_in_time_is_named_with_its_setting(tmp_path: Path) -> None:
    store = tmp_path / "s"
    tokens = ("--evaluators", "ExactMatch", "--engine", "prefect", "--store", store, "-q")
    done = assay("run", DATA, *tokens, **{START_VARIABLE: "0.2"})
    assert done.returncode == 3
    assert START_VARIABLE in done.stderr
    assert "--engine local" in done.stderr
    assert find_servers(store / "prefect") == []
