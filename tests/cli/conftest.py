"""The command line, called in this process with a store of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from assay.cli.app import run_app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "store"
    monkeypatch.setenv("ASSAY_STORE", str(path))
    return path


@pytest.fixture
def call(store: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    assert not store.exists()

    def run(*tokens: object) -> tuple[int, str, str]:
        code = run_app([str(token) for token in tokens])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
