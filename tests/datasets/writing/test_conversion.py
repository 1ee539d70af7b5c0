"""Files are written whole or not at all, and never over what is there."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.config import Reading
from assay.datasets.reader import find_datasets
from assay.datasets.writing.catalog import WRITERS, choose_writer, find_writer
from assay.datasets.writing.contract import Losses
from assay.datasets.writing.conversion import Conversion, convert_dataset
from assay.errors import ConfigError, InputError

if TYPE_CHECKING:
    from tests.datasets.writing.conftest import Workshop

FORMS = [writer.name for writer in WRITERS]
ROWS = '{"id":"a","query":"q"}\n{"id":"b","query":"r"}\n'


def _convert(path: Path, form: str, out: Path, reading: Reading | None = None, **options: Any) -> Conversion:
    (found,) = find_datasets([str(path)], reading or Reading())
    return convert_dataset(found.open(), find_writer(form), out, **options)


def _list(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_breaks_at_its_end_leaves_nothing_behind(bench: Workshop, form: str) -> None:
    path = bench.put("rows.jsonl", ROWS * 3000 + "{broken\n")
    with pytest.raises(InputError, match="6001"):
        _convert(path, form, bench.folder / "deep" / "out")
    assert [entry.name for entry in bench.folder.iterdir()] == ["rows.jsonl"]


@pytest.mark.parametrize("form", FORMS)
def test_what_is_there_stays_unless_it_may_be_replaced(bench: Workshop, form: str) -> None:
    path, out = bench.put("rows.jsonl", ROWS), bench.folder / "out"
    assert _convert(path, form, out).items == 2
    there = {name: (bench.folder / name).read_bytes() for name in _list(bench.folder)}
    with pytest.raises(ConfigError, match="is there already; --force replaces it"):
        _convert(bench.put("other.jsonl", '{"query":"x"}\n'), form, out)
    assert {name: (bench.folder / name).read_bytes() for name in there} == there
    _convert(bench.folder / "other.jsonl", form, out, force=True)
    assert any((bench.folder / name).read_bytes() != data for name, data in there.items()) or form == "uipath"


def test_a_project_is_put_into_a_folder_beside_what_else_is_there(bench: Workshop) -> None:
    path, out = bench.put("rows.jsonl", ROWS), bench.folder / "agent"
    bench.put("agent/agent.json", {"name": "a"})
    _convert(path, "uipath", out)
    bench.put("agent/evaluations/eval-sets/old.json", {"version": "1.0", "evaluations": []})
    _convert(path, "uipath", out, force=True)
    names = ["agent.json", "evaluations/eval-sets/old.json", "evaluations/eval-sets/rows.json"]
    assert _list(out) == names


def test_a_file_is_no_folder_and_a_folder_no_file(bench: Workshop) -> None:
    path = bench.put("rows.jsonl", ROWS)
    bench.put("out/x.txt", "")
    with pytest.raises(ConfigError, match="is a folder; name a file"):
        _convert(path, "csv", bench.folder / "out", force=True)
    with pytest.raises(ConfigError, match="is a file; name a folder"):
        _convert(path, "uipath", path, force=True)
    with pytest.raises(ConfigError, match="cannot be written"):
        _convert(path, "csv", path / "below" / "out.csv")


def test_a_file_may_replace_itself(bench: Workshop) -> None:
    path = bench.put("rows.jsonl", '{"prompt":"q"}\n')
    _convert(path, "foundry", path, force=True)
    assert path.read_text(encoding="utf-8") == '{"query":"q"}\n'


def test_nothing_is_written_when_nothing_may_be_lost(bench: Workshop) -> None:
    document = {"schemaVersion": "1.11.0", "description": "d", "items": [{"prompt": "q", "tags": ["a", "b"]}]}
    path, out = bench.put("doc.json", document), bench.folder / "out.csv"
    conversion = _convert(path, "csv", out, keep_all=True)
    assert (conversion.is_written, [loss.field for loss in conversion.losses.gone]) == (
        False,
        ["description of the file"],
    )
    assert _list(bench.folder) == ["doc.json"]
    del document["description"]
    assert _convert(bench.put("doc.json", document), "csv", out, keep_all=True).is_written


def test_rows_set_aside_are_a_loss(bench: Workshop) -> None:
    path = bench.put("rows.jsonl", ROWS + "[1]\n")
    conversion = _convert(path, "foundry", bench.folder / "out.jsonl", Reading(on_bad_row="quarantine"))
    assert [(loss.field, loss.count) for loss in conversion.losses] == [("bad rows", 1)]
    assert (bench.folder / "out.jsonl").read_text(encoding="utf-8") == ROWS


def test_a_compressed_document_is_read_again_for_its_root(bench: Workshop) -> None:
    document = {"schemaVersion": "1.11.0", "own": 1, "items": [{"prompt": "q"}]}
    path = bench.put("doc.json.gz", gzip.compress(json.dumps(document).encode()))
    _convert(path, "m365", bench.folder / "out.json")
    assert json.loads((bench.folder / "out.json").read_text(encoding="utf-8")) == document


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.json", "m365"),
        ("a.JSONL", "foundry"),
        ("a.ndjson", "foundry"),
        ("a.csv", "csv"),
        ("a.parquet", "parquet"),
        ("folder", "uipath"),
    ],
)
def test_the_suffix_chooses_the_form(name: str, form: str) -> None:
    assert choose_writer(Path(name)).name == form


def test_other_suffixes_and_forms_are_refused_with_what_is_accepted() -> None:
    with pytest.raises(ConfigError, match=r"no form has the suffix \.gz; .* \.json \(m365\), \.jsonl"):
        choose_writer(Path("a.jsonl.gz"))
    with pytest.raises(ConfigError, match="did you mean parquet"):
        find_writer("parket")


def test_losses_are_counted_with_their_first_place_and_the_gone_come_first() -> None:
    losses = Losses()
    losses.add("tags", "elsewhere", "a", kept=True)
    losses.add("notes", "left out", "b")
    losses.add("notes", "left out", "c", count=2)
    told = [(loss.field, loss.first, loss.count, loss.kept) for loss in losses]
    assert told == [("notes", "b", 3, False), ("tags", "a", 1, True)]
