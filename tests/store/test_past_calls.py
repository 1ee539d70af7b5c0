"""Answers of other runs: the newest is found, whatever state index and files are in."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from assay.errors import ContractError, StoreError
from assay.store.call_index import CallIndex, make_buffer, read_index, scan_segment, write_sidecar
from assay.store.layout import RunFolder
from assay.store.ledger import open_segment
from assay.store.lines import write_line
from assay.store.past import MAX_OPEN, open_past

if TYPE_CHECKING:
    from assay.store.layout import Store

OLD, NEW = "20261130-154500-aaaaaa", "20261201-154500-bbbbbb"


def _key(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


def _append(folder: RunFolder, index: int, **payloads: Any) -> Path:
    with open_segment(folder, index) as segment:
        for name, value in payloads.items():
            segment.append(_key(name), {"v": value})
    return folder.segment(index)


def _find(name: str, *folders: RunFolder) -> Any:
    with open_past(folders) as calls:
        payload = calls.find(_key(name))
        return payload and payload["v"]


@pytest.fixture
def old(store: Store) -> RunFolder:
    return RunFolder(store, OLD)


@pytest.fixture
def new(store: Store) -> RunFolder:
    return RunFolder(store, NEW)


@pytest.fixture
def sidecar(old: RunFolder) -> Path:
    return old.calls / "index.bin"


def _blank(path: Path) -> None:
    """Leave a segment as large as it is, with nothing in it."""
    path.write_bytes(b"\n" * path.stat().st_size)


def _count(*folders: RunFolder) -> int:
    with open_past(folders) as calls:
        return len(calls)


def _count_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_every_answer_of_several_runs_is_found(old: RunFolder, new: RunFolder) -> None:
    for folder in (old, new):
        for index in range(3):
            _append(folder, index, **{f"{folder.run_id}{index}{k}": f"ü{k}" for k in range(20)})
    for _ in range(2):  # without sidecars and with them
        with open_past([new, old]) as calls:
            assert len(calls) == 120
            for folder in (old, new):
                for k in range(60):
                    name = f"{folder.run_id}{k % 3}{k // 3}"
                    assert calls.find(_key(name)) == {"v": f"ü{k // 3}"}
            assert calls.find(_key("other")) is None


def test_the_newest_run_wins_and_in_it_the_last_answer(old: RunFolder, new: RunFolder) -> None:
    _append(old, 5, a="old", b="old")
    _append(new, 0, a="new 0", c="new 0")
    _append(new, 1, a="new 1")
    _append(new, 1, a="new 1, again")
    assert _find("a", new, old) == "new 1, again"
    assert _find("a", old, new) == "old"
    assert _find("b", new, old) == "old"
    assert _find("c", new, old) == "new 0"


def test_no_runs_and_runs_without_calls_have_no_answers(old: RunFolder, new: RunFolder) -> None:
    new.path.mkdir(parents=True)
    with open_past([]) as none, open_past([new, old]) as empty:
        assert (len(none), len(empty)) == (0, 0)
        assert none.find(_key(1)) is None
        assert empty.find(_key(1)) is None
    assert list(new.path.iterdir()) == []
    assert not old.path.exists()


@pytest.mark.parametrize("key", ["", "0" * 63, "g" * 64, "A" * 64])
def test_what_is_no_key_is_refused(old: RunFolder, key: str) -> None:
    with open_past([old]) as calls, pytest.raises(ContractError, match="64 lower-case hex digits"):
        calls.find(key)


def test_keys_that_begin_alike_are_told_apart(old: RunFolder, new: RunFolder) -> None:
    keys = [f"{'0' * 16}{k:048x}" for k in range(5)]
    for k, key in enumerate(keys[:4]):
        with open_segment((old, new)[k % 2], k) as segment:
            segment.append(key, {"v": k})
    with open_past([new, old]) as calls:
        assert [calls.find(key) for key in keys] == [{"v": 0}, {"v": 1}, {"v": 2}, {"v": 3}, None]


@pytest.mark.parametrize("key", ["0" * 64, "f" * 64, "7" + "f" * 63, "8" + "0" * 63])
def test_extreme_keys_are_found(old: RunFolder, key: str) -> None:
    _append(old, 0, **{str(k): k for k in range(50)})
    with open_segment(old, 0) as segment:
        segment.append(key, {"v": "x"})
    with open_past([old]) as calls:
        assert calls.find(key) == {"v": "x"}


@pytest.mark.parametrize("length", [0, 1, 4000, 4096, 9000, 300_000])
def test_answers_of_any_length_are_found(old: RunFolder, length: int) -> None:
    _append(old, 0, a="1", b="x" * length, c="3")
    assert [_find(name, old) for name in "abc"] == ["1", "x" * length, "3"]


@pytest.mark.parametrize("chunk", [11, 23, 24, 25, 97, 1000, 1 << 23])
def test_lines_are_found_wherever_a_chunk_ends(old: RunFolder, chunk: int) -> None:
    path = _append(old, 0, **{str(k): "x" * (k * 7 % 120) for k in range(40)})
    lines = path.read_bytes().splitlines(keepends=True)
    torn = write_line(_key("torn"), {"v": 1})[:-1]
    path.write_bytes(b"".join(lines) + torn)
    size = path.stat().st_size
    whole, keys, offsets = scan_segment(path, size, make_buffer(chunk))
    assert whole == size - len(torn)
    assert keys.tolist() == [int(_key(str(k))[:16], 16) for k in range(40)]
    assert offsets.tolist() == [sum(map(len, lines[:k])) for k in range(40)]


@pytest.mark.parametrize("end", [1, 8, 30, 72, 80, -2, -1])
def test_a_torn_last_line_is_no_answer_until_it_is_written_again(old: RunFolder, end: int) -> None:
    path = _append(old, 0, a=1)
    path.write_bytes(path.read_bytes() + write_line(_key("b"), {"v": 2})[:end])
    assert (_find("a", old), _find("b", old)) == (1, None)
    _append(old, 0, b=3)
    assert (_find("a", old), _find("b", old)) == (1, 3)


def test_a_torn_segment_is_never_taken_from_the_sidecar(old: RunFolder) -> None:
    path = _append(old, 0, a=1)
    kept, line = path.read_bytes(), write_line(_key("b"), {"v": 2})
    path.write_bytes(kept + b"x" * len(line))
    assert _find("b", old) is None
    path.write_bytes(kept + line)  # the same size as with the torn line
    assert _find("b", old) == 2


@pytest.mark.parametrize(
    "damage", [b"\0" * 300, b"\n" * 300, b"{}", b"\xff", b'{"key":"' + b"g" * 64 + b'"}']
)
def test_damaged_lines_are_skipped(old: RunFolder, damage: bytes) -> None:
    path = _append(old, 0, a=1)
    path.write_bytes(path.read_bytes() + damage + b"\n")
    _append(old, 0, b=2)
    with open_past([old]) as calls:
        assert len(calls) == 2
    assert (_find("a", old), _find("b", old)) == (1, 2)


def test_an_older_answer_stands_in_for_a_damaged_one(old: RunFolder, new: RunFolder) -> None:
    _append(old, 0, a="old")
    path = _append(new, 0, a="new")
    path.write_bytes(path.read_bytes().replace(b'"new"', b"'new'"))
    assert _find("a", new, old) == "old"


def test_the_second_opening_reads_no_segment(old: RunFolder, sidecar: Path) -> None:
    paths = [_append(old, 0, a=1), _append(old, 1, b=2)]
    assert _count(old) == 2
    made = sidecar.stat().st_ino
    for path in paths:
        _blank(path)
    assert _count(old) == 2
    assert sidecar.stat().st_ino == made
    sidecar.unlink()
    assert _count(old) == 0


def test_only_segments_that_changed_are_read_again(old: RunFolder) -> None:
    paths = [_append(old, index, **{f"a{index}": index}) for index in (0, 1, 2)]
    assert _count(old) == 3
    _append(old, 1, more="m")
    _append(old, 7, b="new")
    paths[0].unlink()
    _blank(paths[2])
    assert _count(old) == 4  # the blank one is taken as it was
    assert [_find(name, old) for name in ("a0", "a1", "a2", "more", "b")] == [None, 1, None, "m", "new"]


def test_a_damaged_sidecar_is_made_again(old: RunFolder, sidecar: Path) -> None:
    _append(old, 0, a=1, b=2)
    _find("a", old)
    sound = sidecar.read_bytes()
    flipped = [sound[:at] + bytes([sound[at] ^ 1]) + sound[at + 1 :] for at in range(0, len(sound), 3)]
    cut = [sound[:end] for end in range(0, len(sound), 3)]
    for damaged in (*flipped, *cut, sound + b"\0" * 8, b"\xff" * 96):
        sidecar.write_bytes(damaged)
        assert (_find("a", old), _find("b", old)) == (1, 2)
        assert sidecar.read_bytes() == sound


def test_a_sidecar_that_lies_gives_no_wrong_answer(old: RunFolder, sidecar: Path) -> None:
    _append(old, 0, a=1, b=2)
    index = read_index(old)
    swapped = CallIndex(index.segments, index.keys, index.offsets[::-1].copy())
    write_sidecar(sidecar, swapped)
    assert (_find("a", old), _find("b", old)) == (None, None)


def test_a_sidecar_that_cannot_be_written_is_done_without(old: RunFolder, sidecar: Path) -> None:
    _append(old, 0, a=1)
    sidecar.mkdir()
    (sidecar / "in the way").touch()
    assert (_find("a", old), _find("a", old)) == (1, 1)
    assert sorted(path.name for path in old.calls.iterdir()) == ["index.bin", "part-00000.jsonl"]


def test_a_run_being_written_is_found_as_far_as_it_is(old: RunFolder, new: RunFolder) -> None:
    with open_segment(new, 0) as segment:
        segment.append(_key("a"), {"v": 1})
        assert _find("a", new, old) == 1
        segment.append(_key("b"), {"v": 2})
        assert _find("b", new, old) == 2


def test_a_run_deleted_meanwhile_has_no_answers(old: RunFolder, new: RunFolder) -> None:
    path = _append(new, 0, a="new")
    _append(old, 0, a="old")
    with open_past([new, old]) as calls:
        path.unlink()
        assert calls.find(_key("a")) == {"v": "old"}


def test_a_ledger_that_cannot_be_read_is_named(old: RunFolder) -> None:
    old.segment(0).mkdir(parents=True)
    with pytest.raises(StoreError, match=r"calls: cannot be read: Is a directory"):
        open_past([old])


def test_few_descriptors_are_held_and_given_back(old: RunFolder) -> None:
    old.calls.mkdir(parents=True)
    many = MAX_OPEN + 20
    for index in range(many):
        old.segment(index).write_bytes(write_line(_key(index), {"v": index}))
    before = _count_descriptors()
    with open_past([old]) as calls, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(calls.find, [_key(k % many) for k in range(200)]))
        assert found == [{"v": k % many} for k in range(200)]
        assert _count_descriptors() == before + MAX_OPEN
    assert _count_descriptors() == before
    assert calls.find(_key(0)) is None
    assert len(calls) == 0
