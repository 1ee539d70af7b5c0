"""`assay validate`: what it says of good, doubtful and broken files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

FIELD = Path(__file__).parents[1] / "golden" / "field"
ENTRY = {"line", "column", "pointer", "code", "message"}


@pytest.fixture
def validate(call: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    def run(*tokens: object) -> tuple[int, list[dict[str, Any]]]:
        code, out, err = call("validate", *tokens, "--format", "json")
        assert "Traceback" not in err
        return code, json.loads(out)

    return run


def test_a_good_file_is_described(validate: Callable[..., Any]) -> None:
    code, (report,) = validate("data/m365/support-desk.json")
    assert code == 0
    assert (report["file"], report["dialect"], report["items"], report["rows"]) == (
        "data/m365/support-desk.json",
        "m365",
        30,
        39,
    )
    assert report["schema_version"]
    assert report["errors"] == []


def test_every_bad_line_is_an_entry_with_its_place(validate: Callable[..., Any], tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text('{"query": "a"}\n{"query": \n{"query": "b"}\n{"a": 1, "a": 2}\n', encoding="utf-8")
    code, (report,) = validate(data)
    assert code == 2
    assert (report["rows"], report["bad_rows"]) == (2, 2)
    assert [set(entry) for entry in report["errors"]] == [ENTRY, ENTRY]
    assert [entry["line"] for entry in report["errors"]] == [2, 4]
    assert report["errors"][1]["message"] == "key 'a' appears twice"
    assert report["errors"][1]["column"] == 10


def test_what_the_published_format_forbids_is_a_warning_and_under_strict_an_error(
    validate: Callable[..., Any], tmp_path: Path
) -> None:
    data = tmp_path / "evals.json"
    item = {"prompt": "p", "testId": "T1"}
    data.write_text(json.dumps({"schemaVersion": "1.6.0", "items": [item]}), encoding="utf-8")
    code, (lax,) = validate(data)
    assert (code, lax["errors"]) == (0, [])
    assert any(entry["pointer"] == "items[0].testId" for entry in lax["warnings"])
    code, (strict,) = validate(data, "--strict")
    assert code == 1
    assert any(entry["pointer"] == "items[0].testId" and entry["line"] == 1 for entry in strict["errors"])


def test_the_kinds_of_values_are_counted_by_column(validate: Callable[..., Any]) -> None:
    code, (report,) = validate(FIELD / "F011" / "drift.jsonl")
    assert code == 0
    kinds = dict.fromkeys(("text", "list", "null", "object", "number", "boolean", "missing"), 1)
    assert report["columns"]["response"] == kinds


def test_a_missing_file_and_an_unknown_one_are_reports_too(
    validate: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "x.json").write_text('{"a": 1}', encoding="utf-8")
    code, reports = validate(tmp_path / "gone.jsonl", tmp_path / "x.json", "data/csv/faq.csv")
    assert code == 2
    assert [len(report["errors"]) for report in reports] == [1, 1, 0]


def test_converted_messages_are_listed(validate: Callable[..., Any], tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    row = {
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
        ]
    }
    data = tmp_path / "rows.jsonl"
    data.write_text("\n".join([json.dumps(row)] * 3), encoding="utf-8")
    code, (report,) = validate(data, "--strict")
    assert code == 0
    assert [entry["code"] for entry in report["warnings"]].count("converted") >= 1
    assert all(entry["line"] == 1 for entry in report["warnings"] if entry["code"] == "converted")


def test_unknown_evaluators_are_errors_of_the_file(validate: Callable[..., Any]) -> None:
    code, (report,) = validate(FIELD / "F025" / "typo_evaluator.json")
    assert code == 2
    assert "did you mean Relevance" in report["errors"][0]["message"]
    assert "default_evaluators.Relevence" in report["errors"][0]["message"]
