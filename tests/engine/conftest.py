"""Small datasets and a store per test."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import assay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from assay.api import Run

ROWS = [
    {"id": "a", "query": "2 + 2?", "response": "4", "ground_truth": "4", "category": "math"},
    {
        "id": "b",
        "query": "Capital of France?",
        "response": "Lyon",
        "ground_truth": "Paris",
        "category": "geo",
    },
    {"id": "c", "query": "Farbe des Himmels?", "response": "Blau", "ground_truth": "blau", "category": "geo"},
]


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    def write(*rows: dict[str, Any], name: str = "rows.jsonl") -> Path:
        path = tmp_path / name
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows or ROWS]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    return write


@pytest.fixture
def run_rows(tmp_path: Path, write_rows: Callable[..., Path]) -> Callable[..., Run]:
    def run(*rows: dict[str, Any], **settings: Any) -> Run:
        return assay.run(write_rows(*rows), store=tmp_path / "store", **settings)

    return run
