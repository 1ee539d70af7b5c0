"""Answer files: several forms, one table."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from assay.datasets.answers import read_answers
from assay.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Write = Callable[[str, str | bytes], str]

SCHEMA = {
    "id": pl.String,
    "turn": pl.Int32,
    "trial": pl.Int32,
    "response": pl.String,
    "output_items_json": pl.String,
    "source_line": pl.Int64,
}
ITEMS = [{"type": "message", "content": "hi"}]


def _lines(*rows: dict[str, Any]) -> str:
    return "\n".join(map(json.dumps, rows))


def test_json_lines_are_read(write: Write) -> None:
    answers = read_answers(
        write(
            "a.jsonl",
            '\n{"id": 9007199254740993, "response": "r", "model": "x"}\n'
            '{"testId": "b", "turn": 1, "trial": "2", "response": {"n": 1.10}}\n'
            '{"item_id": "c", "turn": null, "output_items": [{"a":  "ö"}]}\n',
        )
    ).table
    assert dict(answers.schema) == SCHEMA
    assert answers.rows() == [
        ("9007199254740993", None, None, "r", None, 2),
        ("b", 1, 2, '{"n":1.10}', None, 3),
        ("c", None, None, None, '[{"a":"ö"}]', 4),
    ]


def test_csv_is_read(write: Write) -> None:
    answers = read_answers(
        write("a.csv", 'id;turn;response;output_items\n007;;"a;b";\n8;1;;"[1, 2]"\n')
    ).table
    assert dict(answers.schema) == SCHEMA
    assert answers.rows() == [("007", None, None, "a;b", None, 2), ("8", 1, None, None, "[1,2]", 3)]


def test_parquet_is_read(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"item_id": [1, 2], "trial": [0.0, None], "response": ["r", None], "output_items": [None, ITEMS]}
    )
    frame.write_parquet(tmp_path / "a.parquet")
    answers = read_answers(str(tmp_path / "a.parquet")).table
    assert dict(answers.schema) == SCHEMA
    assert answers.rows() == [
        ("1", None, 0, "r", None, None),
        ("2", None, None, None, json.dumps(ITEMS, separators=(",", ":")), None),
    ]


@pytest.mark.parametrize("name", ["a.arrow", "a.feather", "a.ipc", "a.arrow.gz"])
def test_arrow_is_read(name: str, tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["1", "2"], "response": ["r", None], "output_items": [None, [{"n": 1.0}]]})
    buffer = io.BytesIO()
    frame.write_ipc(buffer)
    (tmp_path / name).write_bytes(
        gzip.compress(buffer.getvalue()) if name.endswith(".gz") else buffer.getvalue()
    )
    answers = read_answers(str(tmp_path / name))
    assert answers.table.select("id", "response", "output_items_json").rows() == [
        ("1", "r", None),
        ("2", None, '[{"n":1.0}]'),
    ]
    assert answers.sha256 == hashlib.sha256(buffer.getvalue()).hexdigest()


def test_tsv_is_read(write: Write) -> None:
    answers = read_answers(write("a.tsv", "id\tresponse\n1\ta,b\n")).table
    assert answers.select("id", "response", "source_line").rows() == [("1", "a,b", 2)]


def test_a_json_list_is_read_and_its_bad_members_named_by_index(write: Write) -> None:
    text = '[{"id": 1, "response": "r"},\n {"item_id": "b", "output_items": [{"a": 1.10}]}]'
    answers = read_answers(write("a.json", text))
    assert answers.table.select("id", "response", "output_items_json", "source_line").rows() == [
        ("1", "r", None, 1),
        ("b", None, '[{"a":1.10}]', 2),
    ]
    assert answers.sha256 == hashlib.sha256(text.encode()).hexdigest()
    bad = '[{"id": 1, "response": "r"}, {"id": 2}, 5, {"id": 1, "response": "s"}]'
    with pytest.raises(InputError, match="3 bad lines") as caught:
        read_answers(write("b.json", bad))
    assert "line 1: [1]: neither response nor output_items" in caught.value.message
    assert "line 1: [2]: a number, expected an object" in caught.value.message
    assert "line 1: [3]: a second answer for id '1', the first is in [0]" in caught.value.message


def test_lines_in_a_json_file_are_read(write: Write) -> None:
    answers = read_answers(write("a.json", '{"id": 1, "response": "r"}\n{"id": 2, "response": "s"}\n')).table
    assert answers["source_line"].to_list() == [1, 2]


def test_the_hash_is_that_of_the_content_whatever_the_compression(write: Write) -> None:
    text = _lines({"id": "a", "response": "r"}).encode()
    plain, packed = write("a.jsonl", text), write("a.jsonl.gz", gzip.compress(text))
    assert {read_answers(path).sha256 for path in (plain, packed)} == {hashlib.sha256(text).hexdigest()}


def test_columns_that_are_not_asked_for_may_hold_anything(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a"], "response": ["r"], "score": [float("nan")], "raw": [b"\xff"]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert read_answers(str(tmp_path / "a.parquet")).table["response"].to_list() == ["r"]


def test_an_empty_response_is_an_answer(write: Write) -> None:
    answers = read_answers(write("a.jsonl", _lines({"id": "a", "response": ""})))
    assert answers.table["response"].to_list() == [""]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"response": "r"}, "no id; accepted: id, testId, item_id"),
        ({"id": "", "response": "r"}, "no id"),
        ({"id": "b"}, "neither response nor output_items"),
        ({"id": "b", "response": None}, "neither response nor output_items"),
        ({"id": "b", "response": "r", "turn": "first"}, "turn 'first' is not a whole number"),
        ({"id": "b", "response": "r", "turn": -1}, "turn '-1' is not a whole number"),
        ({"id": "b", "response": "r", "trial": 1.5}, "trial '1.5' is not a whole number"),
        ({"id": "b", "response": "r", "trial": 10**12}, "is not a whole number"),
        ({"id": "b", "output_items": "[1"}, "output_items is text that is not JSON"),
        ({"id": "b", "output_items": {"a": 1}}, "output_items is an object, expected a list"),
        ({"id": "b", "output_items": "null"}, "output_items is null, expected a list"),
        ({"id": "a", "response": "r"}, "a second answer for id 'a', the first is in line 1"),
    ],
)
def test_a_row_that_cannot_be_matched_is_refused_with_its_line(
    row: dict[str, Any], message: str, write: Write
) -> None:
    with pytest.raises(InputError) as caught:
        read_answers(write("a.jsonl", _lines({"id": "a", "response": "r"}, row)))
    assert caught.value.line == 2
    assert message in caught.value.message


def test_turn_and_trial_tell_answers_apart(write: Write) -> None:
    rows = [{"id": "a", "response": "r"} | extra for extra in ({}, {"turn": 1}, {"turn": 1, "trial": 1})]
    assert read_answers(write("a.jsonl", _lines(*rows))).table.height == 3
    with pytest.raises(InputError, match="the first is in line 3"):
        read_answers(write("a.jsonl", _lines(*rows, rows[2])))


def test_no_turn_is_the_first_turn(write: Write) -> None:
    with pytest.raises(InputError, match="the first is in line 1"):
        read_answers(
            write("a.jsonl", _lines({"id": "a", "response": "r"}, {"id": "a", "turn": 0, "response": "s"}))
        )


def test_rows_of_parquet_are_counted(tmp_path: Path) -> None:
    pl.DataFrame({"id": ["a", "b", "a"], "response": "r"}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="the first is in row 1") as caught:
        read_answers(str(tmp_path / "a.parquet"))
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", "\n", "no rows in a.jsonl"),
        ("a.csv", "id,response\n", "no rows in a.csv"),
        ("a.csv", "", "no rows in a.csv"),
        ("a.parquet", "", "no rows in a.parquet"),
        ("a.parquet", "PAR1", "cannot be read as Parquet"),
        ("a.xlsx", "x", "accepted: .csv, .tsv, .jsonl, .ndjson, .json, .parquet, .arrow, .feather, .ipc"),
        ("a.tsv", "\n", "no rows in a.tsv"),
        ("a.json", "[]", "no rows in a.json"),
        ("a.json", "", "no rows in a.json"),
        ("a.arrow", "", "no rows in a.arrow"),
        ("a.arrow", "ARROW1", "cannot be read as Arrow IPC"),
        ("a.json", '[{"id": 1},]', "a.json:1:12: not JSON: a comma before the end of the list"),
        ("a.jsonl", '{"id": 1', "not JSON"),
        ("a.csv", "key,text\n1,2\n", "no id; accepted"),
        ("a.csv", "id,response\n1\n", "1 cells, the header has 2"),
    ],
)
def test_a_file_that_holds_no_answers_is_refused(name: str, content: str, message: str, write: Write) -> None:
    with pytest.raises(InputError) as caught:
        read_answers(write(name, content))
    assert message in str(caught.value)


def test_a_missing_file_names_the_nearest(write: Write) -> None:
    path = write("answers.parquet", "PAR1")
    with pytest.raises(InputError, match=r"did you mean .*answers\.parquet\?"):
        read_answers(path.replace("answers", "answer"))


@pytest.mark.parametrize("name", ["zero.parquet", "header_only.parquet"])
def test_torn_parquet_of_the_field_is_refused(name: str, field: Path) -> None:
    with pytest.raises(InputError, match=r"no rows in zero|cannot be read as Parquet"):
        read_answers(str(field / "F066" / name))
