"""A few hundred of the random files that `make fuzz` makes by the thousand."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def readers() -> Any:
    path = Path(__file__).with_name("readers.py")
    spec = importlib.util.spec_from_file_location("fuzz_readers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_no_file_is_read_with_a_traceback_or_a_silent_loss(seed: int, readers: Any, tmp_path: Path) -> None:
    corpus = readers.collect_corpus()
    good = sum(
        readers.check(readers.make_case(random.Random(f"{seed} {n}"), corpus), tmp_path)  # noqa: S311 - repeatable
        for n in range(60)
    )
    assert good > 5
