from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import assay
from assay.config import Endpoint, Sampling
from assay.project import FILE, KINDS, PLACES, read_project
from assay.targets.http_file import KEYS, RESPONSE_KEYS, STREAM_KEYS, read_http_file
from assay.targets.http_templates import CONVERSATION
from assay.targets.offers import OFFERED
from assay.targets.replies import ANSWER_KEYS
from assay.testing import ModelServer
from transforms.values import SAMPLE_JSON, SAMPLE_TEXT

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/TARGETS.md").read_text(encoding="utf-8")
EXAMPLES = ROOT / "docs/examples/targets"
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = re.findall(r"^`?(assay run [^`\n]+?)(?:  #.*)?`?$", TEXT, re.MULTILINE)
TARGET_KEYS = {"kind", "place", "system", "prompt_template"} | {
    *Endpoint.model_fields,
    *Sampling.model_fields,
}
TABLES: dict[str, Iterable[str]] = {
    "offered": OFFERED,
    "key": ANSWER_KEYS,
    "key of `response`": RESPONSE_KEYS,
    "key of `stream`": STREAM_KEYS,
    "key of a target": TARGET_KEYS - {"provider"},
    "name in `sample`": (*SAMPLE_TEXT, *SAMPLE_JSON, "usage"),
}


def read_column(title: str, marker: str = "") -> list[str]:
    """Return the names in the first column of a table, of the one that holds a marker."""
    tables = re.findall(rf"^\| {re.escape(title)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", TEXT, re.MULTILINE)
    (rows,) = [table for table in tables if marker in table]
    return [name for row in rows.splitlines() for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


def test_the_reference_is_short() -> None:
    assert TEXT.count("\n") <= 230


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)[^)]*\)", TEXT))
def test_every_link_of_the_reference_leads_somewhere(link: str) -> None:
    assert (ROOT / "docs" / link).exists()


@pytest.mark.parametrize("title", [title for title in TABLES if title != "key"])
def test_a_table_names_the_keys_that_there_are(title: str) -> None:
    assert sorted(read_column(title)) == sorted(TABLES[title])


def test_the_tables_of_answer_objects_and_services_name_the_keys_that_there_are() -> None:
    assert sorted(read_column("key", "`output_text`")) == sorted(ANSWER_KEYS)
    assert read_column("key", "`url`") == list(KEYS)


def test_the_table_of_targets_names_the_kinds_that_there_are() -> None:
    listed = [name.partition(":")[0] for name in read_column("target")]
    assert [name for name in listed if not name.startswith("--")] == list(KINDS)
    assert set(PLACES) <= set(listed)


def test_keys_of_a_judge_are_those_that_the_text_names() -> None:
    (sentence,) = re.findall(r"Keys of a judge are (.*)\.\n", TEXT)
    named = set(re.findall(r"`(\w+)`", sentence)) - {"openai", "azure"}
    assert named == set(Endpoint.model_fields) - {"api", "stream"}


def test_the_examples_of_assay_toml_are_read(tmp_path: Path) -> None:
    project = read_project(EXAMPLES / FILE)
    assert list(project.targets) == ["local", "cloud", "echo", "service", "program"]
    assert list(project.judges) == ["careful", "cloud"]
    (text,) = [text for kind, text in BLOCKS if kind == "toml" and "targets.local" in text]
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    shown = read_project(tmp_path / FILE)
    assert (list(shown.targets), list(shown.judges)) == (["local"], ["careful"])
    assert shown.targets["local"]["params"] == project.targets["local"]["params"]


def test_the_examples_of_a_service_are_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ECHO_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("ECHO_KEY", "not-a-key-0123456789")
    (text,) = [text for kind, text in BLOCKS if kind == "toml" and "ECHO_URL" in text]
    (tmp_path / "shown.toml").write_text(text, encoding="utf-8")
    shown, whole = read_http_file(str(tmp_path / "shown.toml")), read_http_file(str(EXAMPLES / "echo.toml"))
    assert shown.variables == whole.variables == ("ECHO_URL", "ECHO_KEY")
    assert CONVERSATION in whole.roots
    assert shown.paths["output_text"] == whole.paths["output_text"]
    assert set(tomllib.loads(text)) < set(KEYS)


def test_a_function_and_the_program_of_the_examples_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    local = [shlex.split(command) for command in COMMANDS if "echo.py" in command]
    targets = [words[words.index("--target") + 1] for words in local]
    assert [target.partition(":")[0] for target in targets] == ["python", "cmd"]
    for target in targets:
        run = assay.run(
            "data/csv/faq.csv", target=target, limit=1, evaluators="ExactMatch", trials=2, store=tmp_path
        )
        assert [text[:11] for text in run.samples["output_text"]] == ["You asked: "] * 2
        assert sorted(run.samples["model"]) == ["echo-0", "echo-1"]


def test_the_service_of_the_examples_answers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with ModelServer([{"reply": "0042"}]) as server:
        monkeypatch.setenv("ECHO_URL", server.base_url)
        monkeypatch.setenv("ECHO_KEY", "not-a-key-0123456789")
        monkeypatch.chdir(ROOT)
        run = assay.run(
            "data/csv/faq.csv",
            config=EXAMPLES / FILE,
            target="service",
            evaluators="ExactMatch",
            limit=1,
            store=tmp_path,
        )
    assert run.samples.select("output_text", "input_tokens").rows() == [("0042", 3)]


def test_the_example_without_a_model_runs_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (example,) = [text for kind, text in BLOCKS if kind == "python" and "ModelServer" in text]
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    known: dict[str, object] = {}
    exec(compile(example, "TARGETS.md", "exec"), known)  # noqa: S102 - the text of our own reference
    run = known["run"]
    assert isinstance(run, assay.Run)
    assert run.samples.height == 3
