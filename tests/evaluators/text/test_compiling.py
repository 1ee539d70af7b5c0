from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from evaluators.text import compiling

if TYPE_CHECKING:
    from collections.abc import Callable

FEW_ROWS = """
import sys
import polars as pl
from evaluators import catalog, f1_score, rouge_score
print("numpy" in sys.modules, "numba" in sys.modules)
frame = pl.DataFrame({"response": ["a cat"], "expected_response": ["the cat"]})
for module in (f1_score, rouge_score):
    module.EVALUATOR.measure(module.EVALUATOR.options(), frame)
print("numba" in sys.modules)
"""


def test_few_rows_and_the_catalog_do_without_the_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", FEW_ROWS], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False"]


def test_without_a_folder_to_write_to_loops_are_compiled_for_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, bool]] = []

    def njit(**how: bool) -> Callable[[Any], Any]:
        asked.append(how)
        if "cache" in how:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: function

    monkeypatch.setitem(sys.modules, "numba", cast("Any", SimpleNamespace(njit=njit)))
    assert compiling.compiled(len) is len
    assert [how.get("cache") for how in asked] == [True, None]


@pytest.mark.parametrize("height", [0, 1, 999, 1000, 1001, 12_345, 1_000_000])
def test_blocks_cover_all_rows_once_in_order(height: int) -> None:
    blocks = compiling.run_blocks(lambda first, end: (first, end), height)
    assert [first for first, _ in blocks] == [0, *[end for _, end in blocks]][: len(blocks)]
    assert sum(end - first for first, end in blocks) == height


def test_an_error_in_a_block_is_not_lost() -> None:
    def fail(first: int, end: int) -> int:
        return 1 // (first * end)

    with pytest.raises(ZeroDivisionError):
        compiling.run_blocks(fail, 10_000)
