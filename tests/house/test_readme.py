from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from assay.cli.app import run_app
from assay.cli.guide import write_guide
from assay.cli.judges_guide import write_judges
from evaluators.built_in import BUILT_IN

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
    for folder in ("data", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    assert len(RUNNABLE) == 7
    codes = {line: run_app(shlex.split(line)[1:]) for line in RUNNABLE}
    assert set(codes.values()) == {0}, codes


def test_the_table_of_evaluators_is_the_catalog() -> None:
    table = README.split("## Evaluators")[1].split("| from | evaluators |")[1].split("\n\n")[0]
    cells = [line.strip("| ").split(" | ")[1] for line in table.splitlines()[2:]]
    listed = re.findall(r"\b[A-Z]\w+", " ".join(cells))
    assert listed == [evaluator.name for evaluator in BUILT_IN]


def test_the_guide_to_the_evaluators_is_what_the_catalog_says() -> None:
    assert (ROOT / "docs/evaluators.md").read_text(encoding="utf-8").strip() == write_guide(BUILT_IN).strip()
    judges = (ROOT / "docs/judges.md").read_text(encoding="utf-8")
    assert judges.strip() == write_judges(BUILT_IN).strip()
