"""Parts of files as they are written."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.datasets import excerpts
from assay.datasets.excerpts import copy_records, cut_document
from assay.datasets.files import Input
from assay.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@given(count=st.integers(0, 6), indent=st.sampled_from([None, 0, 2]), data=st.data())
def test_a_document_is_cut_to_the_chosen_elements(
    count: int, indent: int | None, data: st.DataObject
) -> None:
    items = [{"n": n, "items": [n]} for n in range(count)]
    chosen = sorted(data.draw(st.sets(st.integers(0, max(0, count - 1)), max_size=count)))
    root = {"a": "[", "items": items, "b": [1, 2]}
    text = cut_document(json.dumps(root, indent=indent), ("items", "b"), chosen)
    assert json.loads(text) == root | {"items": [items[n] for n in chosen]}
    assert json.loads(cut_document(json.dumps(items, indent=indent), ("items",), chosen)) == [
        items[n] for n in chosen
    ]


def test_lists_that_belong_together_are_cut_alike() -> None:
    root = {"prompts": ["a", "b", "c"], "expected_responses": ["A", "B", "C"]}
    cut = cut_document(json.dumps(root), ("items", "prompts", "expected_responses"), [0, 2])
    assert json.loads(cut) == {"prompts": ["a", "c"], "expected_responses": ["A", "C"]}


def test_records_are_copied_over_the_ends_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(excerpts, "BLOCK_BYTES", 4)
    path = tmp_path / "x.csv"
    path.write_bytes(b'\n a,b\r\n1,"x\n\n""y"\n2,z\r\n3,w')
    copied = list(copy_records(Input(path, "x.csv"), [0, 3, 7], quoted=True))
    assert copied == [b" a,b\r\n", b'1,"x\n\n""y"\n', b"3,w\n"]


def test_a_file_that_has_become_shorter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"{}\n")
    with pytest.raises(InputError, match=r"x\.jsonl: the file has changed"):
        list(copy_records(Input(path, "x.jsonl"), [1, 3], quoted=False))
