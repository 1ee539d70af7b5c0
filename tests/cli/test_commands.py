from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.cli.app import COMMANDS

if TYPE_CHECKING:
    from tests.conftest import Loopback

ROOT = Path(__file__).parents[2]
ROWS = [
    {"id": "a", "query": "q1", "response": "4", "ground_truth": "4", "category": "x"},
    {"id": "b", "query": "q2", "response": "|5|\n6", "ground_truth": "7", "category": "y"},
]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    return path


def test_a_run_prints_its_id_first_and_then_the_summary(call: Any, rows: Path, store: Path) -> None:
    code, out, err = call("run", rows, "--evaluators", "ExactMatch")
    assert code == 0
    assert err.startswith("run 2")
    assert "engine local" in err
    for part in (
        "1 passed, 1 failed",
        "ExactMatch",
        "2/2",
        "50.0%",
        "category",
        "expected: 7",
        str(store),
        "assay query",
    ):
        assert part in out


@pytest.mark.parametrize("tokens", [[], ["--help"], ["-h"]])
def test_the_overview_names_every_command(call: Any, tokens: list[str]) -> None:
    code, out, _ = call(*tokens)
    assert code == 0
    assert all(f"  {name} " in out for name, _, _ in COMMANDS)


@pytest.mark.parametrize("command", [name for name, _, _ in COMMANDS])
def test_every_command_explains_itself_with_an_example(call: Any, command: str) -> None:
    code, out, _ = call(command, "--help")
    assert code == 0
    assert f"assay {command}" in out.split("Examples:")[1]


def test_json_is_one_document_with_every_figure(call: Any, rows: Path) -> None:
    code, out, _ = call("run", rows, "--evaluators", "ExactMatch", "--format", "json")
    document = json.loads(out)
    assert code == 0
    assert document["run"]["passed"] == 1
    assert document["summary"][0]["pass_rate"] == 0.5
    assert document["worst"][0]["item_id"] == "b"


@pytest.mark.parametrize("form", ["json", "csv", "md", "table"])
def test_runs_are_listed_in_every_form(call: Any, rows: Path, form: str) -> None:
    call("run", rows, "--evaluators", "ExactMatch", "--name", "first", "-q")
    code, out, _ = call("runs", "--format", form)
    assert code == 0
    assert "first" in out


def test_a_file_is_written_in_the_form_of_its_suffix(call: Any, rows: Path, tmp_path: Path) -> None:
    call("run", rows, "--evaluators", "ExactMatch", "-q")
    for suffix in ("json", "csv", "md", "parquet"):
        code, out, _ = call("query", "from scores", "-o", tmp_path / f"s.{suffix}")
        assert (code, out) == (0, "")
    assert len(json.loads((tmp_path / "s.json").read_text())) == 2
    assert pl.read_parquet(tmp_path / "s.parquet").height == 2
    assert len(list(csv.reader(io.StringIO((tmp_path / "s.csv").read_text())))) == 3


def test_show_failed_lists_the_rows_that_failed(call: Any, rows: Path) -> None:
    call("run", rows, "--evaluators", "ExactMatch", "-q")
    code, out, _ = call("show", "latest", "--failed", "--format", "json")
    assert code == 0
    assert [(row["item_id"], row["actual"]) for row in json.loads(out)] == [("b", "|5|\n6")]
    _, markdown, _ = call("show", "latest", "--failed", "--format", "md")
    assert "\\|5\\|<br>6" in markdown


def test_quiet_prints_nothing_but_data(call: Any, rows: Path) -> None:
    assert call("run", rows, "--evaluators", "ExactMatch", "-q") == (0, "", "")
    code, out, err = call("run", rows, "--evaluators", "ExactMatch", "-q", "--format", "csv")
    assert (code, err) == (0, "")
    assert out.startswith("run_id,evaluator")


def test_evaluators_added_and_options_set_from_the_command_line(call: Any, tmp_path: Path) -> None:
    item = {"testId": "a", "prompt": "p", "expected_response": "Yes", "response": "yes"}
    document: dict[str, Any] = {
        "schemaVersion": "1.2.0",
        "default_evaluators": {"ExactMatch": {}},
        "items": [item],
    }
    path = tmp_path / "doc.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    options = ["--evaluators", "+PartialMatch", "--option", "ExactMatch.case_sensitive=true"]
    call("run", path, *options, "-q")
    _, out, _ = call("query", "select evaluator, score from scores order by 1", "--format", "csv")
    assert out.splitlines()[1:] == ["ExactMatch,0.0", "PartialMatch,1.0"]


