"""Datasets by path: files, folders, projects, and paths that hold nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from assay.datasets.reader import read_documents
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    Write = Callable[[str, str | bytes], str]

ROW = '{"id": "1", "query": "q"}\n'
EVALS = '{"schemaVersion": "1.0.0", "items": [{"prompt": "p"}]}'
SET = '{"id": "s", "evaluatorRefs": [], "evaluations": [{"id": "%s", "inputs": {}}]}'


def test_documents_come_in_the_order_of_the_paths(write: Write) -> None:
    paths = [write("b.jsonl", ROW), write("a.csv", "query\nq\n"), write("evals.json", EVALS)]
    documents = read_documents(paths)
    assert [document.dialect for document in documents] == ["foundry", "csv", "m365"]
    assert [document.path for document in documents] == paths
    assert [document.rows["source_file"][0] for document in documents] == paths


def test_a_folder_is_read_sorted_and_only_where_a_dialect_claims(write: Write, tmp_path: Path) -> None:
    write("b.jsonl", ROW)
    write("a.json", EVALS)
    write("c.csv.zst", zstandard.compress(b"query\nq\n"))
    for name, content in {
        "package.json": '{"name": "agent", "version": "1"}',
        "README.md": "items",
        "photo.png": b"\x89PNG\r\n\xff",
        ".hidden.jsonl": "broken",
        "deeper/d.jsonl": "broken",
    }.items():
        write(name, content)
    assert [Path(d.path).name for d in read_documents([str(tmp_path)])] == ["a.json", "b.jsonl", "c.csv.zst"]


@pytest.mark.parametrize("layout", ["evals", "evaluations", "evals/default", "evaluations/x"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_project_gives_one_document_per_set(
    layout: str, inside: bool, write: Write, tmp_path: Path
) -> None:
    for name in ("b", "a"):
        write(f"agent/{layout}/eval-sets/{name}.json", SET % name)
    write(f"agent/{layout}/evaluators/e.json", json.dumps({"id": "e", "category": 0, "type": 1}))
    write("agent/entry-points.json", "{}")
    documents = read_documents([str(tmp_path / "agent" / (layout if inside else ""))])
    assert [document.rows["id"].to_list() for document in documents] == [["a"], ["b"]]
    assert {document.dialect for document in documents} == {"uipath"}


def test_a_set_is_found_from_within_its_folder(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("evals/eval-sets/s.json", (SET % "a").replace("[]", '["e"]', 1))
    write("evals/evaluators/e.json", json.dumps({"id": "e", "category": 3}))
    monkeypatch.chdir(tmp_path / "evals" / "eval-sets")
    (document,) = read_documents(["s.json"])
    assert [use.where for use in document.defaults or ()] == ["../evaluators/e.json"]


def test_a_folder_without_datasets_says_what_is_accepted(write: Write, tmp_path: Path) -> None:
    write("README.md", "nothing")
    with pytest.raises(
        InputError, match=r"no dataset in this folder; accepted: M365 .*JSON lines .*UiPath .*CSV"
    ):
        read_documents([str(tmp_path)])


def test_a_file_that_no_dialect_claims_says_what_is_accepted(write: Write) -> None:
    with pytest.raises(InputError, match=r"x\.json: no dialect reads this file; accepted: M365"):
        read_documents([write("x.json", '{"a": 1}')])


def test_a_missing_file_names_the_nearest(write: Write) -> None:
    path = write("evals.json", EVALS)
    with pytest.raises(InputError, match=r"did you mean .*evals\.json\?"):
        read_documents([path.replace("evals", "eval")])


def test_a_value_nested_too_deeply_for_a_text_column_is_refused(write: Write) -> None:
    deep = "[" * 700 + "]" * 700
    with pytest.raises(InputError, match="nested too deeply"):
        read_documents([write("x.jsonl", f'{{"query": {deep}}}')])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.jsonl", ""),
        ("empty.csv", ""),
        ("empty.json", ""),
        ("blank.jsonl", "\n  \n"),
        ("blank.csv", " \n\n"),
        ("mark.csv", b"\xef\xbb\xbf"),
        ("header.csv", "query,response\n"),
        ("items.json", '{"schemaVersion":"1.0.0","items":[]}'),
        ("array.json", "[]"),
        ("prompts.json", '{"prompts": [], "expected_responses": []}'),
        ("empty.jsonl.zst", zstandard.compress(b"")),
        ("evals/eval-sets/set.json", '{"id": "s", "evaluatorRefs": [], "evaluations": []}'),
    ],
)
def test_a_file_without_rows_is_refused(name: str, content: str | bytes, write: Write) -> None:
    with pytest.raises(InputError, match=f"no rows in {Path(name).name}"):
        read_documents([write(name, content)])


def test_files_of_the_field_without_rows_are_refused(field: Path) -> None:
    files = sorted((field / "F019").iterdir())
    assert len(files) == 6
    for path in files:
        with pytest.raises(InputError, match=f"no rows in {path.name}"):
            read_documents([str(path)])


def test_projects_of_the_field_bind_their_evaluators_in_three_ways(field: Path) -> None:
    sets = field / "F027" / "evals" / "eval-sets"
    read = read_documents([str(sets / f"by_{way}.json") for way in ("id", "name", "file_stem")])
    scoped = read_documents([str(field / "F027" / "evals" / "default")])
    assert [[use.name for use in d.defaults or ()] for d in (*read, *scoped)] == [["Exact Match"]] * 4
    with pytest.raises(InputError, match=r"unknown evaluator 'nope'; known in .*exact-match-evaluator"):
        read_documents([str(sets / "unknown_ref.json")])
    with pytest.raises(InputError, match=r"evaluations\[1\]\.id: id 'e1'"):
        read_documents([str(sets / "null_criteria.json")])


def test_marked_json_of_the_field_is_read(field: Path) -> None:
    documents = read_documents([str(field / "F001" / name) for name in ("bom.json", "bom.jsonl")])
    assert [document.rows["query"].to_list() for document in documents] == [["p"], ["q1", "q2"]]
