from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
CODE = sorted(
    p for part in ("assay", "evaluators", "transforms", "flows") for p in (ROOT / part).rglob("*.py")
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
BRANCHES = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.IfExp,
    ast.comprehension,
    ast.match_case,
)
SUPPRESSION = re.compile(r"#\s*(noqa|type: ignore|pyright: ignore|ruff: noqa)")


def find_functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def count_body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def count_branches(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return sum(isinstance(node, BRANCHES) for node in ast.walk(function))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", CODE, ids=name)
def test_code_stays_below_the_ceilings(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= 300
    for function in find_functions(path):
        assert count_body_lines(function) <= 40, function.name
        assert count_branches(function) <= 8, function.name
        arguments = function.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        assert len([a for a in named if a.arg not in {"self", "cls"}]) <= 6, function.name


@pytest.mark.parametrize("path", TESTS, ids=name)
def test_tests_stay_below_the_ceilings(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= 400
    for function in find_functions(path):
        assert count_body_lines(function) <= 25, function.name


def test_suppressions_are_rare_and_give_their_reason() -> None:
    lines = [line for path in CODE for line in path.read_text(encoding="utf-8").splitlines()]
    suppressed = [line for line in lines if SUPPRESSION.search(line)]
    assert [line for line in suppressed if " - " not in line.split("#", 1)[1]] == []
    assert len(suppressed) <= max(2, 2 * len(lines) // 1000), suppressed


def test_nothing_is_left_to_do() -> None:
    marks = ("TO" + "DO", "FIX" + "ME")
    assert [name(p) for p in [*CODE, *TESTS] for mark in marks if mark in p.read_text(encoding="utf-8")] == []


def test_the_folders_of_tests_are_not_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_flow_files_hold_only_functions() -> None:
    for path in (ROOT / "flows").glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        kinds = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.Expr)
        assert all(isinstance(node, kinds) for node in tree.body), path


def test_the_readme_is_short_and_names_its_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") < 150
    assert "make demo" in text
    assert "make test" in text


def test_constraints_hold_names_and_versions_only() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+-]+", line)] == []
