"""Samples: the same items whatever the order of rows, in proportion, and written as they stood."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.cli.reading import Files
from assay.cli.sample import sample
from assay.datasets.reader import read_documents
from assay.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Take = Callable[..., tuple[str, str]]

LINES = [
    f'{{"id": "q{n}", "query":  "Größe {n}?", "category": "{"abc"[n % 3]}", "meta": {{"topic": {n % 2}}}}}'
    for n in range(30)
]


@pytest.fixture
def take(capsysbinary: pytest.CaptureFixture[bytes]) -> Take:
    """Sample files and return standard output and standard error."""

    def run(*files: object, **options: Any) -> tuple[str, str]:
        assert sample(*map(str, files), **options) == 0
        captured = capsysbinary.readouterr()
        return captured.out.decode(), captured.err.decode()

    return run


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(LINES), encoding="utf-8")
    return path


def test_lines_are_written_as_they_stood_and_in_their_order(take: Take, rows: Path) -> None:
    out, err = take(rows, n=7)
    taken = out.splitlines()
    assert len(taken) == 7
    assert taken == [line for line in LINES if line in taken]
    assert err == "7 of 30 items, seed 1\n"


def test_the_seed_and_not_the_order_of_rows_decides(take: Take, rows: Path) -> None:
    first = take(rows, n=7)[0]
    rows.write_text("\n\n".join(reversed(LINES)) + "\n", encoding="utf-8")
    assert set(take(rows, n=7)[0].splitlines()) == set(first.splitlines())
    assert set(take(rows, n=7, seed=2)[0].splitlines()) != set(first.splitlines())


def test_a_smaller_sample_is_part_of_a_larger_one(take: Take, rows: Path) -> None:
    assert set(take(rows, n=5)[0].splitlines()) < set(take(rows, n=9)[0].splitlines())


def test_an_id_decides_alone_and_without_one_the_text(take: Take, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(line.replace("Größe", "Preis") for line in LINES), encoding="utf-8")
    ids = [json.loads(line)["id"] for line in take(path, n=6)[0].splitlines()]
    path.write_text("\n".join(LINES), encoding="utf-8")
    assert [json.loads(line)["id"] for line in take(path, n=6)[0].splitlines()] == ids
    path.write_text("\n".join(line.replace('"id"', '"no"') for line in LINES), encoding="utf-8")
    nameless = take(path, n=6)[0].splitlines()
    path.write_text("\n".join(line.replace('"id"', '"no"') for line in LINES[::-1]), encoding="utf-8")
    assert set(take(path, n=6)[0].splitlines()) == set(nameless)


@pytest.mark.parametrize(
    ("by", "shares"),
    [("category", {"a": 2, "b": 2, "c": 2}), ("meta.topic", {"0": 3, "1": 3}), ("missing", None)],
)
def test_values_share_the_sample(by: str, shares: dict[str, int] | None, take: Take, rows: Path) -> None:
    if shares is None:
        with pytest.raises(ConfigError, match=r"--by missing: no item has this field \(fields: id, query"):
            take(rows, n=6, by=by)
        return
    out, err = take(rows, n=6, by=by)
    assert len(out.splitlines()) == 6
    size = 30 // len(shares)
    assert err.splitlines()[1:] == [f"  {name}  {number} of {size}" for name, number in shares.items()]


def test_items_without_the_field_are_a_value_of_their_own(take: Take, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    values = [
        *({"id": str(n), "query": "q", "tags": ["x", "y"]} for n in range(5)),
        {"id": "z", "query": "q"},
    ]
    path.write_text("\n".join(map(json.dumps, values)), encoding="utf-8")
    out, err = take(path, n=2, by="tags")
    assert '"z"' in out
    assert err.splitlines()[1:] == ["  x, y    1 of 5", "  (none)  1 of 1"]


def test_more_than_there_is_takes_all_and_says_so(take: Take, rows: Path) -> None:
    out, err = take(rows, n=100)
    assert out == "\n".join(LINES) + "\n"
    assert err == "30 of 30 items, seed 1; there are no 100, so all are taken\n"


def test_records_of_csv_keep_their_quotes_and_line_breaks(take: Take, tmp_path: Path) -> None:
    head = 'id,"query"\r\n'
    records = [f'{n},"two\r\nlines, ""{n}""\r\n\r\nend"\r\n' for n in range(9)] + ["9, plain ;\r\n"]
    path = tmp_path / "x.csv"
    path.write_bytes(("\ufeff\n" + head + "".join(records)).encode())
    out = take(path, n=4)[0]
    kept = [record for record in records if record in out]
    assert len(kept) == 4
    assert out == head + "".join(kept)
    assert take(path, n=10)[0] == head + "".join(records)


def test_compressed_and_recoded_files_come_out_as_plain_text(take: Take, tmp_path: Path) -> None:
    packed, coded = tmp_path / "x.jsonl.gz", tmp_path / "y.jsonl"
    packed.write_bytes(gzip.compress("\n".join(LINES).encode()))
    coded.write_bytes("\n".join(LINES).encode("cp1252"))
    assert take(packed, n=3)[0] == take(coded, n=3, files=Files(encoding="cp1252"))[0]


def test_an_eval_document_keeps_everything_but_the_other_items(take: Take, tmp_path: Path) -> None:
    items: list[Any] = [{"prompt": f"p{n}", "extensions": {"testId": f"t{n}"}} for n in range(8)]
    items[3] = {"turns": [{"prompt": "a"}, {"prompt": "b"}], "extensions": {"testId": "t3"}}
    root = {"schemaVersion": "1.11.0", "items": items, "metadata": {"name": "Kessalo"}}
    path, out = tmp_path / "x.json", tmp_path / "new" / "y.json"
    path.write_text(json.dumps(root, indent=3), encoding="utf-8")
    take(path, n=3, out=out)
    written = json.loads(out.read_text(encoding="utf-8"))
    assert [item for item in items if item in written["items"]] == written["items"]
    assert len(written["items"]) == 3
    assert json.dumps({**root, "items": written["items"]}, indent=3) == out.read_text(encoding="utf-8")
    take(path, n=8, out=out)
    assert out.read_bytes() == path.read_bytes()


def test_an_eval_set_keeps_its_references(take: Take, tmp_path: Path) -> None:
    items = [{"id": f"e{n}", "inputs": {"q": 1.50}} for n in range(6)]
    path = tmp_path / "evals" / "eval-sets" / "set.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"id": "s", "evaluations": items, "evaluatorRefs": []}), encoding="utf-8")
    written = json.loads(take(tmp_path, n=2)[0])
    assert written | {"evaluations": items} == {"id": "s", "evaluations": items, "evaluatorRefs": []}
    assert len(written["evaluations"]) == 2
    assert take(tmp_path, n=2, out=path.with_name("part.json"))[1].endswith(
        "in " + str(path.parent / ".." / "evaluators") + "\n"
    )


def test_other_files_become_json_lines(take: Take, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"id": [f"{n}" for n in range(9)], "query": ["q\n"] * 9}).write_parquet(path)
    out = take(path, n=4)[0]
    assert len(out.splitlines()) == 4
    assert all(json.loads(line)["query"] == "q\n" for line in out.splitlines())


def test_several_files_of_rows_are_one_population(take: Take, rows: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    first.write_text("\n".join(LINES[:11]), encoding="utf-8")
    second.write_text("\n".join(LINES[11:]), encoding="utf-8")
    assert take(first, second, n=8)[0] == take(rows, n=8)[0]


def test_what_cannot_be_one_file_is_refused(rows: Path, tmp_path: Path) -> None:
    document, table, other = (tmp_path / name for name in ("x.json", "x.csv", "y.csv"))
    document.write_text('{"items": [{"prompt": "p"}]}', encoding="utf-8")
    table.write_text("id,query\n1,q\n", encoding="utf-8")
    other.write_text("query,id\nq,2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="several files make a sample only when"):
        sample(str(rows), str(table))
    with pytest.raises(ConfigError, match="several files make a sample only when"):
        sample(str(document), str(document))
    with pytest.raises(InputError, match=r"y\.csv: its header differs"):
        sample(str(table), str(other))


def test_options_that_cannot_work_are_refused(rows: Path) -> None:
    with pytest.raises(ConfigError, match="-n 0: accepted is 1 or more"):
        sample(str(rows), n=0)
    with pytest.raises(ConfigError, match="is the dataset itself"):
        sample(str(rows), out=rows)
    with pytest.raises(ConfigError, match="drop the suffix"):
        sample(str(rows), out=rows.with_suffix(".gz"))
    with pytest.raises(ConfigError, match="no dataset named"):
        sample()


def test_a_bad_row_ends_it_or_is_set_aside(take: Take, rows: Path, tmp_path: Path) -> None:
    rows.write_text("\n".join([*LINES, "{"]), encoding="utf-8")
    out = tmp_path / "out.jsonl"
    with pytest.raises(InputError, match=r"rows\.jsonl:31"):
        sample(str(rows), out=out)
    assert not out.exists()
    assert take(rows, n=40, files=Files(on_bad_row="quarantine"))[0] == "\n".join(LINES) + "\n"


@pytest.mark.parametrize(("name", "text"), [("x.csv", ""), ("x.csv", "id,query\n"), ("x.jsonl", "")])
def test_nothing_of_nothing_is_taken(name: str, text: str, take: Take, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert take(tmp_path / name, files=Files(allow_empty=True))[0] == text


def test_a_sample_is_a_dataset_again(take: Take, rows: Path, tmp_path: Path) -> None:
    take(rows, n=5, out=tmp_path / "s.jsonl")
    (document,) = read_documents([str(tmp_path / "s.jsonl")])
    assert document.rows.height == 5
