from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from assay.cli.app import run_app
from evaluators.catalog import BUILT_IN, find_evaluator

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LINKS = re.findall(r"\]\(([^)]+)\)", README)
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)
COMMANDS = [
    line for kind, text in BLOCKS if kind == "sh" for line in text.splitlines() if line.startswith("assay ")
]
RUNNABLE = [line for line in COMMANDS if "--model" not in line and "my.csv" not in line]


@pytest.mark.parametrize("link", LINKS)
def test_every_link_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_python_example_runs_as_it_stands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (example,) = [text for kind, text in BLOCKS if kind == "python" and "import assay" in text]
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})  # noqa: S102 - the text of our own README


def test_the_commands_run_in_the_order_they_stand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    assert len(RUNNABLE) == 5
    codes = {line: run_app(shlex.split(line)[1:]) for line in RUNNABLE}
    assert set(codes.values()) == {0}, codes


def test_the_table_of_evaluators_is_the_catalog() -> None:
    rows = [line.strip("| \n").split(" | ") for line in README.splitlines() if line.startswith("| ")]
    listed = {row[0]: row for row in rows if row[0][0].isupper()}
    assert list(listed) == [evaluator.name for evaluator in BUILT_IN]
    for evaluator in BUILT_IN:
        row = listed[evaluator.name]
        assert all(field in row[1] for field in evaluator.needs)
        assert row[3] == f"at {evaluator.threshold:g}"
        assert find_evaluator(row[4].strip("`")).name == evaluator.name
