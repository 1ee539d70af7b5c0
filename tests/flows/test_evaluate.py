from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from assay.api import Run, get_run
from assay.engine.prefect_api import START_VARIABLE, temporary_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import StoppableRun

pytestmark = pytest.mark.xdist_group("prefect")

ROOT = Path(__file__).parents[2]
DATA = ROOT / "data/foundry/support.jsonl"
MARK = "Expresszuschlag"  # a word of the dataset, to look for where no data may be
PARAMETERS_BELOW = 10_000


def assay(*tokens: object, **variables: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT")}
    command = [sys.executable, "-m", "assay", *map(str, tokens)]
    return subprocess.run(
        command, capture_output=True, text=True, env=clean | variables, check=False, timeout=240
    )


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


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporary_server(tmp_path_factory.mktemp("server")) as url:
        yield url


def run_by_prefect(api: str, store: Path, data: Path, *tokens: object) -> Run:
    done = assay("run", data, *tokens, "--store", store, "--engine", "prefect", "-q", PREFECT_API_URL=api)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return get_run(store=store)


def test_one_flow_run_one_task_run_per_batch_and_the_tables_of_the_local_driver(
    api: str, tmp_path: Path
) -> None:
    tokens = ("--evaluators", "ExactMatch,PartialMatch", "--batch-size", 80)
    run = run_by_prefect(api, tmp_path / "a", DATA, *tokens)
    (flow_run,) = ask(api, "flow_runs", flow_runs={"id": {"any_": [run.info["flow_run_id"]]}})
    assert (flow_run["state_type"], flow_run["deployment_id"]) == ("COMPLETED", None)
    tasks = ask(api, "task_runs", flow_runs={"id": {"any_": [flow_run["id"]]}})
    assert sorted(task["name"] for task in tasks) == [f"batch-{n}" for n in range(4)]
    assert {task["state_type"] for task in tasks} == {"COMPLETED"}
    assert len(json.dumps([flow_run, tasks])) < PARAMETERS_BELOW * 5
    assert len(json.dumps(flow_run["parameters"])) < PARAMETERS_BELOW
    assert MARK in DATA.read_text(encoding="utf-8")
    assert MARK not in json.dumps([flow_run, tasks], ensure_ascii=False)
    assert assay("run", DATA, *tokens, "--store", tmp_path / "b", "--engine", "local", "-q").returncode == 0
    local = get_run(store=tmp_path / "b")
    assert local.info["engine"] == "local"
    key = ["item_id", "evaluator"]
    assert run.scores.drop("run_id").sort(key).equals(local.scores.drop("run_id").sort(key))
    assert run.samples.drop("run_id").equals(local.samples.drop("run_id"))
    assert run.summary.drop("run_id").equals(local.summary.drop("run_id"))


def test_an_edited_dataset_of_the_same_name_is_scored_anew(
    api: str, tmp_path: Path
) -> None:  # field case F085
    data = tmp_path / "d.jsonl"
    passed: list[Any] = []
    for answer in ("x", "y"):
        data.write_text(json.dumps({"id": "1", "response": answer, "ground_truth": "x"}), encoding="utf-8")
        run = run_by_prefect(api, tmp_path / "s", data, "--evaluators", "ExactMatch")
        passed += run.scores["passed"].to_list()
    assert passed == [True, False]


def test_an_answering_api_is_used_unasked(api: str, tmp_path: Path) -> None:
    done = assay(
        "run",
        DATA,
        "--evaluators",
        "ExactMatch",
        "--limit",
        2,
        "--store",
        tmp_path / "s",
        PREFECT_API_URL=api,
    )
    assert done.returncode == 0
    assert "engine prefect" in done.stderr


def test_a_configuration_file_is_enough_for_a_schedule(api: str, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    settings = {"datasets": [str(DATA)], "evaluators": ["ExactMatch"], "store": str(tmp_path / "s")}
    config.write_text(json.dumps(settings), encoding="utf-8")
    code = (
        f"import asyncio; from flows.evaluate import evaluate; asyncio.run(evaluate(config={str(config)!r}))"
    )
    variables = os.environ | {"PREFECT_API_URL": api, "PREFECT_LOGGING_LEVEL": "ERROR"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=variables, check=False
    )
    assert done.returncode == 0, done.stderr
    assert get_run(store=tmp_path / "s").info["engine"] == "prefect"


def test_sigterm_commits_the_finished_batches_as_partial(api: str, stoppable: StoppableRun) -> None:
    returned, err = stoppable.stop_by(signal.SIGTERM, "--engine", "prefect", PREFECT_API_URL=api)
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


def test_a_temporary_server_lives_under_the_store_and_ends_with_the_run(tmp_path: Path) -> None:
    home, store = tmp_path / "home", tmp_path / "s"
    home.mkdir()
    tokens = ("--evaluators", "ExactMatch", "--engine", "prefect", "--store", store)
    done = assay("run", DATA, *tokens, HOME=str(home))
    assert done.returncode == 0, done.stderr
    assert "starting a temporary server" in done.stderr
    assert "Traceback" not in done.stderr
    assert (store / "prefect/prefect.db").exists()
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
