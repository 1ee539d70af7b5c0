"""Eval documents without a version are brought up to date in place, with the old file beside."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from assay.contracts.json_text import parse_json
from assay.datasets.files import Input
from assay.datasets.writing.upgrade import Upgrade, upgrade_document
from assay.errors import ConfigError, InputError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.datasets.writing.conftest import Workshop

NOW = datetime(2026, 3, 2, 8, 5, 9, tzinfo=UTC)


def _upgrade(path: Path) -> Upgrade | None:
    return upgrade_document(Input(path, path.name), NOW)


def test_a_bare_array_becomes_the_items_of_a_document(bench: Workshop) -> None:
    text = '[{"prompt": "a", "testId": 7},\r\n {"prompt": "\\u00e9", "extensions": {"n": 1.50, "m": 1E2}}]'
    path = bench.put("evals.json", text)
    upgrade = _upgrade(path)
    assert upgrade is not None
    assert (upgrade.version, upgrade.backup.name) == ("1.11.0", "evals.json.bak.20260302080509")
    assert upgrade.backup.read_bytes() == text.encode()
    assert path.read_bytes().decode() == (
        '{\n  "schemaVersion": "1.11.0",\n  "items": [\n'
        '    {\n      "prompt": "a",\n      "testId": 7\n    },\n'
        '    {\n      "prompt": "é",\n      "extensions": {\n        "n": 1.50,\n        "m": 1E2\n'
        "      }\n    }\n"
        "  ]\n}\n"
    )
    assert sorted(entry.name for entry in bench.folder.iterdir()) == ["evals.json", upgrade.backup.name]


def test_paired_lists_become_items_where_they_stood(bench: Workshop) -> None:
    pairs = {"a": 1, "prompts": ["p", "q"], "z": None, "expected_responses": ["r", None]}
    path = bench.put("evals.json", pairs)
    assert _upgrade(path)
    text = path.read_text(encoding="utf-8")
    assert list(json.loads(text)) == ["schemaVersion", "a", "items", "z"]
    assert json.loads(text)["items"] == [{"prompt": "p", "expected_response": "r"}, {"prompt": "q"}]


DOCUMENTS: list[dict[str, Any]] = [
    {"default_evaluators": {"ExactMatch": {}}, "items": [{"prompt": "q"}], "own": 10**30},
    {"items": [{"turns": [{"prompt": "q", "evaluators": {"ExactMatch": {}}}]}]},
]


@pytest.mark.parametrize("root", DOCUMENTS)
def test_a_document_gets_the_newest_version_and_keeps_its_order(
    bench: Workshop, root: dict[str, Any]
) -> None:
    path = bench.put("evals.json", root)
    upgrade = _upgrade(path)
    assert upgrade is not None
    assert upgrade.version == "1.11.0"
    after = parse_json(path.read_text(encoding="utf-8"))
    assert isinstance(after, dict)
    assert list(after.items()) == [("schemaVersion", "1.11.0"), *root.items()]


def test_fields_that_only_the_first_version_takes_keep_it(bench: Workshop) -> None:
    path = bench.put("evals.json", [{"prompt": "q", "owner": "Mia"}])
    upgrade = _upgrade(path)
    assert upgrade is not None
    assert upgrade.version == "1.0.0"
    assert json.loads(path.read_text(encoding="utf-8"))["items"] == [{"prompt": "q", "owner": "Mia"}]


def test_a_document_with_a_version_is_not_touched(bench: Workshop) -> None:
    path = bench.put("evals.json", '{"schemaVersion":"1.2.0","items":[{"prompt":"q"}]}')
    before = path.stat().st_mtime_ns
    assert _upgrade(path) is None
    assert path.stat().st_mtime_ns == before
    assert [entry.name for entry in bench.folder.iterdir()] == ["evals.json"]


@pytest.mark.parametrize("root", [[{"prompt": ""}], {"evaluations": []}, {"prompts": ["a", 1]}])
def test_a_file_that_is_no_sound_document_is_not_touched(bench: Workshop, root: Any) -> None:
    path = bench.put("evals.json", root)
    before = path.read_bytes()
    with pytest.raises(InputError):
        _upgrade(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in bench.folder.iterdir()] == ["evals.json"]


def test_a_backup_is_never_written_over(bench: Workshop) -> None:
    path = bench.put("evals.json", [{"prompt": "q"}])
    backup = bench.put("evals.json.bak.20260302080509", "mine")
    with pytest.raises(ConfigError, match="is there already; nothing was changed"):
        _upgrade(path)
    assert (path.read_text(), backup.read_text()) == ('[{"prompt":"q"}]', "mine")


def test_packed_files_and_standard_input_cannot_be_changed_in_place(bench: Workshop) -> None:
    path = bench.put("evals.json.gz", gzip.compress(b'[{"prompt":"q"}]'))
    with pytest.raises(ConfigError, match="is compressed"):
        _upgrade(path)
    with pytest.raises(ConfigError, match="standard input cannot be changed"):
        upgrade_document(Input(path, "standard input", keep=object()), NOW)


def test_the_file_keeps_its_mode_and_a_link_stays_a_link(bench: Workshop) -> None:
    path = bench.put("real/evals.json", [{"prompt": "q"}])
    path.chmod(0o640)
    link = bench.folder / "evals.json"
    link.symlink_to(path)
    upgrade = _upgrade(link)
    assert upgrade is not None
    assert link.is_symlink()
    assert (path.stat().st_mode & 0o777, upgrade.backup.stat().st_mode & 0o777) == (0o640, 0o640)
    assert upgrade.backup.parent == path.parent
