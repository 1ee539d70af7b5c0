"""`assay convert`: what it prints, what it refuses, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.cli.convert import Writing, convert
from assay.cli.output import Output
from assay.cli.reading import Files
from assay.datasets.writing.catalog import WRITERS
from assay.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    Put = Callable[[str, Any], str]

DATA = Path(__file__).parents[2] / "data"
JSON = Output(format="json")
LOSSY = {"schemaVersion": "1.11.0", "description": "d", "items": [{"prompt": "q", "extensions": {"n": [1]}}]}


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Write a file and return its path."""

    def write(name: str, content: Any) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return write


def test_the_suffix_of_the_file_to_write_chooses_the_form(put: Put, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "new" / "rows.csv"
    assert convert(put("rows.jsonl", '{"query":"q","id":"1"}\n'), out) == 0
    assert out.read_text(encoding="utf-8") == "id,query\n1,q\n"
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"{out}: written; 1 items as csv, nothing lost\n")


def test_losses_are_a_table_and_as_json_a_document(put: Put, tmp_path: Path, capsys: Any) -> None:
    path = put("doc.json", LOSSY)
    assert convert(path, tmp_path / "a.csv") == 0
    printed = capsys.readouterr()
    assert "description of the file" in printed.out
    assert printed.err.endswith("1 items as csv, 1 kinds of things lost\n")
    assert convert(path, tmp_path / "b.csv", output=JSON) == 0
    told = json.loads(capsys.readouterr().out)
    outcome = "numbers, lists and the like as JSON text, see --json-column n"
    assert told == {
        "in": path,
        "out": str(tmp_path / "b.csv"),
        "to": "csv",
        "items": 1,
        "rows": 1,
        "losses": [
            {
                "field": "description of the file",
                "outcome": "left out",
                "kept": False,
                "first": "",
                "count": 1,
            },
            {"field": "n", "outcome": outcome, "kept": True, "first": "line 1", "count": 1},
        ],
    }


def test_a_loss_that_may_not_be_ends_with_2_and_no_file(put: Put, tmp_path: Path, capsys: Any) -> None:
    path, out = put("doc.json", LOSSY), tmp_path / "rows.jsonl"
    assert convert(path, out, writing=Writing(fail_on_loss=True), output=JSON) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out)["out"] is None
    assert "not written" in printed.err
    assert not out.exists()
    assert convert(path, tmp_path / "doc2.json", writing=Writing(fail_on_loss=True)) == 0


def test_quiet_says_nothing_but_the_data(put: Put, tmp_path: Path, capsys: Any) -> None:
    quiet = Output(quiet=True, format="json")
    assert convert(put("doc.json", LOSSY), tmp_path / "a.jsonl", output=quiet) == 0
    assert capsys.readouterr().err == ""


def test_what_is_there_needs_force(put: Put, tmp_path: Path) -> None:
    path, out = put("rows.jsonl", '{"query":"q"}\n'), tmp_path / "out.json"
    out.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="--force replaces it"):
        convert(path, out)
    assert out.read_text(encoding="utf-8") == "mine"
    assert convert(path, out, writing=Writing(force=True)) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["items"] == [{"prompt": "q"}]


def test_to_names_the_form_whatever_the_suffix(put: Put, tmp_path: Path) -> None:
    out = tmp_path / "rows.txt"
    assert convert(put("rows.jsonl", '{"query":"q"}\n'), out, writing=Writing(to="foundry")) == 0
    assert out.read_text(encoding="utf-8") == '{"query":"q"}\n'


def test_inputs_are_read_as_the_options_say(put: Put, tmp_path: Path) -> None:
    path = put("rows.csv", 'query,meta\nq,"{""a"":1}"\n')
    assert convert(path, tmp_path / "o.jsonl", files=Files(json_column=("meta",))) == 0
    assert (tmp_path / "o.jsonl").read_text(encoding="utf-8") == '{"query":"q","meta":{"a":1}}\n'


def test_what_cannot_be_read_or_written_is_an_error(put: Put, tmp_path: Path) -> None:
    path = put("rows.jsonl", "{broken\n")
    with pytest.raises(InputError):
        convert(path, tmp_path / "o.csv")
    with pytest.raises(ConfigError, match="no place to write to"):
        convert(path)
    with pytest.raises(ConfigError, match=r"no form has the suffix \.docx"):
        convert(path, tmp_path / "o.docx")
    with pytest.raises(ConfigError, match="leave OUT and --to away"):
        convert(path, tmp_path / "o.json", writing=Writing(in_place=True))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["rows.jsonl"]


def test_a_project_with_several_sets_needs_a_choice(put: Put, tmp_path: Path) -> None:
    for name in ("a", "b"):
        evaluation: dict[str, Any] = {"id": "1", "inputs": {}, "evaluationCriterias": {}}
        put(f"p/evals/eval-sets/{name}.json", {"version": "1.0", "evaluations": [evaluation]})
    with pytest.raises(ConfigError, match=r"holds 2 datasets; name one of them: .*a\.json"):
        convert(str(tmp_path / "p"), tmp_path / "o.csv")


def test_an_older_document_is_changed_in_place(put: Put, tmp_path: Path, capsys: Any) -> None:
    path = put("evals.json", [{"prompt": "q"}])
    assert convert(path, writing=Writing(in_place=True), output=JSON) == 0
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert told == {"file": path, "schema_version": "1.11.0", "backup": told["backup"]}
    assert Path(told["backup"]).read_text(encoding="utf-8") == '[{"prompt": "q"}]'
    assert printed.err == f"{path}: has schemaVersion 1.11.0 now; {told['backup']} is the file as it was\n"
    assert convert(path, writing=Writing(in_place=True)) == 0
    assert capsys.readouterr().err == f"{path}: states its version already; nothing to do\n"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.name)
@pytest.mark.parametrize("source", ["m365/support-desk.json", "foundry/support.jsonl", "uipath/ticket-agent"])
def test_every_sample_is_written_in_every_form(tmp_path: Path, source: str, writer: Any) -> None:
    out = tmp_path / f"out{''.join(writer.suffixes[:1])}"
    assert convert(str(DATA / source), out) == 0
    assert out.exists()
