"""Starter datasets: each can be written in every form, is read without a notice, and runs as it is told."""

from __future__ import annotations

import json
import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from assay.cli.app import run_app
from assay.cli.init import DEFAULT_NAMES, Form, choose_place, init
from assay.config import Reading
from assay.datasets.reader import read_documents
from assay.errors import ConfigError
from assay.starters import Template, read_starter
from evaluators.catalog import resolve_evaluation

if TYPE_CHECKING:
    from tests.conftest import Loopback

TEMPLATES: tuple[Template, ...] = get_args(Template)
FORMS: tuple[Form, ...] = get_args(Form)
VERDICT = '{"reason": "clear", "score": 4}'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Start in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_package_holds_every_template_and_nothing_else() -> None:
    found = {entry.name for entry in files("assay.starters").iterdir() if entry.name.endswith(".json")}
    assert found == {f"{template}.json" for template in TEMPLATES}


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_starter_is_what_the_published_format_accepts(template: Template, folder: Path) -> None:
    (folder / "starter.json").write_bytes(read_starter(template))
    (document,) = read_documents(["starter.json"], Reading(strict=True))
    rows = document.rows.filter(document.rows["turn"] == 0)
    assert 6 <= rows.height <= 10
    assert document.notices == ()
    for column in ("id", "name", "category", "tags", "query", "expected_response"):
        assert rows[column].null_count() == 0, column
    assert not rows["id"].is_duplicated().any()
    for use in document.defaults or ():
        resolve_evaluation(use.evaluator, use.options)


def test_templates_hold_what_their_purpose_needs() -> None:
    items: dict[str, list[dict[str, Any]]] = {
        template: json.loads(read_starter(template))["items"] for template in TEMPLATES
    }
    assert all(item["context"] for item in items["knowledge"])
    assert all(item["extensions"]["tool_definitions"] for item in items["tools"])
    assert [len(item["extensions"]["tool_calls"]) for item in items["tools"]] == [1, 1, 1, 1, 2, 2, 0, 1]
    assert all(item["response"] for item in items["regression"])
    assert all(len(item["turns"]) > 1 for item in items["multi-turn"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_starter_is_read_without_a_notice_and_runs_as_it_is_told(
    template: Template,
    form: Form,
    loopback: Loopback,
    api_key: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert api_key
    assert init(template=template, to=form) == 0
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{DEFAULT_NAMES[form]}: ")
    (document,) = read_documents([DEFAULT_NAMES[form]])
    assert document.warnings == ()
    assert document.dialect == form
    loopback.script([], match=[("You grade one answer", {"reply": VERDICT})])
    tokens = shlex.split(last.replace("MODEL", "m").removeprefix("next: assay "))
    urls = ["--base-url", loopback.base_url] if "--model" in tokens else []
    assert run_app([*tokens, *urls, "--store", "history"]) == 0, capsys.readouterr().err


def test_the_stored_answers_of_the_regression_starter_pass(capsys: pytest.CaptureFixture[str]) -> None:
    init(template="regression")
    assert run_app(["run", "evals.json", "--store", "history"]) == 0
    assert "9 passed, 0 failed" in capsys.readouterr().out


def test_nothing_is_overwritten_without_force(folder: Path) -> None:
    (folder / "evals.json").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"evals\.json is there already; --force replaces it"):
        init()
    assert (folder / "evals.json").read_text(encoding="utf-8") == "mine"
    assert init(force=True) == 0
    assert (folder / "evals.json").read_bytes() == read_starter("agent")


def test_a_project_is_written_beside_what_is_there(folder: Path) -> None:
    (folder / "main.py").write_text("agent", encoding="utf-8")
    assert init(template="regression", to="uipath", out=Path()) == 0
    assert (folder / "main.py").read_text(encoding="utf-8") == "agent"
    assert (folder / "evaluations" / "eval-sets" / "regression.json").is_file()
    with pytest.raises(ConfigError, match="there already"):
        init(to="uipath", out=Path())


@pytest.mark.parametrize(
    ("to", "out", "name", "place"),
    [
        (None, None, "m365", "evals.json"),
        (None, "deep/x.csv", "csv", "deep/x.csv"),
        (None, "x.ndjson", "foundry", "x.ndjson"),
        ("foundry", ".", "foundry", "evals.jsonl"),
        (None, ".", "m365", "evals.json"),
        ("uipath", "agent", "uipath", "agent"),
    ],
)
def test_form_and_place_come_from_each_other(to: Any, out: str | None, name: str, place: str) -> None:
    writer, path = choose_place(to, None if out is None else Path(out))
    assert (writer.name, path) == (name, Path(place))


@pytest.mark.parametrize(
    ("to", "out", "message"),
    [
        ("csv", "x.json", r"--out x\.json: csv is known by its suffix; accepted: \.csv"),
        ("m365", "x", r"--out x: m365 is known by its suffix; accepted: \.json"),
        (None, "x.docx", r"no form has the suffix \.docx"),
    ],
)
def test_a_suffix_that_would_not_be_read_is_refused(to: Any, out: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        init(to=to, out=Path(out))


def test_rows_say_which_evaluators_to_name(capsys: pytest.CaptureFixture[str]) -> None:
    init(template="knowledge", to="csv")
    assert "next: assay run evals.csv --evaluators Relevance,PartialMatch --model" in capsys.readouterr().out


def test_a_project_says_what_uipath_has_no_place_for(capsys: pytest.CaptureFixture[str]) -> None:
    init(template="regression", to="uipath")
    captured = capsys.readouterr()
    assert captured.err == "uipath has no place for: evaluator PartialMatch, evaluator Citations\n"
    assert captured.out.splitlines()[1] == (
        "next: assay run evals-project --evaluators +PartialMatch --model MODEL"
    )
