from __future__ import annotations

import importlib.metadata
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import assay
from assay.engine.own import load_evaluator
from assay.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from assay.api import Run

EXAMPLES = Path(__file__).parents[2] / "docs/examples"
POLITE = {"id": "a", "query": "q", "response": "It is 4.\nThank you!"}
RUDE = {"id": "b", "query": "q", "response": "4"}


COLUMN = """from evaluators.contract import ColumnEvaluator, Options
f = ColumnEvaluator(name='F', summary='F.', options=Options, measure=print, """


def read(scores: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return scores.sort("item_id", "evaluator").select(columns).rows()


@pytest.fixture
def write_code(tmp_path: Path) -> Callable[[str], Path]:
    def write(code: str) -> Path:
        path = tmp_path / "mine.py"
        path.write_text(code, encoding="utf-8")
        return path

    return write


def test_the_documented_function_runs_with_its_option(run_rows: Callable[..., Run]) -> None:
    place = f"{EXAMPLES}/own.py:ends_politely"
    run = run_rows(POLITE, RUDE, own_evaluators=[place])
    assert read(run.scores, "evaluator", "score", "passed", "reason") == [
        ("ends_politely", 1.0, True, None),
        ("ends_politely", 0.0, False, "no 'thank you' in the last line"),
    ]
    again = run_rows(RUDE, own_evaluators=[place], options={"ends_politely": {"closing": "4"}})
    assert read(again.scores, "score") == [(1.0,)]


def test_the_documented_column_evaluator_runs_beside_those_that_are_named(
    run_rows: Callable[..., Run],
) -> None:
    run = run_rows(
        POLITE,
        RUDE,
        evaluators="Citations",
        own_evaluators=[f"{EXAMPLES}/own.py:max_words"],
        options={"MaxWords": {"words": 2}},
    )
    assert read(run.scores, "evaluator", "score") == [
        ("Citations", 0.0),
        ("MaxWords", 0.0),
        ("Citations", 0.0),
        ("MaxWords", 1.0),
    ]


def test_a_dataset_names_a_folder_form_evaluator_that_stands_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(EXAMPLES)
    uses = {"closing_line": {"threshold": 1, "options": {"lines": ["Bye"]}}}
    items = [{"prompt": "p", "response": text, "evaluators": uses} for text in ("Yes. Bye", "No.")]
    path = tmp_path / "evals.json"
    path.write_text(json.dumps({"schemaVersion": "1.8.0", "items": items}), encoding="utf-8")
    run = assay.run(path, store=tmp_path / "store")
    assert sorted(run.scores.select("evaluator", "score", "passed").rows()) == [
        ("closing_line", 0.0, False),
        ("closing_line", 1.0, True),
    ]


def test_a_folder_is_named_on_the_command_line_too(run_rows: Callable[..., Run]) -> None:
    run = run_rows(RUDE, own_evaluators=[f"{EXAMPLES}/custom-evaluators/closing_line"])
    assert read(run.scores, "reason") == [("does not end with ['Best regards']",)]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ('{"error": "no luck"}', "RuntimeError: no luck"),
        ("float('nan')", "ValueError: returned `score` nan"),
        ("'good'", "TypeError: returned str"),
        ("{'scor': 1}", "ValueError: returned a dict without `score` and `error`"),
        ("__import__('sys').exit(7)", "SystemExit: 7"),
    ],
)
def test_what_an_evaluator_raises_is_the_error_of_its_row_and_the_run_goes_on(
    body: str, error: str, run_rows: Callable[..., Run], write_code: Callable[[str], Path]
) -> None:
    path = write_code(f"def judge(response):\n    return 1 if len(response) == 1 else {body}\n")
    run = run_rows(POLITE, RUDE, own_evaluators=[f"{path}:judge"], max_errors=1)
    (_, code, message), *rest = read(run.scores, "status", "error_code", "error_message")
    assert code == "evaluator_error"
    assert message.startswith(error)
    assert [row[0] for row in rest] == ["ok"]


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        ("import nowhere_to_be_found", "x", "cannot be loaded: ModuleNotFoundError"),
        ("def f(response): ...", "g", "has no g; there are: f"),
        ("def f(answer): ...", "f", "reads no field"),
        ("def f(response, limit): ...", "f", "'limit' that is no field and has no default"),
        ("async def f(response): ...", "f", "is a coroutine"),
        ("f = 3", "f", "neither an evaluator nor a function or class"),
        ("def contains(response): ...", "contains", "is that of a built-in evaluator"),
        ("raise SystemExit(4)", "f", "cannot be loaded: SystemExit"),
        (f"{COLUMN}needs=('respons',))", "f", "unknown field of F 'respons'; did you mean response"),
        (f"{COLUMN}needs=('response',), row_options={{'zz': None}})", "f", "unknown row option of F 'zz'"),
    ],
)
def test_what_cannot_be_an_evaluator_is_refused_with_its_place(
    code: str, name: str, message: str, write_code: Callable[[str], Path]
) -> None:
    path = write_code(code)
    with pytest.raises(ConfigError, match=message) as refusal:
        load_evaluator(f"{path}:{name}")
    assert "mine.py" in str(refusal.value)


def test_two_evaluators_of_one_name_are_refused(
    run_rows: Callable[..., Run], write_code: Callable[[str], Path]
) -> None:
    path = write_code("def judge(response):\n    return 1\n")
    copy = path.with_name("other.py")
    copy.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"other\.py:judge: judge is also the name of .*mine\.py:judge"):
        run_rows(RUDE, own_evaluators=[f"{path}:judge", f"{copy}:judge"])


def test_numbers_of_numpy_are_numbers(
    run_rows: Callable[..., Run], write_code: Callable[[str], Path]
) -> None:
    path = write_code("import numpy\ndef judge(response):\n    return numpy.float32(0.5)\n")
    assert read(run_rows(RUDE, own_evaluators=[f"{path}:judge"]).scores, "score", "passed") == [(0.5, True)]


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no file nowhere\.py"):
        load_evaluator("nowhere.py:f")


def test_user_code_finds_no_module_of_its_folder_by_name(
    tmp_path: Path, write_code: Callable[[str], Path]
) -> None:
    (tmp_path / "neighbour.py").write_text("", encoding="utf-8")
    before = list(sys.path)
    with pytest.raises(ConfigError, match="neighbour"):
        load_evaluator(f"{write_code('import neighbour')}:f")
    assert sys.path == before


def test_installed_packages_bring_evaluators_by_entry_point(
    monkeypatch: pytest.MonkeyPatch, run_rows: Callable[..., Run]
) -> None:
    point = importlib.metadata.EntryPoint("shouts", "builtins:len", "assay.evaluators")

    def find(*, group: str, name: str) -> list[importlib.metadata.EntryPoint]:
        return [point] if (group, name) == ("assay.evaluators", "shouts") else []

    def load(_self: object) -> Callable[[str], bool]:
        def shouts(response: str) -> bool:
            return response.isupper()

        return shouts

    monkeypatch.setattr("assay.engine.own.entry_points", find)
    monkeypatch.setattr(importlib.metadata.EntryPoint, "load", load)
    run = run_rows({**RUDE, "response": "NO"}, evaluators="shouts")
    assert read(run.scores, "evaluator", "score") == [("shouts", 1.0)]