def test_mappings_come_from_the_line_or_from_a_file(call: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("answer,gold\nx,x\n", encoding="utf-8")
    mapping = tmp_path / "map.json"
    mapping.write_text('{"response": "answer"}', encoding="utf-8")
    code, _, err = call(
        "run",
        path,
        "--evaluators",
        "ExactMatch",
        "--mapping",
        mapping,
        "--mapping",
        "expected_response={{item.gold}}",
        "-q",
    )
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["run"], "no dataset named"),
        (["run", "nowhere.jsonl"], "nowhere.jsonl"),
        (["run", "{rows}", "--option", "PartialMatch"], "EVALUATOR.NAME=JSON"),
        (["run", "{rows}", "--mapping", "nowhere.json"], "nowhere.json"),
        (["show", "latest"], "run"),
        (["query", "select nonsense from scores"], "nonsense"),
        (["query", "delete from scores"], "refused"),
        (["query", "copy scores to 'x.csv'"], "refused"),
        (["query", "from read_csv('/etc/hostname')"], "refused"),
        (["query", "from runs", "--format", "parquet"], "--out"),
        (["evaluators", "ExactMach"], "did you mean ExactMatch"),
        (["run", "{rows}", "--target", "openai", "--evaluators", "ExactMatch"], "--model"),
    ],
)
def test_wrong_input_is_one_message_and_exit_code_2(
    call: Any, rows: Path, tokens: list[str], message: str
) -> None:
    if tokens[0] in {"query", "show"}:
        call("run", rows, "--evaluators", "ExactMatch", "-q")
        tokens = [token.replace("latest", "nonesuch") for token in tokens]
    code, out, err = call(*(token.replace("{rows}", str(rows)) for token in tokens))
    assert code == 2
    assert message in err
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.parametrize(  # field case F019
    "name", ["empty.jsonl", "empty.csv", "white.jsonl", "header.csv", "items.json"]
)
def test_an_empty_dataset_is_refused_and_leaves_no_store(
    call: Any, tmp_path: Path, store: Path, name: str
) -> None:
    texts = {
        "white.jsonl": "\n  \n",
        "header.csv": "query,response\n",
        "items.json": '{"schemaVersion":"1.0.0","items":[]}',
    }
    path = tmp_path / name
    path.write_text(texts.get(name, ""), encoding="utf-8")
    code, out, err = call("run", path, "--evaluators", "ExactMatch")
    assert (code, out) == (2, "")
    assert f"no rows in {path.name}" in err
    assert not store.exists()


def test_an_unknown_option_is_a_usage_error(call: Any, rows: Path) -> None:
    with pytest.raises(SystemExit) as ended:
        call("run", rows, "--evaluatr", "ExactMatch")
    assert ended.value.code == 2


def test_the_log_file_holds_json_lines(call: Any, rows: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    call("run", rows, "--evaluators", "ExactMatch", "-q", "--log-file", log)
    assert "run 2" in json.loads(log.read_text(encoding="utf-8").splitlines()[0])["message"]


def test_answers_of_a_file_are_matched_and_the_unmatched_named(call: Any, tmp_path: Path) -> None:
    data, answers = tmp_path / "d.jsonl", tmp_path / "a.csv"
    data.write_text('{"id":"1","ground_truth":"x"}\n{"id":"2","ground_truth":"y"}\n', encoding="utf-8")
    answers.write_text("id,response\n1,x\n9,z\n", encoding="utf-8")
    code, _, err = call(
        "run", data, "--responses", answers, "--evaluators", "ExactMatch", "--max-errors", "1"
    )
    assert code == 0
    assert "1 answers belong to no selected item: 9" in err
    assert "1 turns have no answer: 2" in err


@pytest.mark.usefixtures("api_key")
def test_an_errored_run_exits_with_3_and_says_why(call: Any, rows: Path, loopback: Loopback) -> None:
    loopback.script([], after={"status": 200, "body": "<html>"})
    tokens = ["--evaluators", "ExactMatch", "--model", "m", "--base-url", loopback.base_url]
    code, out, err = call("run", rows, *tokens)
    assert code == 3
    assert "2 of 2 evaluations ended in an error" in err
    assert "0.0%..100.0%" in out


def test_a_bug_is_one_line_with_exit_code_70(call: Any, rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object, **__: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr("assay.cli.run.open_run", explode)
    code, _, err = call("run", rows)
    assert code == 70
    assert err == "assay: internal error: ZeroDivisionError: boom; --log-level debug shows where\n"
    assert "Traceback" in call("run", rows, "--log-level", "debug")[2]


def test_runs_names_those_that_never_came_to_an_end(call: Any, rows: Path, store: Path) -> None:
    call("run", rows, "--evaluators", "ExactMatch")
    (commit,) = store.glob("runs/*/run.parquet")
    commit.unlink()
    run_id = commit.parent.name.removeprefix("run_id=")
    code, _, err = call("runs")
    assert (code, err) == (
        0,
        f"unfinished: {run_id}; go on with: assay run --resume {run_id} --store {store}\n",
    )
